#pragma once
// A deviation of the backward pass: the right one with a step exchanged, or the backward of another
// problem beside a forward that is right. Which gradients it is seen in is told by the evidence:
// two kernels, one for dQ and one for dK and dV, rarely share a defect.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/diagnosis/backward_model.hpp"

namespace attest::diagnosis {

struct BackwardEvidence;

struct BackwardDeviation {
    std::string id;    ///< two entries of one id are two forms of one defect
    std::string says;  ///< completes "it computes ..."
    /// The step exchanged; none where `respecify` says all.
    using StepChange = std::function<void(const BackwardCall&, ModelSteps&)>;
    StepChange change{};
    /// The problem whose scores and mask backward goes by; none where this call is the same in it.
    std::function<std::optional<Specification>(const Specification&)> respecify{};
    /// With `respecify`: the channels of queries and keys are in another order, and `change` brings
    /// those of dQ and dK back.
    bool reorders = false;
    /// With `respecify`: O and LSE are those of that problem too, not what forward returned.
    bool renewed = false;
    /// With `respecify`: of keys that forward does not see dS is P (dP - dO.O) and dV's weight P,
    /// without dropout and without dLSE.
    bool plain_beyond = false;
    /// Which weights backward keeps, where those are not forward's.
    std::function<std::optional<Tensor>(const BackwardEvidence&)> keeps{};
    /// It misses its tensors, so that writing or reading elsewhere is the same defect.
    bool strays = false;
    /// Id of the deviation of forward that a kernel with this one has where both passes share the
    /// code that is wrong.
    std::string in_forward{};
};

inline BackwardDeviation exchanged_step(std::string id, std::string says,
                                        BackwardDeviation::StepChange change) {
    return {.id = std::move(id), .says = std::move(says), .change = std::move(change)};
}

/// All of them, the more particular first.
std::span<const BackwardDeviation> backward_deviations();

/// Where none of the list explains: every gradient of `roles` too large or too small by one factor.
std::vector<BackwardDeviation> fitted_factor(const std::vector<BackwardEvidence>& wrong,
                                             const std::vector<Role>& roles);

/// The families the list is made of; each in a file of its own.
std::vector<BackwardDeviation> delta_deviations();
std::vector<BackwardDeviation> product_deviations();
std::vector<BackwardDeviation> lse_gradient_deviations();
std::vector<BackwardDeviation> other_row_deviations();
std::vector<BackwardDeviation> weight_deviations();
std::vector<BackwardDeviation> narrow_weight_deviations();
std::vector<BackwardDeviation> padding_row_deviations();
std::vector<BackwardDeviation> sum_deviations();
std::vector<BackwardDeviation> shared_sum_deviations();  ///< with those of a shared bias
std::vector<BackwardDeviation> joined_bias_deviations();
std::vector<BackwardDeviation> gradient_share_deviations();
std::vector<BackwardDeviation> rounded_tile_deviations();
std::vector<BackwardDeviation> factor_deviations();
std::vector<BackwardDeviation> place_deviations();
std::vector<BackwardDeviation> turn_deviations();
std::vector<BackwardDeviation> causal_tile_deviations();
std::vector<BackwardDeviation> skipped_block_deviations();
std::vector<BackwardDeviation> dropout_deviations();

}  // namespace attest::diagnosis
