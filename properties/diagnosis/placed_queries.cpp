// Queries that stand elsewhere than their sequence says. Where a query stands is one number in such
// a kernel: masks, biases and rotation all go by it.

#include <cmath>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"

namespace attest::diagnosis {

namespace {

Deviation queries_placed_by_axes() {
    return {.id = "queries_longest",
            .says =
                "queries placed by the lengths of the axes, not each sequence's own, in masks, "
                "ALiBi and rotation",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.mask.lens_q.empty() && p.mask.lens_kv.empty()) return std::nullopt;
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
Deviation queries_past_their_length() {
    return {.id = "queries_past_length",
            .says = "the rows past a sequence's queries too",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.mask.lens_q.empty()) return std::nullopt;
                Specification out = with_rules(s, rules_of(s));
                const auto further = [&p](std::int64_t b) {
                    return p.len_q - length_of(p.mask.lens_q, p.len_q, b);
                };
                if (has_rope(s))
                    out.inputs.put(Role::q, turned(s, Role::q, [&](std::int64_t b, std::int64_t) {
                                       return static_cast<double>(further(b));
                                   }));
                out.problem.mask.lens_q.clear();
                out.inputs.erase(Role::lens_q);
                if (!p.alibi) return out;
                return with_bias(out, [&](const MaskPlace& at) {
                    const std::int64_t by_axis = at.row + at.len_kv - p.len_q - at.column;
                    const auto more = std::abs(by_axis + further(at.batch)) - std::abs(by_axis);
                    return -s.inputs[Role::alibi_slopes].get(at.head) * static_cast<double>(more);
                });
            }};
}

}  // namespace

std::vector<Deviation> placed_queries() {
    return {queries_placed_by_axes(), queries_past_their_length()};
}

}  // namespace attest::diagnosis
