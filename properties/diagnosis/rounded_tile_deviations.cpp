// Deviations of backward whose sums are held in the format that they come in, and rounded to it
// after each tile.

#include <fmt/format.h>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

/// Sums over keys, or over queries, that are rounded as each tile is added; with the softmax scale
/// in them already, or not.
struct RoundedTiles {
    bool over_keys = true;
    std::int64_t tile = 1;
    bool scaled = true;
};

void round_tiles(const BackwardCall& call, Predicted& out, const RoundedTiles& rounded_tiles) {
    const auto [over_keys, tile, scaled] = rounded_tiles;
    const Problem& p = call.problem();
    // What RoPE turns back is another sum.
    if (p.rope.style != RopeStyle::none) return out.of.clear();
    const std::int64_t length = over_keys ? p.len_kv : p.len_q;
    if (length <= tile) return;
    const std::vector<Role> roles =
        over_keys ? std::vector{Role::d_q} : std::vector{Role::d_k, Role::d_v};
    const double scale = scaled ? 1 : call.call.scale;
    for (const Role role : roles) out[role].assign(out[role].size(), {});
    for (std::int64_t first = 0; first < length; first += tile) {
        ModelSteps alone;
        alone.sees = [=, &p](const ModelRow& row, std::int64_t j, bool is) {
            const SegmentExtent own = segment_of(p, row.b, row.i);
            const std::int64_t at = over_keys ? j - own.keys.begin : row.i - own.queries.begin;
            return is && at >= first && at < first + tile;
        };
        Predicted own = run_backward(call, alone);
        for (const Role role : roles) {
            const Precision format = law::gradient_format(p, role);
            const double factor = role == Role::d_v ? 1 : scale;
            std::vector<Near>& sum = out[role];
            for (std::size_t n = 0; n < sum.size(); ++n)
                sum[n] =
                    factor *
                    rounded_to(1 / factor * rounded(sum[n] + own[role][n], 2 * call.model.ua, 0),
                               format);
        }
    }
}

}  // namespace

std::vector<BackwardDeviation> rounded_tile_deviations() {
    std::vector<BackwardDeviation> list;
    for (const bool over_keys : {true, false})
        for (const std::int64_t tile : {16, 32, 64, 128})
            for (const bool scaled : {true, false})
                list.push_back(exchanged_step(
                    fmt::format("tiles_rounded_{}_{}", over_keys ? "keys" : "queries", tile),
                    fmt::format("{} rounded to their format after each tile of {} {}",
                                over_keys ? "sums of dQ" : "sums of dK and dV", tile,
                                over_keys ? "keys" : "queries"),
                    [=](const BackwardCall&, ModelSteps& s) {
                        s.afterwards = [=](const BackwardCall& call, Predicted& out) {
                            round_tiles(call, out, {over_keys, tile, scaled});
                        };
                    }));
    return list;
}

}  // namespace attest::diagnosis
