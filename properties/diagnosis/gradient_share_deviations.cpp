// Deviations of backward whose query heads each leave a share of dK and dV in the format that these
// come in, where a group has several: rounded before they are added up, or as their sum grows. Sums
// that are rounded after each tile, and gradients that are cut off instead of rounded.

#include <fmt/format.h>

#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

enum class RoundedShares : std::uint8_t { shares, growing_sum, both };

/// dK and dV of one query head of each group.
Predicted share_of(const BackwardCall& call, std::int64_t member) {
    ModelSteps alone;
    alone.into_keys = [member](const BackwardCall& c, std::int64_t h) {
        return h % c.call.group == member;
    };
    return run_backward(call, alone);
}

void round_heads(const BackwardCall& call, Predicted& out, RoundedShares what) {
    constexpr Role roles[] = {Role::d_k, Role::d_v};
    for (const Role role : roles) out[role].assign(out[role].size(), {});
    for (std::int64_t member = 0; member < call.call.group; ++member) {
        Predicted own = share_of(call, member);
        for (const Role role : roles) {
            const Precision format = law::gradient_format(call.problem(), role);
            std::vector<Near>& sum = out[role];
            for (std::size_t n = 0; n < sum.size(); ++n) {
                const Near share = own[role][n];
                sum[n] = sum[n] +
                         (what == RoundedShares::growing_sum ? share : rounded_to(share, format));
                if (what != RoundedShares::shares) sum[n] = rounded_to(sum[n], format);
                sum[n] = rounded(sum[n], call.model.ua, 0);
            }
        }
    }
}

BackwardDeviation heads_rounded(const char* id, const char* says, RoundedShares what) {
    return exchanged_step(id, says, [what](const BackwardCall& call, ModelSteps& s) {
        if (call.call.group == 1) return;
        s.afterwards = [what](const BackwardCall& c, Predicted& out) { round_heads(c, out, what); };
    });
}

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

void add_rounded_tiles(std::vector<BackwardDeviation>& list) {
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
}

Near number_cut_off(Near x, Precision format) {
    const double low = cut_off(x.value - x.error, format),
                 high = cut_off(x.value + x.error, format);
    return {(low + high) / 2, std::abs(high - low) / 2};
}

/// What every gradient is finished with.
void cut_gradients_off(const BackwardCall& call, Predicted& out) {
    for (const Role role : gradient_roles)
        for (Near& x : out[role])
            if (std::isfinite(most(x)))
                x = number_cut_off(x, law::gradient_format(call.problem(), role));
}

}  // namespace

std::vector<BackwardDeviation> gradient_share_deviations() {
    std::vector<BackwardDeviation> list{
        heads_rounded("heads_rounded_apart",
                      "dK and dV of each query head rounded to their format before a group's "
                      "are added up",
                      RoundedShares::shares),
        heads_rounded("heads_rounded_as_added",
                      "dK and dV rounded to their format whenever a query head's are added",
                      RoundedShares::growing_sum),
        heads_rounded("heads_rounded_and_as_added",
                      "dK and dV of each query head rounded to their format, and again "
                      "whenever they are added to a group's",
                      RoundedShares::both),
        {.id = "gradients_cut_off",
         .says = "gradients cut off instead of rounded",
         .change = [](const BackwardCall&, ModelSteps& s) { s.afterwards = cut_gradients_off; },
         .in_forward = "output_cut_off"}};
    add_rounded_tiles(list);
    return list;
}

}  // namespace attest::diagnosis
