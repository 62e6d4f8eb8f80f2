// Planted bugs in a score: the scale, the soft cap, mask tensors, ALiBi.

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {

std::vector<PlantedBug> scores() {
    return {
        {{.id = "M021",
          .bug_class = "M6",
          .operation = "flash forward",
          .change = "a boolean mask is added to the scores as 0 and 1",
          .trigger = "boolean mask",
          .must = {"reference.output", "masking.influence"},
          .diagnosis = "mask_boolean_added"},
         cpu::FlashSteps{
             .mask =
                 [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                     const cpu::Bias<float> bias = cpu::plain::mask(b, i, j);
                     const bool boolean = b.call.problem.mask_kind == ATTEST_MASK_BOOL;
                     return boolean ? cpu::Bias<float>{bias.hidden ? 0.0f : 1.0f, false} : bias;
                 }}},
        {{.id = "M022",
          .bug_class = "M6",
          .operation = "flash forward",
          .change = "an additive mask is read as a boolean one: visible where not zero",
          .trigger = "finite bias",
          .source = "https://github.com/pytorch/pytorch/issues/107084",
          .must = {"reference.output"},
          .diagnosis = "mask_additive_as_boolean"},
         cpu::FlashSteps{.mask =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const cpu::Bias<float> bias = cpu::plain::mask(b, i, j);
                                 const bool additive =
                                     b.call.problem.mask_kind == ATTEST_MASK_ADDITIVE;
                                 return additive ? cpu::Bias<float>{0, bias.value == 0} : bias;
                             }}},
        {{.id = "M023",
          .bug_class = "M9",
          .operation = "flash forward",
          .change = "the mask is addressed with a stride a head although it has one head",
          .trigger = "a mask shared by the heads, Hq > 1",
          .must = {"hygiene.bounds", "masking.broadcast"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 const attest_problem& p = call.problem;
                                 if (call.mask.shape[1] == 1)
                                     call.mask.stride[1] = p.len_q * p.len_kv;
                             }}},
        {{.id = "M480",
          .bug_class = "M9",
          .operation = "flash forward",
          .change = "the mask is read a number a key although one is for all keys of a row",
          .trigger = "a mask shared by the keys",
          .source = "https://github.com/HKUSTDial/flash-sparse-attention/pull/190",
          .must = {"hygiene.bounds", "masking.broadcast"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 if (call.mask.shape[3] == 1) call.mask.stride[3] = 1;
                             }}},
        {{.id = "M025",
          .bug_class = "M7",
          .operation = "flash forward",
          .change = "the scale multiplies the bias too: (q.k + bias) scale",
          .trigger = "finite bias, scale != 1",
          .source = "https://github.com/tenstorrent/tt-metal/issues/42891",
          .must = {"reference.output", "invariance.bias_shift"}},
         cpu::FlashSteps{.mask =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 cpu::Bias<float> bias = cpu::plain::mask(b, i, j);
                                 bias.value *= static_cast<float>(b.call.problem.scale);
                                 return bias;
                             }}},
        {{.id = "M027",
          .bug_class = "M7",
          .operation = "flash forward",
          .change = "the soft cap is applied before the scale: c tanh(q.k / c) scale",
          .trigger = "soft cap, scale != 1",
          .must = {"reference.output"},
          .diagnosis = "softcap_before_scale"},
         cpu::FlashSteps{.score =
                             [](const cpu::QueryBlock& b, float dot, float bias) {
                                 const attest_problem& p = b.call.problem;
                                 return cpu::soft_capped(dot, p.softcap) *
                                            static_cast<float>(p.scale) +
                                        bias;
                             }}},
        {{.id = "M028",
          .bug_class = "M8",
          .operation = "flash forward",
          .change = "the soft cap is ignored",
          .trigger = "soft cap",
          .must = {"reference.output"},
          .diagnosis = "softcap_ignored"},
         cpu::FlashSteps{.call = [](cpu::Call& call) { call.problem.softcap = 0; }}},
        {{.id = "M085",
          .bug_class = "I6",
          .operation = "flash forward",
          .change = "an explicit scale is ignored",
          .trigger = "scale other than 1/sqrt(D)",
          .must = {"reference.output", "hygiene.arguments_matter", "variance.unscaled",
                   "entropy.monotone", "invariance.scale_exchange"},
          .diagnosis = "scale_default"},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 call.problem.scale =
                                     1 / std::sqrt(static_cast<double>(call.problem.dim_qk));
                             }}},
        {{.id = "M167",
          .bug_class = "P3",
          .operation = "alibi",
          .change = "the sign of the slope is flipped",
          .trigger = "alibi",
          .must = {"reference.output", "position.alibi"},
          .diagnosis = "alibi_negated"},
         cpu::FlashSteps{.alibi = [](const cpu::QueryBlock& b, std::int64_t i,
                                     std::int64_t j) { return 0 - cpu::plain::alibi(b, i, j); }}},
        {{.id = "M168",
          .bug_class = "P3",
          .operation = "alibi",
          .change = "the slope is indexed by b Hq + h",
          .trigger = "alibi, B > 1",
          .must = {"hygiene.bounds"}},
         cpu::FlashSteps{.alibi =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 cpu::QueryBlock other = b;
                                 other.head += b.segment.batch * b.call.problem.heads_q;
                                 return cpu::plain::alibi(other, i, j);
                             }}},
        {{.id = "M169",
          .bug_class = "P3",
          .operation = "alibi",
          .change = "i - j instead of |i - j|",
          .trigger = "alibi without a causal mask",
          .must = {"reference.output"}},
         cpu::FlashSteps{.alibi =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const float absolute = cpu::plain::alibi(b, i, j);
                                 return j <= cpu::plain::diagonal(b, i) ? absolute : 0 - absolute;
                             }}},
        {{.id = "M174",
          .bug_class = "M9",
          .operation = "flash forward",
          .change = "the mask's keys are taken for neighbours in memory",
          .trigger = "a mask whose last stride is not 1",
          .must = {"hygiene.layout"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 if (call.mask.shape[3] > 1) call.mask.stride[3] = 1;
                             }}},
        {{.id = "M177",
          .bug_class = "M6",
          .operation = "flash forward",
          .change = "a bias of -1e4 or less hides its key like -inf",
          .trigger = "a row whose visible keys all have such a bias",
          .must = {"probability.row_sum"}},
         cpu::FlashSteps{.mask =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 cpu::Bias<float> bias = cpu::plain::mask(b, i, j);
                                 bias.hidden = bias.hidden || bias.value <= -1e4f;
                                 return bias;
                             }}},
    };
}

}  // namespace attest::museum
