// Inputs read wrongly: subnormal numbers of their format taken for 0, indices cut to fewer bits.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// A conversion that flushes: of what is not yet a number of f32, so before any arithmetic.
Deviation inputs_flushed(std::string id, const std::string& tensors, std::vector<Role> roles) {
    return {.id = "f16_subnormals_" + std::move(id),
            .says = "0 for subnormal numbers of f16 in " + tensors,
            .respecify =
                [roles = std::move(roles)](const Specification& s) -> std::optional<Specification> {
                Specification out = s;
                for (const Role role : roles) {
                    if (!s.inputs.has(role) || s.inputs[role].type() != ElementType::f16) continue;
                    Tensor& tensor = out.inputs[role];
                    for (std::int64_t n = 0; n < tensor.size(); ++n)
                        if (std::abs(tensor.get(n)) < 0x1p-14) tensor.set(n, 0);
                }
                if (out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

// Where a page table says where a key lies, its number is no index.
Deviation key_index_cut(std::int64_t kept, std::string id, const std::string& what,
                        std::vector<Role> roles) {
    return {.id = fmt::format("{}_modulo_{}", id, kept),
            .says = fmt::format("{} j mod {} in place of those of key j", what, kept),
            .respecify = [kept, roles = std::move(roles)](
                             const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.len_kv <= kept || p.cache.page_size > 0 || p.cache.ring) return std::nullopt;
                Specification out = s;
                for (const Role role : roles) {
                    const Tensor& t = s.inputs[role];
                    out.inputs.put(role,
                                   remake(t.type(), t.shape(),
                                          [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                              std::int64_t c) { return t.at(b, h, j % kept, c); }));
                }
                return out;
            },
            .tells = law::Tells::visibility};
}

/// Where a key lies, in elements from its sequence's first or the tensor's, counted in 16 bits.
Deviation key_offset_cut(std::string id, const std::string& what, std::vector<Role> roles,
                         bool of_tensor) {
    constexpr std::int64_t kept = 65536;
    return {.id = fmt::format("{}_offset_modulo_{}{}", id, kept, of_tensor ? "_of_tensor" : ""),
            .says = fmt::format("the {} where its offset mod {} lies, in elements of {}", what,
                                kept, of_tensor ? "the tensor" : "its sequence"),
            .respecify = [of_tensor, roles = std::move(roles)](
                             const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.cache.page_size > 0 || p.cache.ring) return std::nullopt;
                bool differs = false;
                Specification out = s;
                for (const Role role : roles) {
                    const Tensor& t = s.inputs[role];
                    const Layout& layout = role == Role::k ? p.layout_k : p.layout_v;
                    const std::int64_t dim = t.shape()[3], rows = t.shape()[1] * t.shape()[2];
                    if (layout != Layout{}) return std::nullopt;
                    const auto read = [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                          std::int64_t c) {
                        const std::int64_t from = of_tensor ? 0 : b * rows * dim;
                        const std::int64_t own = ((b * t.shape()[1] + h) * t.shape()[2] + j) * dim;
                        const std::int64_t cut = (own - from) % kept + from;
                        differs = differs || cut != own;
                        return t.get(cut + c);
                    };
                    out.inputs.put(role, remake(t.type(), t.shape(), read));
                }
                return differs ? std::optional(std::move(out)) : std::nullopt;
            },
            .tells = law::Tells::visibility};
}

// Sequence b is taken to have the keys of sequence b mod N.
Deviation key_lengths_modulo(std::int64_t kept) {
    return {.id = fmt::format("key_lengths_modulo_{}", kept),
            .says = fmt::format("the key length of sequence b mod {} in place of that of b", kept),
            .respecify = [kept](const Specification& s) -> std::optional<Specification> {
                std::vector<std::int64_t> lens = s.problem.mask.lens_kv;
                for (std::size_t b = 0; b < lens.size(); ++b)
                    lens[b] = s.problem.mask.lens_kv[b % static_cast<std::size_t>(kept)];
                if (lens == s.problem.mask.lens_kv) return std::nullopt;
                Specification out = s;
                out.problem.mask.lens_kv = lens;
                Tensor& given = out.inputs[Role::lens_kv];
                for (std::size_t b = 0; b < lens.size(); ++b)
                    given.set(static_cast<std::int64_t>(b), static_cast<double>(lens[b]));
                return out;
            }};
}

}  // namespace

std::vector<Deviation> input_deviations() {
    return {inputs_flushed("everywhere", "queries, keys, values and masks",
                           {Role::q, Role::k, Role::v, Role::mask}),
            inputs_flushed("values", "values", {Role::v}),
            inputs_flushed("queries", "queries", {Role::q}),
            inputs_flushed("keys", "keys", {Role::k})};
}

namespace {

/// Whether a number of a tensor that is at hand is read as it is, or what it is read as.
using ReadAs = double (*)(double);

Deviation read_as(std::string id, std::string says, std::vector<Role> roles, ReadAs as) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [roles = std::move(roles),
                          as](const Specification& s) -> std::optional<Specification> {
                Specification out = s;
                for (const Role role : roles) {
                    if (!s.inputs.has(role) || s.inputs[role].type() != ElementType::f16) continue;
                    Tensor& tensor = out.inputs[role];
                    for (std::int64_t n = 0; n < tensor.size(); ++n)
                        tensor.set(n, as(tensor.get(n)));
                }
                if (out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

// A key is hidden where its own numbers or the query's are NaN.
std::optional<Specification> nan_hides(const Specification& s) {
    const auto has_nan = [&s](Role role, std::int64_t b, std::int64_t h, std::int64_t row) {
        const Tensor& t = s.inputs[role];
        for (std::int64_t c = 0; c < t.shape()[3]; ++c)
            if (std::isnan(t.at(b, h, row, c))) return true;
        return false;
    };
    std::optional<Specification> out = hiding(s, [&](const MaskPlace& p) {
        return has_nan(Role::q, p.batch, p.head, p.query) ||
               has_nan(Role::k, p.batch, p.head / group_size(s.problem), p.key);
    });
    if (!out) return out;
    for (const Role role : {Role::q, Role::k}) {
        Tensor& t = out->inputs[role];
        for (std::int64_t n = 0; n < t.size(); ++n)
            if (std::isnan(t.get(n))) t.set(n, 0);
    }
    return out;
}

// exp(S - m) of an f32 is 0 from 104 below the largest score of its split on (other_maximum.cpp).
std::optional<Specification> zero_weights_skipped(const Specification& s) {
    const Problem& p = s.problem;
    const Tensor& values = s.inputs[Role::v];
    bool finite = true;
    for (std::int64_t n = 0; n < values.size() && finite; ++n)
        finite = std::isfinite(values.get(n));
    if (finite || p.format_q == Precision::f64) return std::nullopt;
    std::vector<std::vector<bool>> lost;
    const auto rows = rows_of(s);
    for (const oracle::RowDetail& row : *rows) {
        const auto flat = static_cast<std::int64_t>(lost.size());
        std::vector<bool>& own = lost.emplace_back(row.scores.size(), false);
        const KeyExtent span = span_of(s, flat / p.len_q / p.heads_q, flat % p.len_q);
        for (const KeyExtent part : split_extents(p, span)) {
            const auto scores = std::span(row.scores)
                                    .subspan(static_cast<std::size_t>(part.begin),
                                             static_cast<std::size_t>(part.end - part.begin));
            const double most = std::ranges::max(scores);
            for (std::size_t n = 0; n < scores.size(); ++n)
                own[static_cast<std::size_t>(part.begin) + n] = most - scores[n] > 104;
        }
    }
    return hiding(s, [&](const MaskPlace& at) {
        const std::int64_t row = (at.batch * p.heads_q + at.head) * p.len_q + at.query;
        return lost[static_cast<std::size_t>(row)][static_cast<std::size_t>(at.key)];
    });
}

// `sum > 0` is false of a NaN, and a log-sum-exp of NaN is that of such a sum.
std::optional<bound::Expected> nan_sums_zero(const Specification& s, bound::Expected out) {
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    bool any = false;
    for (std::size_t row = 0; row < out.lse.size(); ++row) {
        if (!std::isnan(out.lse[row].value)) continue;
        any = true;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
            out.output[n] = bound::ExpectedElement{};
        out.lse[row] = {0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

}  // namespace

std::vector<Deviation> large_inputs_lost() {
    const std::vector<Role> all = {Role::q, Role::k, Role::v, Role::mask};
    return {
        read_as("f16_infinity_as_zero", "0 for infinite numbers of f16, those of a mask too", all,
                [](double x) { return std::isinf(x) ? 0.0 : x; }),
        read_as("f16_beyond_60000_as_zero",
                "0 for numbers of f16 beyond 60000, a mask's -inf among them", all,
                [](double x) { return std::abs(x) > 60000 ? 0.0 : x; }),
        formula_deviation("nan_sum_zero",
                          "an output of 0, as of a row without keys, where a sum of weights is NaN",
                          nan_sums_zero),
        {.id = "nan_hides",
         .says = "no weight for keys whose score is NaN",
         .respecify = nan_hides},
        of_parts({.id = "zero_weights_skipped",
                  .says = "no value of a key whose weight underflows to 0: a NaN or an infinity in "
                          "it is lost",
                  .respecify = zero_weights_skipped})};
}

std::vector<Deviation> cut_indices() {
    std::vector<Deviation> list;
    for (std::int64_t kept = 65536; kept >= 128; kept /= 2) {
        list.push_back(key_index_cut(kept, "keys_and_values", "key and value", {Role::k, Role::v}));
        list.push_back(key_index_cut(kept, "keys", "key", {Role::k}));
        list.push_back(key_index_cut(kept, "values", "value", {Role::v}));
    }
    for (const bool of_tensor : {false, true}) {
        list.push_back(key_offset_cut("key", "key", {Role::k}, of_tensor));
        list.push_back(key_offset_cut("value", "value", {Role::v}, of_tensor));
        list.push_back(
            key_offset_cut("key_and_value", "key and value", {Role::k, Role::v}, of_tensor));
    }
    for (std::int64_t kept = 64; kept >= 2; kept /= 2) list.push_back(key_lengths_modulo(kept));
    return list;
}

}  // namespace attest::diagnosis
