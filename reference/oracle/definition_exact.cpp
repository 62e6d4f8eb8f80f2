#include "reference/oracle/definition_rows.hpp"

namespace attest::oracle {

std::unique_ptr<RowArithmetic> definition_in_exact(const Prepared& call) {
    return make_definition<Exact>(call);
}

}  // namespace attest::oracle
