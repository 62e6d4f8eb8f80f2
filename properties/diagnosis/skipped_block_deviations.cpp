// Deviations of backward's loop over blocks of queries and keys: a block is passed over by what one
// of its queries sees.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

KeyExtent tile_of(KeyExtent all, std::int64_t at, std::int64_t tile) {
    const std::int64_t begin = all.begin + (at - all.begin) / tile * tile;
    return {begin, std::min(begin + tile, all.end)};
}

BackwardDeviation skipped(bool last, std::int64_t queries, std::int64_t keys) {
    const char* which = last ? "last" : "first";
    return exchanged_step(
        fmt::format("blocks_{}_query_{}_{}", which, queries, keys),
        fmt::format("no block of {} queries and {} keys whose {} query sees none of these", queries,
                    keys, which),
        [=](const BackwardCall&, ModelSteps& s) {
            s.sees = [=](const ModelRow& row, std::int64_t j, bool is) {
                if (!is) return false;
                const SegmentExtent segment = segment_of(row.call.problem(), row.b, row.i);
                const KeyExtent rows = tile_of(segment.queries, row.i, queries);
                const KeyExtent tile = tile_of(segment.keys, j, keys);
                const std::int64_t asked = last ? rows.end - 1 : rows.begin;
                for (std::int64_t n = tile.begin; n < tile.end; ++n)
                    if (row.call.score(row.b, row.h, asked, n).visible) return true;
                return false;
            };
        });
}

/// A block of queries and one of keys, each counted in its sequence or document.
struct LoopBlock {
    KeyExtent queries, keys;
    std::int64_t before = 0, before_by_axes = 0;  ///< keys before row 0, and as the axes have it
    std::int64_t left = -1, right = -1;           ///< of the window
    std::int64_t right_alone = -1;                ///< of a window beside no causal mask
};

/// Whether the loop comes to a block.
struct LoopTest {
    const char *id, *says;
    bool (*kept)(const LoopBlock&);
};
constexpr LoopTest loop_tests[] = {
    {"left_of_first_key",
     "no block of {} queries and {} keys that begins past the window of the first of these",
     [](const LoopBlock& b) {
         return b.left < 0 || b.queries.begin + b.before <= b.keys.begin + b.left;
     }},
    {"right_of_last_key",
     "no block of {} queries and {} keys whose last query does not see the last of these",
     [](const LoopBlock& b) {
         return b.right < 0 || b.queries.end + b.before + b.right >= b.keys.end;
     }},
    {"right_of_first_key",
     "no block of {} queries and {} keys whose first query does not see the first of these",
     [](const LoopBlock& b) {
         return b.right_alone < 0 || b.queries.begin + b.before + b.right_alone >= b.keys.begin;
     }},
    {"right_as_zero", "no block of {} queries and {} keys that only a window's right side reaches",
     [](const LoopBlock& b) { return b.right <= 0 || b.queries.end + b.before > b.keys.begin; }},
    {"left_as_zero", "no block of {} queries and {} keys that only a window's left side reaches",
     [](const LoopBlock& b) { return b.left <= 0 || b.queries.begin + b.before < b.keys.end; }},
    {"by_axes",
     "no block of {} queries and {} keys that is past the diagonal by the lengths of the axes",
     [](const LoopBlock& b) {
         return b.right < 0 || b.queries.end + b.before_by_axes + b.right > b.keys.begin;
     }},
};

/// A causal mask is a window without a right side.
LoopBlock loop_block(const ModelRow& row, std::int64_t j, std::int64_t queries, std::int64_t keys) {
    const Problem& p = row.call.problem();
    const SegmentExtent own = segment_of(p, row.b, row.i);
    const auto local = [](KeyExtent all, KeyExtent part) {
        return KeyExtent{part.begin - all.begin, part.end - all.begin};
    };
    LoopBlock block{local(own.queries, tile_of(own.queries, row.i, queries)),
                    local(own.keys, tile_of(own.keys, j, keys))};
    const bool top_left =
        row.call.call.dialect.causal == CausalAlignment::top_left && !p.cache.present;
    block.before =
        top_left ? 0 : own.keys.end - own.keys.begin - own.queries.end + own.queries.begin;
    block.before_by_axes = p.len_kv - p.len_q;
    block.left = p.mask.window.left;
    block.right = p.mask.causal ? 0 : p.mask.window.right;
    block.right_alone = p.mask.causal ? -1 : p.mask.window.right;
    return block;
}

BackwardDeviation looped(const LoopTest& test, std::int64_t queries, std::int64_t keys) {
    return exchanged_step(fmt::format("loop_{}_{}_{}", test.id, queries, keys),
                          fmt::format(fmt::runtime(test.says), queries, keys),
                          [kept = test.kept, queries, keys](const BackwardCall&, ModelSteps& s) {
                              s.sees = [=](const ModelRow& row, std::int64_t j, bool is) {
                                  return is && kept(loop_block(row, j, queries, keys));
                              };
                          });
}

/// What a mask tensor shows in the corners of a block it is taken to show in all of it.
BackwardDeviation corners_shown(std::int64_t queries, std::int64_t keys) {
    return {.id = fmt::format("mask_corners_{}_{}", queries, keys),
            .says = fmt::format("all of a block of {} queries and {} keys whose corners a boolean "
                                "mask shows",
                                queries, keys),
            .respecify = [=](const Specification& s) -> std::optional<Specification> {
                if (s.problem.mask.tensor.kind != MaskKind::boolean) return std::nullopt;
                const Tensor& mask = s.inputs[Role::mask];
                const Shape shape = mask.shape();
                Specification out = s;
                out.inputs.put(
                    Role::mask,
                    remake(mask.type(), shape,
                           [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                               const KeyExtent rows = tile_of({0, shape[2]}, i, queries);
                               const KeyExtent row = tile_of({0, shape[3]}, j, keys);
                               for (const std::int64_t y : {rows.begin, rows.end - 1})
                                   for (const std::int64_t x : {row.begin, row.end - 1})
                                       if (mask.at(b, h, y, x) == 0) return mask.at(b, h, i, j);
                               return 1.0;
                           }));
                return out.inputs == s.inputs ? std::nullopt : std::optional(std::move(out));
            },
            .plain_beyond = true};
}

}  // namespace

std::vector<BackwardDeviation> skipped_block_deviations() {
    std::vector<BackwardDeviation> list;
    for (const bool last : {false, true})
        for (const std::int64_t queries : {16, 32, 64, 128})
            for (const std::int64_t keys : {16, 32, 64, 128})
                list.push_back(skipped(last, queries, keys));
    for (const std::int64_t queries : {16, 32, 64, 128})
        for (const std::int64_t keys : {16, 32, 64, 128}) {
            for (const LoopTest& test : loop_tests) list.push_back(looped(test, queries, keys));
            list.push_back(corners_shown(queries, keys));
        }
    return list;
}

}  // namespace attest::diagnosis
