// Planted bugs of sizes taken wrongly: tiles skipped or ended by one of their keys or queries, an
// origin or a scale from elsewhere, steps in a narrower format.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

constexpr std::int64_t tile = cpu::plain_tile;

/// The last tile that causal order and the window leave a query keys of.
bool in_last_tile(const cpu::PlainRow& row) {
    const cpu::QueryBlock& b = row.block;
    const std::int64_t last = cpu::reach(b.call.problem, b.segment, row.i).last;
    return row.key0 + row.keys >= last;
}

bool mask_hides_ends(const cpu::PlainRow& row) {
    const cpu::QueryBlock& b = row.block;
    return b.call.problem.mask_kind != ATTEST_MASK_NONE &&
           cpu::plain::mask(b, row.i, row.key0).hidden &&
           cpu::plain::mask(b, row.i, row.key0 + row.keys - 1).hidden;
}

std::int64_t power_of_two_group(const cpu::Call& call, std::int64_t head) {
    const auto group = static_cast<std::uint64_t>(call.problem.heads_q / call.problem.heads_kv);
    return std::min(head / static_cast<std::int64_t>(std::bit_floor(group)),
                    call.problem.heads_kv - 1);
}

bool left_of_window(const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
    const attest_problem& p = b.call.problem;
    if (p.causal != 0 && !b.step.causal(b, i, j)) return false;
    if (p.window_left >= 0 && j < i - p.window_left) return false;
    return p.window_right < 0 || j - cpu::plain::diagonal(b, i) <= p.window_right;
}

void load_as_tf32(const cpu::Operand& operand, const std::byte* from, std::int64_t count,
                  float* to) {
    cpu::plain::load(operand, from, count, to);
    if (operand.format != cpu::Format::f32) return;
    for (std::int64_t n = 0; n < count; ++n)
        to[n] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(to[n]) & ~0x1fffu);
}

/// A part that saw no key: maximum 0, sum 1, values 0.
template <typename Real>
Real merge_with_empty(const cpu::Parts<Real>& parts, const Real* sink, Real* merged) {
    const Real lse = cpu::split::merge(parts, sink, merged);
    if (lse == -std::numeric_limits<Real>::infinity()) return lse;
    Real empty = 0;
    for (std::int64_t part = parts.r; part < parts.end; part += parts.stride)
        empty += parts.at.seen[part] ? Real{0} : Real{1};
    constexpr Real far = 80;  // what exp can hold in f32
    if (empty == 0 || lse < -far) return lse;
    const Real more = std::log1p(empty * std::exp(-lse));
    for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] *= std::exp(-more);
    return lse + more;
}

std::vector<PlantedBug> in_tiles() {
    return {
        {{.id = "M460",
          .bug_class = "M1",
          .operation = "flash forward",
          .change = "the loop over keys ends with the tile of the block's first query",
          .trigger = "causal, a block of 16 queries across the edge of a tile",
          .must = {"reference.output"},
          .diagnosis = "causal_loop_first_query_16_16"},
         cpu::FlashSteps{.causal =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const std::int64_t first = cpu::plain::diagonal(b, i / 16 * 16);
                                 return cpu::plain::causal(b, i, j) && first >= 0 &&
                                        j < (first / tile + 1) * tile;
                             }}},
        {{.id = "M461",
          .bug_class = "M2",
          .operation = "flash forward",
          .change = "a window's left limit is counted from i, not from i + Tk - Tq",
          .trigger = "a window to the left, Tq != Tk",
          .must = {"reference.output", "masking.window"},
          .diagnosis = "window_left_from_row"},
         cpu::FlashSteps{.visible = left_of_window,
                         .needed =
                             [](const cpu::QueryBlock& b) {
                                 return cpu::SegmentKeys{0, b.segment.keys};
                             }}},
        {{.id = "M463",
          .bug_class = "M10",
          .operation = "flash forward",
          .change = "a tile is skipped where the mask tensor hides its first and last key",
          .trigger = "a mask tensor that hides both ends of a tile and no key between",
          .must = {"reference.output"},
          .diagnosis = "mask_tile_ends_16"},
         cpu::FlashSteps{.absorb =
                             [](const cpu::PlainRow& row) {
                                 if (!mask_hides_ends(row)) cpu::plain::absorb(row);
                             }}},
        {{.id = "M465",
          .bug_class = "N2",
          .operation = "flash forward",
          .change = "the sum of weights, not that of values, is not rescaled in the last tile",
          .trigger = "more than one tile, a larger maximum in the last",
          .must = {"reference.output"},
          .diagnosis = "not_rescaled_last_sum_16"},
         cpu::FlashSteps{.total =
                             [](const cpu::PlainRow& row, float factor, float sum) {
                                 const bool kept = row.sum > 0 && in_last_tile(row);
                                 return cpu::plain::total(row, kept ? 1.0f : factor, sum);
                             }}},
        {{.id = "M470",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "the sum over values is rounded to bf16 after each tile",
          .trigger = "any",
          .must = {"reference.output"},
          .diagnosis = "value_sum_rounded_bf16_16"},
         cpu::FlashSteps{.absorb =
                             [](const cpu::PlainRow& row) {
                                 cpu::plain::absorb(row);
                                 for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c)
                                     row.output[c] = cpu::rounded(row.output[c], cpu::Format::bf16);
                             }}},
    };
}

