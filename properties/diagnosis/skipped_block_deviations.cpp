// Deviations of backward's loop over blocks of queries and keys: a block is passed over by what one
// of its queries sees.

#include <fmt/format.h>

#include <algorithm>

#include "properties/diagnosis/backward_deviation.hpp"
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

}  // namespace

std::vector<BackwardDeviation> skipped_block_deviations() {
    std::vector<BackwardDeviation> list;
    for (const bool last : {false, true})
        for (const std::int64_t queries : {16, 32, 64, 128})
            for (const std::int64_t keys : {16, 32, 64, 128})
                list.push_back(skipped(last, queries, keys));
    return list;
}

}  // namespace attest::diagnosis
