// Planted bugs in split-KV decoding and paged caches.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

std::int64_t pages(const cpu::Call& call, const cpu::Segment& s) {
    return (s.keys + call.problem.page_size - 1) / call.problem.page_size;
}

/// Each part with a weight of its own, weight(m, l), instead of a common frame. With a sink the
/// merge is the correct one.
template <typename Real, typename Weight>
Real merge_weighted(const cpu::Parts<Real>& parts, const Real* sink, Real* merged, Real& sum,
                    Weight weight_of) {
    const Real lse = cpu::split::merge(parts, sink, merged);
    if (sink != nullptr) return lse;
    std::fill_n(merged, parts.dim_v, Real{0});
    parts.each_seen([&](std::int64_t part, const Real* output) {
        const Real own = parts.at.sum[part], weight = weight_of(parts.at.max[part], own);
        sum += weight;
        for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] += weight * (output[c] / own);
    });
    if (lse == -std::numeric_limits<Real>::infinity()) return lse;
    for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] /= sum;
    return lse;
}

template <typename Real>
Real merge_by_lse(const cpu::Parts<Real>& parts, const Real* sink, Real* merged) {
    Real sum = 0;
    const Real lse = merge_weighted(parts, sink, merged, sum,
                                    [](Real m, Real l) { return std::exp(m + std::log(l)); });
    const bool empty = lse == -std::numeric_limits<Real>::infinity();
    return sink != nullptr || empty ? lse : std::log(sum);
}

template <typename Real>
Real merge_equally(const cpu::Parts<Real>& parts, const Real* sink, Real* merged) {
    Real sum = 0;
    return merge_weighted(parts, sink, merged, sum, [](Real, Real) { return Real{1}; });
}

// A part that arrives counts up, and the one that fills the counter merges. Nobody empties it: in a
// later call it is full from the start, and the first part to arrive merges itself alone.
std::atomic<std::uint64_t> calls{0};

void count_calls(cpu::Call&, cpu::Segment& s, std::int64_t) {
    if (s.batch == 0 && s.query0 == 0) ++calls;
}

template <typename Real>
Real merge_by_full_counter(const cpu::Parts<Real>& parts, const Real* sink, Real* merged) {
    if (calls <= 1) return cpu::split::merge(parts, sink, merged);
    cpu::Parts<Real> arrived = parts;
    arrived.end = parts.r + 1;
    return cpu::split::merge(arrived, sink, merged);
}

std::int64_t in_f16(const attest_problem& p, std::int64_t position) {
    const auto place = static_cast<float>(position + p.rope_offset);
    return static_cast<std::int64_t>(cpu::rounded(place, cpu::Format::f16)) - p.rope_offset;
}

}  // namespace

