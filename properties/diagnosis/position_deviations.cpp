// Positions taken wrongly, where a bias tells them: ALiBi of the wrong sign, slopes or distance.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

std::optional<Specification> with_slopes(const Specification& s,
                                         const std::function<double(std::int64_t)>& slope_of) {
    if (!s.problem.alibi) return std::nullopt;
    return with_numbers_of_heads(s, Role::alibi_slopes, slope_of);
}

std::int64_t power_up_to(std::int64_t n) {
    std::int64_t p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

// Those of the power of two below H, then every second one of twice that (Press et al. 2022).
double published_slope(std::int64_t h, std::int64_t heads) {
    const std::int64_t n = power_up_to(heads);
    const bool own = h < n;
    const auto number = static_cast<double>(own ? h + 1 : 2 * (h - n) + 1);
    return std::exp2(-8.0 * number / static_cast<double>(own ? n : 2 * n));
}

std::vector<Deviation> slopes_of_its_own() {
    std::vector<Deviation> list;
    list.push_back({.id = "alibi_own_slopes",
                    .says = "slopes 2^(-8(h + 1)/H) of its own instead of those it is given",
                    .respecify = [](const Specification& s) {
                        return with_slopes(s, [&s](std::int64_t h) {
                            return std::exp2(-8.0 * static_cast<double>(h + 1) /
                                             static_cast<double>(s.problem.heads_q));
                        });
                    }});
    list.push_back({.id = "alibi_own_slopes_from_one",
                    .says = "slopes 2^(-8h/H) of its own instead of those it is given",
                    .respecify = [](const Specification& s) {
                        return with_slopes(s, [&s](std::int64_t h) {
                            return std::exp2(-8.0 * static_cast<double>(h) /
                                             static_cast<double>(s.problem.heads_q));
                        });
                    }});
    list.push_back({.id = "alibi_published_slopes",
                    .says = "the published slopes, interleaved where the number of heads is no "
                            "power of two, instead of those it is given",
                    .respecify = [](const Specification& s) {
                        return with_slopes(s, [&s](std::int64_t h) {
                            return published_slope(h, s.problem.heads_q);
                        });
                    }});
    list.push_back({.id = "alibi_slopes_of_power",
                    .says = "slopes 2^(-8(h + 1)/N) of its own, N the power of two up to H",
                    .respecify = [](const Specification& s) {
                        return with_slopes(s, [&s](std::int64_t h) {
                            return std::exp2(-8.0 * static_cast<double>(h + 1) /
                                             static_cast<double>(power_up_to(s.problem.heads_q)));
                        });
                    }});
    return list;
}

std::vector<Deviation> other_distances() {
    std::vector<Deviation> list;
    // A bias of its own instead of -slope |column - position of the query|.
    const auto other_distance = [&](std::string id, std::string says,
                                    std::int64_t (*distance)(const MaskPlace&)) {
        list.push_back(
            {.id = std::move(id),
             .says = std::move(says),
             .respecify = [distance](const Specification& s) -> std::optional<Specification> {
                 if (!s.problem.alibi) return std::nullopt;
                 return with_distances(s, rules_of(s), [distance](const MaskPlace& p) {
                     return static_cast<double>(distance(p));
                 });
             }});
    };
    other_distance("alibi_from_key_zero", "ALiBi by the key's position alone",
                   [](const MaskPlace& p) { return -p.column; });
    other_distance("alibi_from_last_key", "ALiBi by the key's distance from the last key",
                   [](const MaskPlace& p) { return p.len_kv - 1 - p.column; });
    other_distance("alibi_signed", "ALiBi by the distance with its sign",
                   [](const MaskPlace& p) { return p.row + p.len_kv - p.len_q - p.column; });
    other_distance("alibi_from_one", "ALiBi by the distance and one", [](const MaskPlace& p) {
        return std::abs(p.row + p.len_kv - p.len_q - p.column) + 1;
    });
    other_distance("alibi_behind_alone", "ALiBi on keys behind the query alone",
                   [](const MaskPlace& p) {
                       return std::max<std::int64_t>(p.row + p.len_kv - p.len_q - p.column, 0);
                   });
    list.push_back(
        {.id = "alibi_in_split",
         .says = "ALiBi by the key's number in its split",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             if (!s.problem.alibi || s.problem.splits < 2) return std::nullopt;
             return with_distances(s, rules_of(s), [&s](const MaskPlace& p) {
                 const std::int64_t each = std::max<std::int64_t>(
                     1, (p.len_kv + s.problem.splits - 1) / s.problem.splits);
                 const std::int64_t in_split = p.column >= 0 ? p.column % each : p.column;
                 return static_cast<double>(std::abs(p.row + p.len_kv - p.len_q - in_split));
             });
         }});
    other_distance("alibi_top_left", "ALiBi as if nothing were cached",
                   [](const MaskPlace& p) { return std::abs(p.row - p.column); });
    return list;
}

}  // namespace

std::vector<Deviation> position_deviations() {
    std::vector<Deviation> list = rotation_deviations();
    const auto slope = [](const Specification& s, std::int64_t h) {
        return s.inputs[Role::alibi_slopes].get(h);
    };
    list.push_back({.id = "alibi_negated",
                    .says = "ALiBi of the wrong sign",
                    .respecify = [slope](const Specification& s) {
                        return with_slopes(s, [&](std::int64_t h) { return -slope(s, h); });
                    }});
    list.push_back(
        {.id = "alibi_ignored", .says = "no ALiBi at all", .respecify = [](const Specification& s) {
             return with_slopes(s, [](std::int64_t) { return 0.0; });
         }});
    list.push_back({.id = "alibi_scaled",
                    .says = "ALiBi multiplied by the scale",
                    .respecify = [slope](const Specification& s) -> std::optional<Specification> {
                        const double scale = effective_scale(s.problem);
                        if (scale == 1) return std::nullopt;
                        return with_slopes(s, [&](std::int64_t h) { return scale * slope(s, h); });
                    }});
    const auto times = [&](std::string id, std::string says, double factor) {
        list.push_back({.id = std::move(id),
                        .says = std::move(says),
                        .respecify = [slope, factor](const Specification& s) {
                            return with_slopes(
                                s, [&](std::int64_t h) { return factor * slope(s, h); });
                        }});
    };
    times("alibi_into_base_two", "ALiBi multiplied by log2(e)", std::numbers::log2e);
    times("alibi_of_base_two", "ALiBi taken for one in base 2: ln(2) of it", std::numbers::ln2);
    times("alibi_twice", "ALiBi added twice", 2);
    list.push_back({.id = "alibi_next_head",
                    .says = "the ALiBi slope of the next head",
                    .respecify = [slope](const Specification& s) {
                        return with_slopes(s, [&](std::int64_t h) {
                            return slope(s, (h + 1) % s.problem.heads_q);
                        });
                    }});
    list.push_back({.id = "alibi_of_key_head",
                    .says = "the ALiBi slope of the key head",
                    .respecify = [slope](const Specification& s) {
                        return with_slopes(
                            s, [&](std::int64_t h) { return slope(s, h / group_size(s.problem)); });
                    }});
    for (Deviation& d : slopes_of_its_own()) list.push_back(std::move(d));
    for (Deviation& d : other_distances()) list.push_back(std::move(d));
    return list;
}

}  // namespace attest::diagnosis
