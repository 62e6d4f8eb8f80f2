// Planted bugs in what a query may see.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

/// Hidden keys get a score instead of being left out.
void reveal(const cpu::PlainRow& row, float score) {
    for (std::int64_t j = 0; j < row.keys; ++j) {
        if (row.hidden[j]) row.scores[j] = score;
        row.hidden[j] = false;
    }
    cpu::plain::absorb(row);
}

/// The mask tensor hides a whole tile of keys from a query.
bool tile_hidden(const cpu::QueryBlock& b, std::int64_t i, std::int64_t key0) {
    const std::int64_t end = std::min(key0 + cpu::plain_tile, b.segment.keys);
    for (std::int64_t j = key0; j < end; ++j)
        if (!cpu::plain::mask(b, i, j).hidden) return false;
    return true;
}

}  // namespace

std::vector<PlantedBug> masking() {
    return {
        {{.id = "M001",
          .bug_class = "M1",
          .operation = "flash forward",
          .change = "causal test j <= i instead of j <= i + (Tk - Tq)",
          .trigger = "causal, Tq < Tk",
          .must = {"reference.output", "masking.alignment", "decode.chunked"},
          .diagnosis = "causal_top_left"},
         cpu::FlashSteps{
             .causal_diagonal = [](const cpu::QueryBlock&, std::int64_t i) { return i; }}},
        {{.id = "M003",
          .bug_class = "M1",
          .operation = "flash forward",
          .change = "causal leak: j <= i + off + 1",
          .trigger = "causal",
          .must = {"reference.output", "masking.causal", "probability.masked_zero",
                   "convex_hull.support"},
          .diagnosis = "causal_one_more"},
         cpu::FlashSteps{
             .causal_diagonal = [](const cpu::QueryBlock& b,
                                   std::int64_t i) { return cpu::plain::diagonal(b, i) + 1; }}},
        {{.id = "M004",
          .bug_class = "M1",
          .operation = "flash forward",
          .change = "the causal mask is applied only in the tile of the block's first diagonal",
          .trigger = "causal, a block whose rows end in two tiles",
          .source = "https://github.com/Dao-AILab/flash-attention/pull/436",
          .must = {"reference.output", "masking.causal"}},
         cpu::FlashSteps{.causal =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const bool diagonal =
                                     j / cpu::plain_tile ==
                                     floor_div(b.segment.offset + b.row0, cpu::plain_tile);
                                 return !diagonal || cpu::plain::causal(b, i, j);
                             }}},
        {{.id = "M006",
          .bug_class = "M8",
          .operation = "flash forward",
          .change = "the fast path for Tk a multiple of the tile forgets the causal mask",
          .trigger = "causal, Tk a multiple of the tile",
          .source = "https://github.com/bledden/triton-msl/pull/7",
          .must = {"reference.output", "masking.causal"}},
         cpu::FlashSteps{.causal =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 return b.segment.keys % cpu::plain_tile == 0 ||
                                        cpu::plain::causal(b, i, j);
                             }}},
        {{.id = "M007",
          .bug_class = "M1",
          .operation = "chunked prefill",
          .change = "the window is placed by the row within the chunk, the causal mask by the "
                    "absolute row",
          .trigger = "window, Tq != Tk",
          .source = "https://github.com/vllm-project/vllm/pull/47332",
          .must = {"reference.output", "masking.window"}},
         cpu::FlashSteps{
             .window_diagonal = [](const cpu::QueryBlock&, std::int64_t i) { return i; }}},
        {{.id = "M008",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "the row index is divided by the group size in the causal test although rows "
                    "are not packed",
          .trigger = "GQA and causal",
          .source = "https://github.com/Dao-AILab/flash-attention/issues/2528",
          .must = {"reference.output"}},
         cpu::FlashSteps{.causal_diagonal =
                             [](const cpu::QueryBlock& b, std::int64_t i) {
                                 return cpu::plain::diagonal(b, i / b.call.group);
                             }}},
        {{.id = "M009",
          .bug_class = "M2",
          .operation = "flash forward",
          .change = "the window is one key wider to the left",
          .trigger = "window narrower than the keys",
          .must = {"reference.output", "masking.window"},
          .diagnosis = "window_left_one_more"},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 if (call.problem.window_left >= 0) ++call.problem.window_left;
                             }}},
        {{.id = "M011",
          .bug_class = "M2",
          .operation = "flash forward",
          .change = "the first tile of keys is found from the last row of the block",
          .trigger = "window, several rows a block",
          .must = {"reference.decode", "masking.equivalence"}},
         cpu::FlashSteps{.needed =
                             [](const cpu::QueryBlock& b) {
                                 cpu::SegmentKeys keys = cpu::plain::needed(b);
                                 const std::int64_t left = b.call.problem.window_left;
                                 const std::int64_t last_row = b.row0 + b.rows - 1;
                                 if (left >= 0)
                                     keys.first = std::max<std::int64_t>(
                                         0, cpu::plain::diagonal(b, last_row) - left);
                                 return keys;
                             }}},
        {{.id = "M012",
          .bug_class = "M3",
          .operation = "flash forward",
          .change = "keys a mask tensor hides score -1e30 and count: a row it leaves empty is a "
                    "mean of the values",
          .trigger = "a row that a mask tensor leaves without a key",
          .must = {"reference.output", "masking.empty_row"}},
         cpu::FlashSteps{.absorb = [](const cpu::PlainRow& row) { reveal(row, -1e30f); }}},
        {{.id = "M014",
          .bug_class = "C4",
          .operation = "flash forward",
          .change = "a row with no visible key returns early and stores nothing",
          .trigger = "a row with no visible key",
          .must = {"hygiene.outputs_written"}},
         cpu::FlashSteps{.finish =
                             [](const cpu::PlainRow& row) {
                                 if (row.seen) cpu::plain::finish(row);
                             }}},
        {{.id = "M016",
          .bug_class = "M4",
          .operation = "flash forward",
          .change = "the tail is bounded by j <= Tk",
          .trigger = "Tk not a multiple of the tile",
          .must = {"invariance.neutral_key", "hygiene.bounds"}},
         cpu::FlashSteps{.segment = [](const cpu::Call&, cpu::Segment& s) { ++s.keys; }}},
        {{.id = "M017",
          .bug_class = "N8",
          .operation = "flash forward",
          .change = "weights past the length are 0, but the values there are still multiplied",
          .trigger = "lens_kv < Tk, NaN behind the length",
          .must = {"masking.poison"}},
         cpu::FlashSteps{.absorb =
                             [](const cpu::PlainRow& row) {
                                 cpu::plain::absorb(row);
                                 const cpu::QueryBlock& b = row.block;
                                 const std::int64_t dim_v = b.call.problem.dim_v;
                                 const std::int64_t end =
                                     std::min(cpu::plain_tile, b.call.problem.len_kv - row.key0);
                                 for (std::int64_t j = row.keys; j < end; ++j) {
                                     float* value = row.values + j * dim_v;
                                     cpu::plain::load(
                                         b.call.v,
                                         b.call.v.at(b.segment.batch, b.kv_head, row.key0 + j),
                                         dim_v, value);
                                     cpu::plain::add_value(row, 0, value);
                                 }
                             }}},
        {{.id = "M019",
          .bug_class = "N1",
          .operation = "flash forward",
          .change = "a hidden score is -1e4 instead of -inf",
          .trigger = "scores below -1e4, or an empty row",
          .must = {"reference.output", "masking.empty_row"}},
         cpu::FlashSteps{.absorb = [](const cpu::PlainRow& row) { reveal(row, -1e4f); }}},
        {{.id = "M033",
          .bug_class = "M11",
          .operation = "flash forward",
          .change = "key lengths are ignored: the capacity is used",
          .trigger = "lens_kv < Tk",
          .must = {"reference.output", "masking.padding"},
          .diagnosis = "key_lengths_no_limit"},
         cpu::FlashSteps{.segment = [](const cpu::Call& call,
                                       cpu::Segment& s) { s.keys = call.problem.len_kv; }}},
        {{.id = "M034",
          .bug_class = "M10",
          .operation = "flash forward",
          .change = "a tile of keys is skipped where its first mask element is hidden",
          .trigger = "a mask tensor",
          .must = {"reference.output", "masking.influence", "equivariance.keys"}},
         cpu::FlashSteps{.visible =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const std::int64_t key0 = j / cpu::plain_tile * cpu::plain_tile;
                                 return cpu::plain::visible(b, i, j) &&
                                        !cpu::plain::mask(b, b.row0, key0).hidden;
                             }}},
        {{.id = "M178",
          .bug_class = "M10",
          .operation = "flash forward",
          .change =
              "a tile of keys is skipped where the mask hides all of it from the block's first "
              "row",
          .trigger = "a mask tensor, a tile hidden from one row and not from the next",
          .must = {"reference.output", "masking.influence"}},
         cpu::FlashSteps{.visible =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const std::int64_t key0 = j / cpu::plain_tile * cpu::plain_tile;
                                 return cpu::plain::visible(b, i, j) &&
                                        !tile_hidden(b, b.row0, key0);
                             }}},
        {{.id = "M179",
          .bug_class = "M10",
          .operation = "flash forward",
          .change = "the key behind a tile that the mask hides from a row is skipped with it",
          .trigger = "a mask tensor that hides a whole tile, block-sparse or padding on the left",
          .must = {"reference.output", "masking.influence"}},
         cpu::FlashSteps{.visible =
                             [](const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
                                 const bool behind = j > 0 && j % cpu::plain_tile == 0;
                                 return cpu::plain::visible(b, i, j) &&
                                        !(behind && tile_hidden(b, i, j - cpu::plain_tile));
                             }}},
    };
}

}  // namespace attest::museum
