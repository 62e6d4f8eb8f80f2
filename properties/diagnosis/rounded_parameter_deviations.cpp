// What a call is given and returns beside Q, K, V and O, in a narrower format than it comes in: a
// mask's values, slopes, sinks, the log-sum-exp; and ALiBi's distances in a format or an integer
// that cannot hold them, or up to a limit.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

/// None where nothing is rounded, or nothing changes by it.
std::optional<Specification> rounded_in(const Specification& s, Role role, RoundsTo narrow) {
    const auto format = format_in(narrow, s.problem);
    if (!format || !s.inputs.has(role)) return std::nullopt;
    const auto rounded = [&](double x) { return round_to(x, *format); };
    Specification out = role == Role::mask ? with_mask_values(s, rounded)
                                           : with_numbers_of_heads(s, role, [&](std::int64_t h) {
                                                 return rounded(s.inputs[role].get(h));
                                             });
    if (out.inputs[role].to_doubles() == s.inputs[role].to_doubles()) return std::nullopt;
    return out;
}

Deviation parameter_rounded(Role role, const char* id, const char* what, RoundsTo narrow) {
    return {.id = std::string(id) + "_rounded_" + id_of(narrow),
            .says = std::string(what) + " rounded to " + words_of(narrow),
            .respecify = [role, narrow](const Specification& s) -> std::optional<Specification> {
                const bool boolean =
                    role == Role::mask && s.problem.mask.tensor.kind == MaskKind::boolean;
                return boolean ? std::nullopt : rounded_in(s, role, narrow);
            }};
}

using DistanceTaken = std::function<double(const Specification&, double distance)>;

Deviation distance_taken(std::string id, std::string says, DistanceTaken taken) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify =
                [taken = std::move(taken)](const Specification& s) -> std::optional<Specification> {
                if (!s.problem.alibi) return std::nullopt;
                bool differs = false;
                Specification out = with_distances(s, rules_of(s), [&](const MaskPlace& p) {
                    const auto far =
                        static_cast<double>(std::abs(p.row + p.len_kv - p.len_q - p.column));
                    const double own = taken(s, far);
                    differs = differs || own != far;
                    return own;
                });
                return differs ? std::optional(std::move(out)) : std::nullopt;
            }};
}

double modulo(double distance, std::int64_t n) {
    return static_cast<double>(static_cast<std::int64_t>(distance) % n);
}

// Where it could round either way, either.
Deviation rounded_lse(RoundsTo narrow) {
    return {.id = "lse_rounded_" + id_of(narrow),
            .says = "a log-sum-exp rounded to " + words_of(narrow),
            .formula = [narrow](const Specification& s,
                                const bound::Expected& truth) -> std::optional<bound::Expected> {
                const auto format = format_in(narrow, s.problem);
                if (!format || truth.lse.empty()) return std::nullopt;
                bound::Expected out;
                out.lse = truth.lse;
                for (bound::ExpectedElement& e : out.lse) {
                    const double low = round_to(e.value - e.bound - e.error, *format);
                    const double high = round_to(e.value + e.bound + e.error, *format);
                    if (std::isfinite(low) && std::isfinite(high))
                        e = {(low + high) / 2, 0, (high - low) / 2};
                    else
                        e = {low, 0, low == high ? 0 : infinite};
                }
                return out;
            }};
}

}  // namespace

std::vector<Deviation> rounded_log_sums() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own) list.push_back(rounded_lse(narrow));
    return list;
}

std::vector<Deviation> parameters_rounded() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own) {
        list.push_back(parameter_rounded(Role::mask, "mask", "an additive mask", narrow));
        list.push_back(parameter_rounded(Role::alibi_slopes, "slopes", "slopes", narrow));
        list.push_back(parameter_rounded(Role::sinks, "sinks", "sinks", narrow));
        list.push_back(distance_taken("alibi_distance_rounded_" + id_of(narrow),
                                      "ALiBi by a distance rounded to " + words_of(narrow),
                                      [narrow](const Specification& s, double distance) {
                                          const auto format = format_in(narrow, s.problem);
                                          return format ? round_to(distance, *format) : distance;
                                      }));
    }
    for (const std::int64_t most : {8, 16, 32, 64, 128, 256, 512})
        list.push_back(distance_taken(fmt::format("alibi_distance_ends_{}", most),
                                      fmt::format("ALiBi by a distance of at most {}", most),
                                      [most](const Specification&, double distance) {
                                          return std::min(distance, static_cast<double>(most));
                                      }));
    for (const std::int64_t n : {128, 256, 1024, 32768, 65536})
        list.push_back(distance_taken(
            fmt::format("alibi_distance_mod_{}", n), fmt::format("ALiBi by the distance mod {}", n),
            [n](const Specification&, double distance) { return modulo(distance, n); }));
    for (const int bits : {8, 16})
        list.push_back(distance_taken(
            fmt::format("alibi_distance_signed_{}", bits),
            fmt::format("ALiBi by the distance in {} bits, of which one is a sign", bits),
            [half = std::int64_t{1} << (bits - 1)](const Specification&, double distance) {
                const double ahead = modulo(distance + static_cast<double>(half), 2 * half);
                return ahead - static_cast<double>(half);
            }));
    return list;
}

}  // namespace attest::diagnosis
