// Queries that stand elsewhere than their sequence says. Where a query stands is one number in such
// a kernel: masks, biases and rotation all go by it.

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

Deviation queries_placed_by_axes() {
    return {.id = "queries_longest",
            .says =
                "queries placed by the lengths of the axes, not each sequence's own, in masks, "
                "ALiBi and rotation",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.mask.lens_q.empty() && p.mask.lens_kv.empty() && p.mask.documents_q.empty())
                    return std::nullopt;
                const std::int64_t offset = p.len_kv - p.len_q;
                Rules rules = rules_of(s);
                rules.causal_offset = rules.window_offset = offset;
                Specification out = with_rules(s, rules);
                if (has_rope(s))
                    out.inputs.put(Role::q, turned(s, Role::q, [&](std::int64_t b, std::int64_t) {
                                       return static_cast<double>(offset) - cached(s, b);
                                   }));
                if (!p.alibi) return out;
                return with_bias(out, [&](const MaskPlace& at) {
                    const std::int64_t own = at.row + at.len_kv - at.len_q - at.column;
                    const auto further = std::abs(at.row + offset - at.column) - std::abs(own);
                    return -s.inputs[Role::alibi_slopes].get(at.head) *
                           static_cast<double>(further);
                });
            }};
}

// Rows past a sequence's queries like any other, where its own lengths place them. Without lengths
// of queries the reference counts all of the axis: so many places further back.
Specification past_their_length(const Specification& s) {
    const Problem& p = s.problem;
    Specification out = with_rules(s, rules_of(s));
    out.problem.mask.lens_q.clear();
    out.inputs.erase(Role::lens_q);
    if (!p.alibi) return out;
    return with_bias(out, [&](const MaskPlace& at) {
        const std::int64_t by_axis = at.row + at.len_kv - p.len_q - at.column;
        const std::int64_t further = p.len_q - length_of(p.mask.lens_q, p.len_q, at.batch);
        return -s.inputs[Role::alibi_slopes].get(at.head) *
               static_cast<double>(std::abs(by_axis + further) - std::abs(by_axis));
    });
}

// Whatever their weights, an output lies between the least and the largest value of its channel.
bound::ExpectedElement some_mean(const Specification& s, std::int64_t b, std::int64_t h,
                                 std::int64_t c) {
    const Tensor& v = s.inputs[Role::v];
    double least = infinite, most = -infinite;
    for (std::int64_t j = 0; j < length_of(s.problem.mask.lens_kv, s.problem.len_kv, b); ++j) {
        least = std::min(least, v.at(b, h / group_size(s.problem), j, c));
        most = std::max(most, v.at(b, h / group_size(s.problem), j, c));
    }
    const double half = (most - least) / 2, size = std::max(std::abs(least), std::abs(most));
    if (!std::isfinite(size)) return {0, 0, infinite};
    constexpr double rounding = 0x1p-7;  // of whatever format
    return {least + half, 0, half + rounding * size};
}

// Such rows stand behind the last key, where tables of angles may have ended: with a rotation their
// scores are any. Of values in pages nothing is said.
std::optional<bound::Expected> rows_past_length(const Specification& s,
                                                const bound::Expected& truth) {
    const Problem& p = s.problem;
    if (p.mask.lens_q.empty()) return std::nullopt;
    const Specification own = past_their_length(s);
    bound::Expected out = oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    const std::int64_t dim = value_dim(p);
    for (std::size_t n = 0; n < out.row_empty.size(); ++n) {
        const auto row = static_cast<std::int64_t>(n);
        const std::int64_t i = row % p.len_q, h = row / p.len_q % p.heads_q;
        const std::int64_t b = row / p.len_q / p.heads_q;
        const bool query = i < length_of(p.mask.lens_q, p.len_q, b);
        if (!has_rope(s) || (!query && out.row_empty[n] != 0)) continue;
        for (std::int64_t c = 0; c < dim; ++c) {
            const auto k = static_cast<std::size_t>(row * dim + c);
            out.output[k] = query                   ? truth.output[k]
                            : p.cache.page_size > 0 ? bound::ExpectedElement{0, 0, infinite}
                                                    : some_mean(s, b, h, c);
        }
        if (n < out.lse.size())
            out.lse[n] = query ? truth.lse[n] : bound::ExpectedElement{0, 0, infinite};
    }
    return out;
}

Deviation queries_past_their_length() {
    return formula_deviation("queries_past_length", "the rows past a sequence's queries too",
                             rows_past_length);
}

}  // namespace

std::vector<Deviation> placed_queries() {
    return {queries_placed_by_axes(), queries_past_their_length()};
}

}  // namespace attest::diagnosis
