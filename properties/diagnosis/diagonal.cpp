#include "properties/diagnosis/diagonal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// The last key that a query sees, counted in its sequence or document; `axis_offset` is Tk - Tq of
/// the axes.
using LastKey =
    std::function<std::int64_t(const MaskPlace&, std::int64_t offset, std::int64_t axis_offset)>;

/// Whether a row that loses or gets a key sees one still: of rows that are left without any, the
/// place of the diagonal is anybody's guess.
bool shows_its_place(const Tensor& before, const Tensor& after) {
    const Shape& shape = after.shape();
    const std::int64_t keys = shape[3];
    for (std::int64_t begin = 0; begin < after.size(); begin += keys) {
        bool sees = false, differs = false;
        for (std::int64_t at = begin; at < begin + keys; ++at) {
            const bool shown = after.get(at) != -infinite;
            sees = sees || shown;
            differs = differs || shown != (before.get(at) != -infinite);
        }
        if (sees && differs) return true;
    }
    return false;
}

Deviation causal_to(std::string id, std::string says, LastKey last) {
    return {
        .id = std::move(id),
        .says = std::move(says),
        .respecify = [last =
                          std::move(last)](const Specification& s) -> std::optional<Specification> {
            if (!s.problem.mask.causal) return std::nullopt;
            Rules rules = rules_of(s);
            rules.causal = false;
            rules.also_hidden = [last, top_left = rules.top_left,
                                 axes = s.problem.len_kv - s.problem.len_q](const MaskPlace& p) {
                return p.column > last(p, top_left ? 0 : p.len_kv - p.len_q, axes);
            };
            Specification out = with_rules(s, rules);
            const Specification asked = with_rules(s, rules_of(s));
            if (!shows_its_place(asked.inputs[Role::mask], out.inputs[Role::mask]))
                return std::nullopt;
            return out;
        },
        .tells = law::Tells::visibility};
}

std::int64_t rounded_down(std::int64_t n, std::int64_t block) {
    return (n >= 0 ? n : n - block + 1) / block * block;
}

Deviation shifted(std::int64_t by) {
    return causal_to(
        fmt::format("causal_shifted_{}_{}", by > 0 ? "up" : "down", std::abs(by)),
        by > 0
            ? fmt::format("a causal mask that shows {} keys too many", by)
            : fmt::format("a causal mask that hides the query's own key and {} before it", -by - 1),
        [by](const MaskPlace& p, std::int64_t offset, std::int64_t) {
            return p.row + offset + by;
        });
}

std::vector<Deviation> all_of_them() {
    std::vector<Deviation> list;
    for (const std::int64_t by : {2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64})
        for (const std::int64_t signed_by : {by, -by}) list.push_back(shifted(signed_by));
    for (const std::int64_t block : {2, 4, 8, 16, 32, 64, 128}) {
        const std::string of = std::to_string(block);
        list.push_back(causal_to("causal_key_blocks_" + of,
                                 "a causal mask that shows whole blocks of " + of + " keys",
                                 [block](const MaskPlace& p, std::int64_t offset, std::int64_t) {
                                     return rounded_down(p.row + offset, block) + block - 1;
                                 }));
        list.push_back(causal_to(
            "causal_query_blocks_" + of,
            "the causal mask of the last query in its block of " + of + " for all of them",
            [block](const MaskPlace& p, std::int64_t offset, std::int64_t) {
                return rounded_down(p.row, block) + block - 1 + offset;
            }));
        list.push_back(causal_to(
            "causal_query_blocks_first_" + of,
            "the causal mask of the first query in its block of " + of + " for all of them",
            [block](const MaskPlace& p, std::int64_t offset, std::int64_t) {
                return rounded_down(p.row, block) + offset;
            }));
        list.push_back(causal_to("causal_offset_blocks_" + of,
                                 "a causal mask shifted by Tk - Tq rounded down to blocks of " + of,
                                 [block](const MaskPlace& p, std::int64_t offset, std::int64_t) {
                                     return p.row + rounded_down(offset, block);
                                 }));
    }
    list.push_back(causal_to(
        "causal_longest",
        "a causal mask aligned by the lengths of the axes, not each sequence's own",
        [](const MaskPlace& p, std::int64_t, std::int64_t axes) { return p.row + axes; }));
    list.push_back(causal_to(
        "causal_more_keys", "a causal mask aligned top-left where there are more queries than keys",
        [](const MaskPlace& p, std::int64_t offset, std::int64_t) {
            return p.row + std::max<std::int64_t>(offset, 0);
        }));
    return list;
}

bool within(const Tensor& observed, const std::vector<bound::ExpectedElement>& predicted,
            const std::vector<bound::ExpectedElement>& truth, Precision format, bool& tells) {
    for (std::size_t n = 0; n < predicted.size(); ++n) {
        const double seen = observed.get(static_cast<std::int64_t>(n));
        if (bound::judge(seen, predicted[n], format) == bound::Agreement::disagrees) return false;
        tells = tells || (n < truth.size() &&
                          bound::judge(seen, truth[n], format) == bound::Agreement::disagrees);
    }
    return true;
}

}  // namespace

bool agrees(const Deviation& deviation, const Evidence& e) {
    const std::optional<bound::Expected> own = predict(deviation, e.asked, e.truth);
    if (!own) return false;
    bool tells = false;
    return within(e.observed[Role::o], own->output, e.truth.output, e.asked.problem.format_o,
                  tells) &&
           (!e.observed.has(Role::lse) || within(e.observed[Role::lse], own->lse, e.truth.lse,
                                                 lse_format(e.asked.problem), tells)) &&
           tells;
}

std::vector<Deviation> diagonal_candidates(const std::vector<Evidence>& wrong) {
    const Evidence* asked = nullptr;
    for (const Evidence& e : wrong)
        if (e.asked.problem.mask.causal &&
            (asked == nullptr || e.asked.problem.len_q > asked->asked.problem.len_q))
            asked = &e;
    if (asked == nullptr) return {};
    std::vector<Deviation> list = all_of_them();
    std::erase_if(list, [&](const Deviation& d) { return !agrees(d, *asked); });
    return list;
}

}  // namespace attest::diagnosis
