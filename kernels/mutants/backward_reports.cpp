// Planted bugs of the backward pass that others reported of theirs.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/score.hpp"
#include "kernels/mutants/planted_backward.hpp"

namespace attest::museum {
namespace {

using Steps = cpu::BackwardSteps<float>;
using WrongRow = cpu::BackRow<float>;
using Pair = cpu::BackPair<float>;

bool by_bias(const WrongRow& row, std::int64_t j) {
    return cpu::bias_at<float>(row.call, row.segment, row.head, row.i, j).hidden;
}

bool causal_top_left(const WrongRow& row, std::int64_t j, bool is) {
    if (row.call.problem.causal == 0) return is;
    attest_problem other = row.call.problem;
    other.causal = 0;
    const cpu::SegmentKeys range = cpu::reach(other, row.segment, row.i);
    return j > row.i || j < range.first || j >= range.last || by_bias(row, j);
}

bool always_causal(const WrongRow& row, std::int64_t j, bool is) {
    return is || j > row.i + row.segment.offset;
}

/// Sum of dO times x over channels [0, end), x and dO read where `at` says.
template <typename At>
float dot(const WrongRow& row, std::int64_t end, At at) {
    float sum = 0;
    for (std::int64_t c = 0; c < end; ++c) sum += row.d_o[c] * at(c);
    return sum;
}

float element(const std::byte* at, cpu::Format format) {
    float x = 0;
    cpu::load_row(at, format, 1, 1, &x);
    return x;
}

float ds_of_short_values(const Pair& pair) {
    const WrongRow& row = pair.row;
    const cpu::Call& call = row.call;
    const std::int64_t head = row.head / call.group, key = row.segment.key0 + pair.j;
    const float dp =
        dot(row, std::min(call.problem.dim_v, call.problem.dim_qk), [&](std::int64_t c) {
            return element(call.v.at(row.segment.batch, head, key, c), call.v.format);
        });
    return pair.probability * (dp - row.delta);
}

/// Where head and row exist in each other's place, dO is read as if they were exchanged.
float delta_of_exchanged_axes(const WrongRow& row) {
    const cpu::Operand& d_o = row.call.d_o;
    const std::int64_t i = row.segment.query0 + row.i;
    if (row.head >= row.call.problem.len_q || i >= row.call.problem.heads_q)
        return cpu::plain::delta(row);
    float sum = 0;
    for (std::int64_t c = 0; c < row.call.problem.dim_v; ++c)
        sum += row.output[c] * element(d_o.at(row.segment.batch, i, row.head, c), d_o.format);
    return sum;
}

float delta_of_first_sequence(const WrongRow& row) {
    const cpu::Call& call = row.call;
    const std::int64_t i = row.segment.query0 + row.i;
    float sum = 0;
    for (std::int64_t c = 0; c < call.problem.dim_v; ++c)
        sum += element(call.o.at(0, row.head, i, c), call.o.format) *
               element(call.d_o.at(0, row.head, i, c), call.d_o.format);
    return sum;
}

float rounded_ds(const Pair& pair) {
    return cpu::rounded(cpu::plain::ds(pair), cpu::Format::bf16);
}

float lse_in_bfloat16(const WrongRow& row) {
    return cpu::rounded(row.lse, cpu::Format::bf16);
}

float lse_of_first_in_group(const WrongRow& row) {
    const cpu::Call& call = row.call;
    return element(call.lse.at(row.segment.batch, row.head / call.group * call.group,
                               row.segment.query0 + row.i),
                   call.lse.format);
}

float unbiased_probability(const Pair& pair) {
    return std::exp(pair.capped - pair.row.lse);
}

}  // namespace

std::vector<PlantedBug> backward_reports() {
    return {
        {backward_bug("M400", "M1",
                      "backward aligns the causal mask top-left, forward bottom-right",
                      "causal, Tq < Tk", "", {"reference.gradients", "gradients.adjoint"},
                      "https://github.com/xlite-dev/ffpa-attn/pull/300"),
         Steps{.hidden = causal_top_left}},
        {backward_bug("M401", "M8", "backward takes every problem for a causal one",
                      "no causal mask", "", {"reference.gradients", "gradients.value_sum"},
                      "https://github.com/triton-lang/triton/issues/5660"),
         Steps{.hidden = always_causal}},
        {backward_bug("M402", "I5", "dP is summed over as many channels as K has", "dim_v > dim_qk",
                      "dp_key_channels", {"reference.gradients", "gradients.key_sum"},
                      "https://github.com/XunhaoLai/native-sparse-attention-triton/issues/27"),
         Steps{.ds = ds_of_short_values}},
        {backward_bug("M403", "I2", "delta reads dO by strides of another order, heads for rows",
                      "several heads and rows", "", {"reference.gradients", "gradients.key_sum"},
                      "https://github.com/Dao-AILab/flash-attention/issues/355"),
         Steps{.delta = delta_of_exchanged_axes}},
        {backward_bug("M404", "I3", "delta is that of the first sequence", "several sequences", "",
                      {"reference.gradients", "gradients.batch"},
                      "https://github.com/NVIDIA/TransformerEngine/issues/3216"),
         Steps{.delta = delta_of_first_sequence}},
        {backward_bug("M405", "N4", "dS is rounded to bfloat16", "f32 or f16", "",
                      {"reference.gradients"}, "https://github.com/QwenLM/FlashQLA/pull/28"),
         Steps{.ds = rounded_ds}},
        {backward_bug("M406", "I9", "the LSE is that of the group's first query head",
                      "grouped heads", "lse_first_of_group",
                      {"reference.gradients", "gradients.value_sum", "gradients.permuted"},
                      "https://github.com/fla-org/flash-linear-attention/pull/384"),
         Steps{.stored_lse = lse_of_first_in_group}},
        {backward_bug("M407", "N5", "the stored LSE is rounded to bfloat16", "any", "",
                      {"reference.gradients", "gradients.value_sum"},
                      "https://github.com/NVIDIA/cudnn-frontend/issues/676"),
         Steps{.stored_lse = lse_in_bfloat16}},
        {backward_bug("M408", "M7", "scores are recomputed without bias, ALiBi and mask", "a bias",
                      "", {"reference.gradients"},
                      "https://github.com/facebookresearch/xformers/issues/636"),
         Steps{.probability = unbiased_probability}},
    };
}

}  // namespace attest::museum
