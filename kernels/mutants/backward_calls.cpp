// Planted bugs of the backward pass that show between calls: in what is wanted, where it lies, what
// came before, how large it is.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "kernels/mutants/planted_backward.hpp"

namespace attest::museum {
namespace {

using Steps = cpu::BackwardSteps<float>;
using WrongRow = cpu::BackRow<float>;
using Pair = cpu::BackPair<float>;

void nothing_for_the_mask_alone(cpu::Call& call) {
    if (!call.d_q && !call.d_k && !call.d_v && !call.d_sinks && !call.d_slopes) call.d_mask = {};
}

void output_gradient_as_output(cpu::Call& call) {
    call.d_o.stride = call.o.stride;
}

/// No call clears what the one before left.
float delta_added_up(const WrongRow& row) {
    static std::map<std::array<std::int64_t, 3>, float> sums;
    return sums[{row.segment.batch, row.head, row.segment.query0 + row.i}] +=
           cpu::plain::delta(row);
}

float ds_of_held_dp(const Pair& pair) {
    return pair.probability * (std::clamp(pair.dp, -8.0f, 8.0f) - pair.row.delta);
}

float scale_in_bf16(const cpu::Call& call) {
    return cpu::rounded(cpu::plain::scale<float>(call), cpu::Format::bf16);
}

float quotient_of_exponentials(const Pair& pair) {
    return std::exp(pair.score) / std::exp(pair.row.lse);
}

void default_scale(cpu::Call& call) {
    call.problem.scale = 1 / std::sqrt(static_cast<double>(call.problem.dim_qk));
}

}  // namespace

std::vector<PlantedBug> backward_calls() {
    return {
        {backward_bug("M450", "B4", "a mask whose gradient alone is wanted gets none",
                      "an additive mask, no other gradient", "", {"gradients.wanted"},
                      "https://github.com/pytorch/pytorch/pull/188302"),
         Steps{.call = nothing_for_the_mask_alone}},
        {backward_bug("M451", "I2", "dO is read by the strides of O", "dO laid out unlike O", "",
                      {"gradients.layout", "reference.gradients"},
                      "https://github.com/facebookresearch/xformers/pull/282"),
         Steps{.call = output_gradient_as_output}},
        {backward_bug("M452", "C3", "delta is added to what the call before left", "a second call",
                      "", {"gradients.stale_state", "reference.gradients"},
                      "https://github.com/ooples/AiDotNet.Tensors/pull/760"),
         Steps{.delta = delta_added_up}},
        {backward_bug("M453", "N3", "dP is held between -8 and 8", "large dO or values", "",
                      {"gradients.linear", "reference.gradients"}),
         Steps{.ds = ds_of_held_dp}},
        {backward_bug("M454", "N2", "a weight is exp(s) / exp(LSE)", "scores beyond 88", "",
                      {"gradients.shift", "reference.gradients"}),
         Steps{.probability = quotient_of_exponentials}},
        {backward_bug("M455", "I6", "backward takes 1/sqrt(D) for the scale", "another scale", "",
                      {"gradients.differences", "gradients.adjoint", "reference.gradients"}),
         Steps{.call = default_scale}},
        {backward_bug("M456", "N4", "dQ is multiplied by a scale that was rounded to bfloat16",
                      "a dimension that is no power of 4", "scale_bf16",
                      {"reference.gradients", "gradients.error_budget"}),
         Steps{.query_scale = scale_in_bf16}},
    };
}

}  // namespace attest::museum