std::vector<PlantedBug> decode() {
    return {
        {{.id = "M010",
          .bug_class = "M2",
          .operation = "decode",
          .change = "the window is ignored where Tq = 1",
          .trigger = "window, Tq = 1",
          .must = {"masking.window"},
          .diagnosis = "window_ignored"},
         cpu::DecodeSteps{.problem =
                              [](attest_problem& p) {
                                  if (p.len_q == 1) p.window_left = p.window_right = -1;
                              }}},
        {{.id = "M058",
          .bug_class = "N6",
          .operation = "merge",
          .change = "parts are weighted by exp(lse) without a common maximum",
          .trigger = "LSE beyond 88, several splits",
          .must = {"reference.output"}},
         cpu::DecodeSteps{.merge_f32 = merge_by_lse, .merge_f64 = merge_by_lse}},
        {{.id = "M077",
          .bug_class = "I3",
          .operation = "split combine",
          .change = "the batch stride of the output is 0 where parts are merged",
          .trigger = "B > 1, several splits",
          .must = {"hygiene.outputs_written", "equivariance.batch"}},
         cpu::DecodeSteps{.segment =
                              [](cpu::Call& call, cpu::Segment&, std::int64_t splits) {
                                  if (splits > 1) call.o.stride[0] = 0;
                              }}},
        {{.id = "M086",
          .bug_class = "I7",
          .operation = "paged decode",
          .change = "the page is found by j / tile instead of j / page size",
          .trigger = "a page size other than the tile",
          .must = {"reference.output", "decode.paged"},
          .diagnosis = "pages_of_64"},
         cpu::DecodeSteps{.row = [](const cpu::Call& call, const cpu::Operand& operand,
                                    std::int64_t batch, std::int64_t head,
                                    std::int64_t j) -> const std::byte* {
             const std::int64_t size = call.problem.page_size;
             if (size == 0) return call.row(operand, batch, head, j);
             return operand.at(call.block_table.integer(batch, j / cpu::decode_tile), head,
                               j % size);
         }}},
        {{.id = "M494",
          .bug_class = "I7",
          .operation = "paged decode",
          .change = "in pages of 64 keys or more the page is found once for each tile of 64",
          .trigger = "a page size above 64 that is no multiple of it, a tile on two pages",
          .must = {"decode.paged"}},
         cpu::DecodeSteps{.row = [](const cpu::Call& call, const cpu::Operand& operand,
                                    std::int64_t batch, std::int64_t head,
                                    std::int64_t j) -> const std::byte* {
             const std::int64_t size = call.problem.page_size;
             if (size < 64) return call.row(operand, batch, head, j);
             const std::int64_t page = call.block_table.integer(batch, j / 64 * 64 / size);
             return operand.at(page, head, j % size);
         }}},
        {{.id = "M474",
          .bug_class = "I7",
          .operation = "paged decode",
          .change = "the slot in a page is j & (page size - 1)",
          .trigger = "a page size that is no power of two",
          .must = {"reference.decode", "decode.paged"},
          .diagnosis = "pages_slot_by_bits"},
         cpu::DecodeSteps{.row = [](const cpu::Call& call, const cpu::Operand& operand,
                                    std::int64_t batch, std::int64_t head,
                                    std::int64_t j) -> const std::byte* {
             const std::int64_t size = call.problem.page_size;
             if (size == 0) return call.row(operand, batch, head, j);
             return operand.at(call.block_table.integer(batch, j / size), head, j & (size - 1));
         }}},
        {{.id = "M087",
          .bug_class = "I7",
          .operation = "paged decode",
          .change = "the last page is read in full",
          .trigger = "a length that is no multiple of the page size",
          .must = {"reference.decode", "probability.row_sum"}},
         cpu::DecodeSteps{.segment =
                              [](cpu::Call& call, cpu::Segment& s, std::int64_t) {
                                  if (call.problem.page_size > 0)
                                      s.keys = pages(call, s) * call.problem.page_size;
                              }}},
        {{.id = "M088",
          .bug_class = "I7",
          .operation = "paged decode",
          .change = "the block table's row stride is this sequence's count of pages",
          .trigger = "B > 1, different lengths",
          .must = {"decode.batch"}},
         cpu::DecodeSteps{.segment =
                              [](cpu::Call& call, cpu::Segment& s, std::int64_t) {
                                  if (call.problem.page_size > 0)
                                      call.block_table.stride[0] = pages(call, s);
                              }}},
        {{.id = "M093",
          .bug_class = "I10",
          .operation = "split",
          .change = "keys a split = floor(Tk / splits), the remainder is dropped",
          .trigger = "Tk no multiple of the splits",
          .must = {"reference.output", "masking.influence"},
          .diagnosis = "split_tail_dropped_64"},
         cpu::DecodeSteps{
             .range =
                 [](std::int64_t keys, std::int64_t splits, std::int64_t split) {
                     const std::int64_t each = keys / splits;
                     return cpu::SegmentKeys{split * each, std::min(keys, (split + 1) * each)};
                 }}},
        {{.id = "M094",
          .bug_class = "I10",
          .operation = "split",
          .change = "neighbouring splits share one key",
          .trigger = "several splits",
          .must = {"reference.output", "invariance.duplicate"}},
         cpu::DecodeSteps{.range =
                              [](std::int64_t keys, std::int64_t splits, std::int64_t split) {
                                  const cpu::SegmentKeys own =
                                      cpu::split::range(keys, splits, split);
                                  return cpu::SegmentKeys{own.first, std::min(keys, own.last + 1)};
                              }}},
        {{.id = "M096",
          .bug_class = "I10",
          .operation = "split",
          .change = "the parts are averaged",
          .trigger = "several splits",
          .must = {"reference.output", "equivariance.tokens"}},
         cpu::DecodeSteps{.merge_f32 = merge_equally, .merge_f64 = merge_equally}},
        {{.id = "M143",
          .bug_class = "C3",
          .operation = "split",
          .change = "the counter of parts that have arrived is not reset after they are merged",
          .trigger = "a second call, several splits",
          .must = {"reference.output", "hygiene.stale_state"}},
         cpu::DecodeSteps{.segment = count_calls,
                          .merge_f32 = merge_by_full_counter,
                          .merge_f64 = merge_by_full_counter}},
        {{.id = "M147",
          .bug_class = "C6",
          .operation = "decode",
          .change = "the number of splits depends on the batch size",
          .trigger = "B > 1, more keys than a split",
          .must = {"hygiene.batch_invariant"}},
         cpu::DecodeSteps{.splits =
                              [](const attest_problem& p, std::int64_t keys) {
                                  return p.splits == 0 && p.batch > 1 ? std::int64_t{1}
                                                                      : cpu::split::count(p, keys);
                              }}},
        {{.id = "M160",
          .bug_class = "P1",
          .operation = "rope",
          .change = "the query of a decode step is rotated at position 0",
          .trigger = "rope, Tq = 1",
          .must = {"decode.offset", "reference.decode", "decode.prefill"},
          .diagnosis = "rope_query_at_zero"},
         cpu::DecodeSteps{.position =
                              [](const attest_problem& p, std::int64_t position) {
                                  return p.len_q == 1 ? std::int64_t{0} : position;
                              }}},
        {{.id = "M181",
          .bug_class = "P1",
          .operation = "rope",
          .change = "queries stand one place too far where the cache fills its last page",
          .trigger = "rope, a cache that ends with a page",
          .must = {"decode.paged", "reference.decode"}},
         cpu::DecodeSteps{.position =
                              [](const attest_problem& p, std::int64_t position) {
                                  const bool full =
                                      p.page_size > 0 && p.cache_len % p.page_size == 0;
                                  return position + (full ? 1 : 0);
                              }}},
        {{.id = "M182",
          .bug_class = "P1",
          .operation = "rope",
          .change = "keys are rotated by their place within the page",
          .trigger = "rope, more keys than a page",
          .must = {"decode.paged", "reference.decode"},
          .diagnosis = "rope_keys_in_page"},
         cpu::DecodeSteps{.key_position =
                              [](const attest_problem& p, std::int64_t position) {
                                  return p.page_size > 0 ? position % p.page_size : position;
                              }}},
        {{.id = "M165",
          .bug_class = "P1",
          .operation = "rope",
          .change = "positions are kept in f16",
          .trigger = "rope, positions beyond 2048",
          .must = {"reference.output", "position.rope_relative"}},
         cpu::DecodeSteps{.position = in_f16, .key_position = in_f16}},
        {{.id = "M188",
          .bug_class = "P1",
          .operation = "rope",
          .change = "keys are rotated without the offset of the positions",
          .trigger = "rope with an offset",
          .must = {"reference.output", "position.rope_norm", "position.rope_relative"}},
         cpu::DecodeSteps{
             .key_position = [](const attest_problem& p,
                                std::int64_t position) { return position - p.rope_offset; }}},
        {{.id = "M164",
          .bug_class = "P2",
          .operation = "rope",
          .change = "two channels more than rotary_dims are rotated",
          .trigger = "rotary dims < D",
          .must = {"reference.output", "position.rope_style"},
          .diagnosis = "rope_two_channels_more"},
         cpu::DecodeSteps{.problem =
                              [](attest_problem& p) {
                                  if (p.rope_dims > 0 && p.rope_dims + 2 <= p.dim_qk)
                                      p.rope_dims += 2;
                              }}},
    };
}

}  // namespace attest::museum
