#include "reference/oracle/definition_rows.hpp"

namespace attest::oracle {

std::unique_ptr<RowArithmetic> definition_in_double_double(const Prepared& call) {
    return make_definition<DoubleDouble>(call);
}

}  // namespace attest::oracle
