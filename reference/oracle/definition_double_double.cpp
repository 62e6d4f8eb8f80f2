#include "reference/oracle/definition_rows.hpp"

namespace attest {

std::unique_ptr<RowArithmetic> definition_in_double_double(const Prepared& call) {
    return make_definition<DoubleDouble>(call);
}

}  // namespace attest
