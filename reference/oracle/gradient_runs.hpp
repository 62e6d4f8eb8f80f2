#pragma once
// The gradients in one arithmetic each; every one its own translation unit.

#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::oracle {

/// What backward is given, over [batch, heads_q, len_q]: dO with dim_v channels, and the gradient
/// of the LSE as the kernel returns it; empty: 0.
struct OutputGradients {
    std::vector<double> o, lse;
};

bound::ExpectedGradients gradients_in_double(const Prepared& call, const Prepared& clean,
                                             const bound::KernelModel& model,
                                             const OutputGradients& given);
bound::ExpectedGradients gradients_in_double_double(const Prepared& call, const Prepared& clean,
                                                    const bound::KernelModel& model,
                                                    const OutputGradients& given);
bound::ExpectedGradients gradients_in_exact(const Prepared& call, const Prepared& clean,
                                            const bound::KernelModel& model,
                                            const OutputGradients& given);

}  // namespace attest::oracle
