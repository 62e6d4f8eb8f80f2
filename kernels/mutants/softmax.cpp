// Planted bugs in the online softmax and the LSE.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

/// Some bugs lose every weight to underflow; the real ones guard the division and return zeros.
void guarded_finish(const cpu::PlainRow& row) {
    const float lse = cpu::plain::lse(row);
    if (row.sum == 0) row.sum = 1;
    cpu::plain::divide(row, lse);
}

/// Nothing is ever subtracted from the scores: m is 0.
void start_without_frame(const cpu::PlainRow& row) {
    cpu::plain::start(row);
    if (row.seen) row.sum = std::exp(row.max);
    row.max = 0;
}

/// The member of the output's format next to `value` towards zero.
float truncated(float value, cpu::Format format) {
    if (format != cpu::Format::f16 && format != cpu::Format::bf16) return value;
    const bool half = format == cpu::Format::f16;
    std::uint16_t bits = half ? cpu::narrow_f16(value) : cpu::narrow_bf16(value);
    const float nearest = half ? cpu::widen_f16(bits) : cpu::widen_bf16(bits);
    if (std::abs(nearest) > std::abs(value)) --bits;
    return half ? cpu::widen_f16(bits) : cpu::widen_bf16(bits);
}

}  // namespace

std::vector<PlantedBug> softmax() {
    return {
        {{.id = "M041",
          .bug_class = "N1",
          .operation = "flash forward",
          .change = "the running maximum starts at -5e4",
          .trigger = "all scores of a row below -5e4",
          .source = "https://github.com/flashinfer-ai/flashinfer/issues/4267",
          .must = {"invariance.key_shift"}},
         cpu::FlashSteps{.start =
                             [](const cpu::PlainRow& row) {
                                 cpu::plain::start(row);
                                 if (!row.seen) row.max = -5e4f;
                             },
                         .finish = guarded_finish}},
        {{.id = "M042",
          .bug_class = "N1",
          .operation = "flash forward",
          .change =
              "hidden tiles are visited too, and one before any visible key sets the maximum to 0",
          .trigger = "a hidden leading tile and scores far below 0",
          .source = "https://github.com/Dao-AILab/flash-attention/issues/2082",
          .must = {"entropy.limits", "invariance.bias_shift"}},
         cpu::FlashSteps{.needed =
                             [](const cpu::QueryBlock& b) {
                                 return cpu::SegmentKeys{0, cpu::plain::needed(b).last};
                             },
                         .absorb =
                             [](const cpu::PlainRow& row) {
                                 if (!cpu::plain::sees_any(row) && row.max == cpu::minus_infinity)
                                     row.max = 0;
                                 cpu::plain::absorb(row);
                             },
                         .finish = guarded_finish}},
        {{.id = "M180",
          .bug_class = "N1",
          .operation = "flash forward",
          .change =
              "a hidden tile is taken in too: before any visible key the rescale is exp(-inf + "
              "inf), a NaN that only an empty row is guarded against",
          .trigger = "a row whose first tile is hidden: padding on the left",
          .must = {"reference.output", "probability.row_sum"}},
         cpu::FlashSteps{.absorb =
                             [](const cpu::PlainRow& row) {
                                 if (!cpu::plain::sees_any(row)) {
                                     const float factor = std::exp(row.max - row.max);
                                     cpu::plain::rescale(row, factor);
                                     row.sum *= factor;
                                 }
                                 cpu::plain::absorb(row);
                             },
                         .finish =
                             [](const cpu::PlainRow& row) {
                                 if (!row.seen)
                                     std::fill_n(row.output, row.block.call.problem.dim_v, 0.0f);
                                 cpu::plain::finish(row);
                             }}},
        {{.id = "M043",
          .bug_class = "N2",
          .operation = "flash forward",
          .change = "the accumulator is not rescaled where the maximum grows, the sum is",
          .trigger = "the maximum grows after the first tile",
          .must = {"reference.output", "probability.row_sum", "probability.order",
                   "convex_hull.box", "partition.tile_edges", "partition.order"}},
         cpu::FlashSteps{.rescale = [](const cpu::PlainRow&, float) {}}},
        {{.id = "M045",
          .bug_class = "N2",
          .operation = "flash forward",
          .change = "the sum is rescaled after the tile is added: l = (l + sum) alpha",
          .trigger = "the maximum grows after the first tile",
          .must = {"reference.output", "reference.lse", "probability.row_sum"}},
         cpu::FlashSteps{.total =
                             [](const cpu::PlainRow& row, float factor, float sum) {
                                 return row.max == cpu::minus_infinity ? sum
                                                                       : (row.sum + sum) * factor;
                             }}},
        {{.id = "M046",
          .bug_class = "N1",
          .operation = "flash forward",
          .change = "the row maximum is taken before masking",
          .trigger = "a hidden score above the visible ones by more than 88",
          .must = {"reference.output", "masking.poison"}},
         cpu::FlashSteps{.largest =
                             [](const cpu::PlainRow& row) {
                                 float max = cpu::minus_infinity;
                                 for (std::int64_t j = 0; j < row.keys; ++j)
                                     max = cpu::larger(row.scores[j], max);
                                 return max;
                             },
                         .finish = guarded_finish}},
        {{.id = "M047",
          .bug_class = "N2",
          .operation = "flash forward",
          .change = "no maximum is subtracted",
          .trigger = "scores beyond 88",
          .must = {"reference.output", "partition.stability"}},
         cpu::FlashSteps{.start = start_without_frame,
                         .largest = [](const cpu::PlainRow&) { return 0.0f; }}},
        {{.id = "M049",
          .bug_class = "N3",
          .operation = "flash forward",
          .change = "the output is accumulated in f16",
          .trigger = "any",
          .must = {"reference.output", "invariance.value_linear"}},
         cpu::FlashSteps{.add_value =
                             [](const cpu::PlainRow& row, float weight, const float* value) {
                                 const float fed = rounded(weight, row.block.call.format_q);
                                 for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c)
                                     row.output[c] =
                                         rounded(row.output[c] + fed * value[c], cpu::Format::f16);
                             }}},
        {{.id = "M050",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "weights are rounded to bf16 whatever the format of the queries",
          .trigger = "f32 or f16",
          .must = {"reference.output", "reference.structure", "reference.probable",
                   "probability.row_sum", "entropy.derivative", "convex_hull.membership"}},
         cpu::FlashSteps{.add_value =
                             [](const cpu::PlainRow& row, float weight, const float* value) {
                                 const float fed = rounded(weight, cpu::Format::bf16);
                                 for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c)
                                     row.output[c] += fed * value[c];
                             }}},
        {{.id = "M052",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "the output is truncated instead of rounded",
          .trigger = "f16 or bf16 output",
          .must = {"reference.output", "reference.structure", "reference.rounding",
                   "reference.error_budget"}},
         cpu::FlashSteps{.store =
                             [](const cpu::PlainRow& row, float* output, float lse) {
                                 for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c)
                                     output[c] = truncated(output[c], row.block.call.o.format);
                                 cpu::plain::store(row, output, lse);
                             }}},
        {{.id = "M053",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "a tile whose maximum lies 6 below the running one is skipped",
          .trigger = "scores that differ by more than 6",
          .must = {"reference.output"}},
         cpu::FlashSteps{.absorb =
                             [](const cpu::PlainRow& row) {
                                 if (cpu::plain::sees_any(row) &&
                                     cpu::plain::largest(row) < row.max - 6)
                                     row.seen = true;
                                 else
                                     cpu::plain::absorb(row);
                             }}},
        {{.id = "M055",
          .bug_class = "N2",
          .operation = "flash forward",
          .change = "LSE = m scale + log l with m already scaled",
          .trigger = "scale != 1",
          .must = {"reference.lse"},
          .diagnosis = "lse_maximum_scaled_twice"},
         cpu::FlashSteps{.lse =
                             [](const cpu::PlainRow& row) {
                                 const auto scale =
                                     static_cast<float>(row.block.call.problem.scale);
                                 return row.seen ? row.max * scale + std::log(row.sum)
                                                 : cpu::minus_infinity;
                             }}},
        {{.id = "M059",
          .bug_class = "N6",
          .operation = "flash forward",
          .change = "the LSE of an empty row is 0",
          .trigger = "a row with no visible key",
          .must = {"reference.lse"},
          .diagnosis = "lse_empty_zero"},
         cpu::FlashSteps{
             .lse =
                 [](const cpu::PlainRow& row) { return row.seen ? cpu::plain::lse(row) : 0.0f; }}},
        {{.id = "M201",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "weights are rounded to f16 beyond 1000 keys",
          .trigger = "more than 1000 keys",
          .must = {"probability.ratio"}},
         cpu::FlashSteps{.weight =
                             [](const cpu::PlainRow& row, float score, float frame) {
                                 const float weight = cpu::plain::weight(row, score, frame);
                                 const bool many = row.block.call.problem.len_kv > 1000;
                                 return many ? cpu::rounded(weight, cpu::Format::f16) : weight;
                             }}},
        {{.id = "M200",
          .bug_class = "I6",
          .operation = "flash forward",
          .change =
              "the largest q.k is multiplied by the scale for the running maximum: below 0 it "
              "is the least score",
          .trigger = "negative scale, scores that differ by more than 88",
          .source = "https://github.com/pytorch/pytorch/pull/105202",
          .must = {"reference.output"}},
         cpu::FlashSteps{.largest =
                             [](const cpu::PlainRow& row) {
                                 if (!(row.block.call.problem.scale < 0))
                                     return cpu::plain::largest(row);
                                 float least = -cpu::minus_infinity;
                                 for (std::int64_t j = 0; j < row.keys; ++j)
                                     if (!row.hidden[j]) least = std::min(least, row.scores[j]);
                                 return least;
                             }}},
        {{.id = "C02",
          .bug_class = "O1",
          .operation = "flash forward",
          .change = "returns the mean of the visible values",
          .trigger = "scores that differ",
          .must = {"reference.output", "jacobian.finite", "jacobian.saturation",
                   "equivariance.asymmetry", "invariance.kernel_regression", "rank.bilinear"},
          .diagnosis = "uniform_visible"},
         cpu::FlashSteps{.start = start_without_frame,
                         .largest = [](const cpu::PlainRow&) { return 0.0f; },
                         .weight = [](const cpu::PlainRow&, float, float) { return 1.0f; }}},
        {{.id = "C07",
          .bug_class = "O5",
          .operation = "flash forward",
          .change = "an exp that is right for |x| < 4 alone",
          .trigger = "scores that differ by more than 4",
          .must = {"reference.output", "partition.merge"}},
         cpu::FlashSteps{.exp =
                             [](float x) {
                                 const double at = std::max(static_cast<double>(x), -4.0);
                                 double series = 1;
                                 for (int n = 24; n > 0; --n) series = 1 + at / n * series;
                                 return static_cast<float>(series);
                             }}},
    };
}

}  // namespace attest::museum