std::vector<PlantedBug> from_elsewhere() {
    return {
        {{.id = "M462",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "the group of heads is rounded down to a power of two",
          .trigger = "Hq / Hkv no power of two, Hkv > 1",
          .must = {"reference.output", "heads.grouped"},
          .diagnosis = "heads_group_power"},
         cpu::FlashSteps{.kv_head = power_of_two_group}},
        {{.id = "M464",
          .bug_class = "I6",
          .operation = "flash forward",
          .change = "scores times log(n) / log(128) beyond 128 keys",
          .trigger = "more than 128 keys",
          .must = {"reference.output"},
          .diagnosis = "scale_log_keys_128"},
         cpu::FlashSteps{.score =
                             [](const cpu::QueryBlock& b, float dot, float bias) {
                                 const auto keys = static_cast<float>(b.segment.keys);
                                 const float by =
                                     keys > 128 ? std::log(keys) / std::log(128.0f) : 1;
                                 return cpu::plain::score(b, dot * by, bias);
                             }}},
        {{.id = "M471",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "f32 queries, keys and values are cut off to TF32",
          .trigger = "f32",
          .must = {"reference.output"},
          .diagnosis = "queries_keys_values_as_tf32_cut"},
         cpu::FlashSteps{.load = load_as_tf32}},
        {{.id = "M466",
          .bug_class = "I7",
          .operation = "split decode",
          .change = "the value of a page's first slot is read from the page before",
          .trigger = "a paged cache of more than one page",
          .must = {"reference.decode"},
          .diagnosis = "pages_first_slot_of_last_values"},
         cpu::DecodeSteps{.row =
                              [](const cpu::Call& call, const cpu::Operand& operand,
                                 std::int64_t batch, std::int64_t head, std::int64_t j) {
                                  const std::int64_t page = call.problem.page_size;
                                  const bool value = operand.data == call.v.data;
                                  const bool before = page > 0 && value && j > 0 && j % page == 0;
                                  return call.row(operand, batch, head, before ? j - page : j);
                              }}},
        {{.id = "M467",
          .bug_class = "N6",
          .operation = "split decode",
          .change = "a split that saw no key is merged with maximum 0 and sum 1",
          .trigger = "a split of which a query sees no key",
          .must = {"reference.output"}},
         cpu::DecodeSteps{.merge_f32 = merge_with_empty<float>,
                          .merge_f64 = merge_with_empty<double>}},
        {{.id = "M468",
          .bug_class = "P1",
          .operation = "split decode",
          .change = "queries are rotated without the offset that keys have",
          .trigger = "RoPE with an offset",
          .must = {"reference.output"},
          .diagnosis = "rope_query_without_offset"},
         cpu::DecodeSteps{
             .position = [](const attest_problem& p,
                            std::int64_t position) { return position - p.rope_offset; }}},
    };
}

}  // namespace

std::vector<PlantedBug> mistaken_sizes() {
    std::vector<PlantedBug> all = in_tiles();
    for (PlantedBug& bug : from_elsewhere()) all.push_back(std::move(bug));
    return all;
}

}  // namespace attest::museum
