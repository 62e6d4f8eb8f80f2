#include "reference/oracle/definition_rows.hpp"

namespace attest::oracle {

std::unique_ptr<RowArithmetic> definition_in_double(const Prepared& call) {
    return make_definition<double>(call);
}

}  // namespace attest::oracle
