// Planted bugs of the backward pass.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/rope.hpp"
#include "kernels/mutants/planted_backward.hpp"

namespace attest::museum {
namespace {

using Steps = cpu::BackwardSteps<float>;
using WrongRow = cpu::BackRow<float>;
using Pair = cpu::BackPair<float>;
using Sums = cpu::BackSums<float>;

void overwrite_group(const cpu::Call& call, const cpu::Segment& s, std::int64_t group,
                     const Sums& sums) {
    if (group == 0) return;
    std::fill_n(sums.d_keys, s.keys * call.problem.dim_qk, 0.0f);
    std::fill_n(sums.d_values, s.keys * call.problem.dim_v, 0.0f);
}

float no_scale(const cpu::Call&) {
    return 1;
}

/// D of the row `up` rows above, as its tile lay in memory before.
template <std::int64_t up>
float delta_of_another(const WrongRow& row) {
    if (row.i < up) return cpu::plain::delta(row);
    const cpu::Call& call = row.call;
    const std::int64_t at = row.segment.query0 + row.i - up;
    float sum = 0;
    for (std::int64_t c = 0; c < call.problem.dim_v; ++c) {
        float o = 0, d_o = 0;
        cpu::load_row(call.o.at(row.segment.batch, row.head, at, c), call.o.format, 1, 1, &o);
        cpu::load_row(call.d_o.at(row.segment.batch, row.head, at, c), call.d_o.format, 1, 1, &d_o);
        sum += o * d_o;
    }
    return sum;
}

float rounded_delta(const WrongRow& row) {
    return cpu::rounded(cpu::plain::delta(row), cpu::Format::bf16);
}

/// LSE 0 of what is no query.
float lse_of_padding(const WrongRow& row) {
    return row.i < row.segment.queries ? row.lse : 0;
}

bool empty_rows_unmasked(const WrongRow& row, std::int64_t, bool is) {
    return is && row.lse != -std::numeric_limits<float>::infinity();
}

/// The window's left end does not hide in backward.
bool window_unmasked(const WrongRow& row, std::int64_t j, bool is) {
    const attest_problem& p = row.call.problem;
    if (p.window_left < 0) return is;
    attest_problem open = p;
    open.window_left = -1;
    const cpu::SegmentKeys range = cpu::reach(open, row.segment, row.i);
    return is && (j < range.first || j >= range.last ||
                  cpu::bias_at<float>(row.call, row.segment, row.head, row.i, j).hidden);
}

/// The causal mask is asked of a tile's first query, for all of them.
bool causal_by_tiles(const WrongRow& row, std::int64_t j, bool is) {
    constexpr std::int64_t tile = 16;
    return is || (row.call.problem.causal != 0 && j > row.i / tile * tile + row.segment.offset);
}

/// Where the mask's key axis has extent 1; it is summed over all else.
void last_key_alone(float& sum, const Pair& pair) {
    const WrongRow& row = pair.row;
    const bool last = row.segment.key0 + pair.j == row.call.problem.len_kv - 1;
    if (last || row.call.d_mask.shape[3] != 1) cpu::plain::add_to_mask(sum, pair);
}

std::byte* value_rows_as_keys(const cpu::Call& call, std::int64_t b, std::int64_t h, std::int64_t j,
                              std::int64_t c) {
    const attest_problem& p = call.problem;
    // Where rows of values are longer, none leaves the tensor.
    if (p.dim_qk > p.dim_v) return cpu::plain::value_at(call, b, h, j, c);
    const std::int64_t step = std::max<std::int64_t>(call.d_v.stride[3], 1);  // 0 of extent 1
    return call.d_v.at(b, h, 0, c) + j * p.dim_qk * step * call.d_v.element_bytes;
}

std::vector<PlantedBug> of_the_list() {
    return {
        {backward_bug("M110", "B1", "dK and dV are those of the last query head of the group",
                      "grouped heads", "group_last",
                      {"reference.gradients", "gradients.grouped", "gradients.adjoint"}),
         Steps{.begin_head = overwrite_group}},
        {backward_bug("M111", "B2", "dK misses the softmax scale", "scale != 1", "unscaled",
                      {"reference.gradients", "gradients.euler"}),
         Steps{.key_scale = no_scale}},
        {backward_bug("M112", "B2", "dQ and dK both miss the scale", "scale != 1", "unscaled",
                      {"reference.gradients"}),
         Steps{.query_scale = no_scale, .key_scale = no_scale}},
        {backward_bug("M113", "B2", "delta is omitted: dS = P dP", "any", "delta_omitted",
                      {"reference.gradients", "gradients.key_sum", "gradients.wanted",
                       "jacobian.vjp", "jacobian.symmetric_psd"}),
         Steps{.delta = [](const WrongRow&) { return 0.0f; }}},
        {backward_bug("M114", "B2", "delta is that of the row 8 above", "more than 8 queries",
                      "delta_row_above_8",
                      {"reference.gradients", "gradients.key_sum", "gradients.permuted"}),
         Steps{.delta = delta_of_another<8>}},
        {backward_bug("M117", "M5", "rows past a length add to dK and dV, with LSE 0",
                      "query lengths", "past_lengths", {"reference.gradients", "gradients.poison"}),
         Steps{.queries =
                   [](const cpu::Call& call, const cpu::Segment& s) {
                       const bool packed = (call.problem.flags & ATTEST_FLAG_PACKED) != 0;
                       return packed ? s.queries : call.problem.len_q;
                   },
               .stored_lse = lse_of_padding}},
        {backward_bug("M118", "M3", "an empty row is recomputed: exp(s - (-inf)) = inf",
                      "a row without a key", "empty_rows_recomputed",
                      {"reference.gradients", "gradients.empty", "gradients.shift"}),
         Steps{.hidden = empty_rows_unmasked}},
        {backward_bug("M120", "B4", "the soft cap's derivative is missing", "soft cap",
                      "slope_missing", {"reference.gradients"}),
         Steps{.slope = [](const Pair&) { return 1.0f; }}},
        {backward_bug(
             "M125", "I5", "rows of dV are as far apart as rows of K", "dim_v > dim_qk", "",
             {"reference.gradients", "gradients.value_sum", "gradients.linear", "gradients.layout"},
             "https://github.com/Dao-AILab/flash-attention/issues/2552"),
         Steps{.value_at = value_rows_as_keys}},
        {backward_bug("M127", "B4", "a bias gradient is not summed over its shared axes",
                      "a mask that is shared", "mask_last", {"reference.gradients"}),
         Steps{.add_to_mask = [](float& sum, const Pair& pair) { sum = pair.ds; }}},
        {backward_bug("M481", "B4",
                      "a bias gradient is not summed over keys: the last one's is what is left",
                      "an additive mask that keys share", "mask_last_key",
                      {"gradients.poison", "dropout.gradients"},
                      "https://github.com/HKUSTDial/flash-sparse-attention/pull/194"),
         Steps{.add_to_mask = last_key_alone}},
    };
}

/// A slope of ALiBi is one number a head: everything adds to it.
std::vector<PlantedBug> of_slopes() {
    const kernel::LawIds must{"reference.gradients"};
    return {
        {backward_bug("M420", "B4", "a slope's gradient is that of the last sequence alone",
                      "ALiBi, several sequences", "slopes_last_sequence", must),
         Steps{.slope_term =
                   [](const Pair& pair) {
                       const bool last = pair.row.segment.batch == pair.row.call.problem.batch - 1;
                       return last ? cpu::plain::slope_term(pair) : 0.0f;
                   }}},
        {backward_bug("M421", "B4", "a slope's gradient has the distance of the other sign",
                      "ALiBi", "slopes_negated", must),
         Steps{.slope_term = [](const Pair& pair) { return -cpu::plain::slope_term(pair); }}},
        {backward_bug("M424", "B4", "a slope's gradient takes j - i for the distance",
                      "ALiBi, not causal", "slopes_signed", must),
         Steps{.slope_term =
                   [](const Pair& pair) {
                       const WrongRow& row = pair.row;
                       return pair.ds * static_cast<float>(pair.j - row.i - row.segment.offset);
                   }}},
        {backward_bug("M425", "B4", "a slope's gradient misses the distance", "ALiBi",
                      "slopes_undistanced", must),
         Steps{.slope_term = [](const Pair& pair) { return -pair.ds; }}},
    };
}

/// dS = P (dP - dO.O + dLSE).
std::vector<PlantedBug> of_the_lse() {
    const kernel::LawIds must{"reference.gradients", "gradients.key_sum"};
    return {
        {backward_bug("M422", "B2", "the gradient of the LSE is left out", "a gradient of the LSE",
                      "lse_gradient_ignored", must,
                      "https://github.com/Dao-AILab/flash-attention/issues/1817"),
         Steps{.lse_gradient = [](const WrongRow&) { return 0.0f; }}},
        {backward_bug("M423", "B2", "the gradient of the LSE is added to delta, not taken off it",
                      "a gradient of the LSE", "lse_gradient_negated", must),
         Steps{.lse_gradient = [](const WrongRow& row) { return -cpu::plain::lse_gradient(row); }}},
    };
}

std::vector<PlantedBug> of_other_reports() {
    return {
        {backward_bug("M190", "M2", "recomputed weights ignore the left end of the window",
                      "window", "backward_window_left_ignored",
                      {"reference.gradients", "gradients.causal"}),
         Steps{.hidden = window_unmasked}},
        {backward_bug("M431", "M10",
                      "each tile of 16 queries sees the keys that its first one sees", "causal",
                      "backward_causal_query_tile_lost_16", {"reference.gradients"}),
         Steps{.hidden = causal_by_tiles}},
        {backward_bug("M191", "N5", "the LSE is taken for one of base 2", "any", "lse_as_base_two",
                      {"reference.gradients", "gradients.value_sum"}),
         Steps{
             .probability =
                 [](const Pair& pair) { return std::exp(pair.score - pair.row.lse / 1.442695f); }}},
        {backward_bug("M192", "N4", "delta is rounded to bfloat16", "f32 or f16", "delta_bf16",
                      {"reference.gradients"}),
         Steps{.delta = rounded_delta}},
        {backward_bug("M193", "P2", "dQ and dK are not turned back", "RoPE", "rope_not_turned_back",
                      {"reference.gradients", "gradients.euler"}),
         Steps{.turns_back = [](const cpu::Call&) { return false; }}},
        {backward_bug("M194", "B4", "a sink's gradient is that of its last row", "sink",
                      "sinks_last", {"reference.gradients"}),
         Steps{.add_to_sinks = [](float& sum, float term) { sum = term; }}},
        {backward_bug("M195", "B4", "a sink's gradient has the other sign", "sink", "sink_negated",
                      {"reference.gradients"}),
         Steps{.add_to_sinks = [](float& sum, float term) { sum -= term; }}},
        {backward_bug("M196", "M7", "the soft cap's derivative is taken at the biased score",
                      "soft cap and a bias", "slope_of_biased", {"reference.gradients"}),
         Steps{.slope =
                   [](const Pair& pair) {
                       const auto cap = static_cast<float>(pair.row.call.problem.softcap);
                       const float t = pair.score / cap;
                       return cap == 0 ? 1.0f : 1 - t * t;
                   }}},
        {backward_bug("M197", "N4", "P is rounded to bfloat16 before dV", "f32 or f16",
                      "value_weight_bf16", {"reference.gradients"}),
         Steps{.value_weight =
                   [](const Pair& pair) {
                       return cpu::rounded(pair.probability, cpu::Format::bf16);
                   }}},
        {backward_bug("M198", "B2", "dQ is scaled twice", "scale != 1", "scaled_twice",
                      {"reference.gradients", "gradients.euler"}),
         Steps{.query_scale =
                   [](const cpu::Call& call) {
                       return static_cast<float>(call.problem.scale * call.problem.scale);
                   }}},
        {backward_bug("M199", "B2", "dS has the weight squared", "any", "ds_weight_squared",
                      {"reference.gradients", "gradients.key_sum", "jacobian.vjp",
                       "jacobian.symmetric_psd"}),
         Steps{.ds =
                   [](const Pair& pair) {
                       return pair.probability * pair.probability * (pair.dp - pair.row.delta);
                   }}},
    };
}

}  // namespace

std::vector<PlantedBug> backward() {
    std::vector<PlantedBug> all = of_the_list();
    for (auto part : {of_other_reports(), of_slopes(), of_the_lse()})
        for (PlantedBug& bug : part) all.push_back(std::move(bug));
    return all;
}

}  // namespace attest::museum
