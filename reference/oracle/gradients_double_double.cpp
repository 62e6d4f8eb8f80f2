#include "reference/oracle/gradient_engine.hpp"
#include "reference/oracle/gradient_runs.hpp"

namespace attest::oracle {

bound::ExpectedGradients gradients_in_double_double(const Prepared& call, const Prepared& clean,
                                                    const bound::KernelModel& model,
                                                    const OutputGradients& given) {
    return run_gradients<DoubleDouble>(call, clean, model, given);
}

}  // namespace attest::oracle
