#pragma once
// The gradients in one arithmetic each; every one its own translation unit.

#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::oracle {

bound::ExpectedGradients gradients_in_double(const Prepared& call, const Prepared& clean,
                                             const bound::KernelModel& model,
                                             const std::vector<double>& d_output);
bound::ExpectedGradients gradients_in_double_double(const Prepared& call, const Prepared& clean,
                                                    const bound::KernelModel& model,
                                                    const std::vector<double>& d_output);
bound::ExpectedGradients gradients_in_exact(const Prepared& call, const Prepared& clean,
                                            const bound::KernelModel& model,
                                            const std::vector<double>& d_output);

}  // namespace attest::oracle
