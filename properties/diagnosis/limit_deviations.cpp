// Numbers that end where they must not: splits, values of an additive mask.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

Deviation splits_end(std::int64_t most) {
    return {.id = fmt::format("splits_end_{}", most),
            .says = fmt::format("attention to the keys of the first {} splits alone", most),
            .respecify = [most](const Specification& s) -> std::optional<Specification> {
                const std::int64_t splits = s.problem.splits;
                if (splits <= most) return std::nullopt;
                return hiding(s, [most, splits](const MaskPlace& p) {
                    const std::int64_t each = (p.len_kv + splits - 1) / splits;
                    return p.column >= most * each && p.column < p.len_kv;
                });
            },
            .tells = law::Tells::visibility};
}

/// What the mask tensor adds, mapped; of boolean masks alone where `boolean`. None where nothing
/// differs.
Deviation mask_values_mapped(std::string id, std::string says, bool boolean,
                             std::function<double(double)> map) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [boolean, map = std::move(map)](
                             const Specification& s) -> std::optional<Specification> {
                const MaskKind kind = s.problem.mask.tensor.kind;
                if (kind == MaskKind::none || (boolean && kind != MaskKind::boolean))
                    return std::nullopt;
                bool differs = false;
                Specification out = with_mask_values(s, [&](double v) {
                    const double hides = v != 0 ? 0.0 : -infinite;
                    const double own = kind == MaskKind::additive ? v : hides;
                    const double mapped = map(own);
                    differs = differs || mapped != own;
                    return mapped;
                });
                return differs ? std::optional(std::move(out)) : std::nullopt;
            }};
}

Deviation mask_values_end(double least) {
    return mask_values_mapped(
        fmt::format("mask_values_from_{:g}", least),
        fmt::format("an additive mask of {:g} where it is less and finite", least), false,
        [least](double v) { return std::isfinite(v) && v < least ? least : v; });
}

Deviation mask_values_hide(double most) {
    return mask_values_mapped(
        fmt::format("mask_values_hide_{:g}", most),
        fmt::format("what a mask tensor adds taken for -inf where it is {:g} or less", most), false,
        [most](double v) { return v <= most ? -infinite : v; });
}

Deviation mask_infinity_finite(double fill, bool boolean) {
    return mask_values_mapped(
        fmt::format("mask_{}_{:g}", boolean ? "boolean" : "infinity", fill),
        fmt::format("{:g} added to the scores that a {} hides, instead of -inf", fill,
                    boolean ? "boolean mask" : "mask tensor"),
        boolean, [fill](double v) { return v == -infinite ? fill : v; });
}

}  // namespace

std::vector<Deviation> early_limits() {
    std::vector<Deviation> list;
    for (const std::int64_t most : {1, 2, 4, 8, 16, 32}) list.push_back(splits_end(most));
    for (const double least : {-10.0, -20.0, -30.0, -50.0, -100.0, -1000.0, -1e4})
        list.push_back(mask_values_end(least));
    for (const double most : {-1e30, -1e9, -1e6, -65504.0, -3e4, -1e4, -1e3})
        list.push_back(mask_values_hide(most));
    for (const double fill : {-10.0, -100.0, -1e3, -1e4, -3e4, -65504.0})
        for (const bool boolean : {true, false})
            list.push_back(mask_infinity_finite(fill, boolean));
    return list;
}

}  // namespace attest::diagnosis
