// Which keys a sequence or document has, wrongly: lengths and documents ignored, tails lost or
// added.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::int64_t all_keys = std::numeric_limits<std::int32_t>::max();

Deviation query_lengths_ignored() {
    return {.id = "query_lengths_ignored",
            .says = "every query of the axis, whatever the lengths say",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                if (s.problem.mask.lens_q.empty()) return std::nullopt;
                Specification out = s;
                out.problem.mask.lens_q.clear();
                out.inputs.erase(Role::lens_q);
                return out;
            }};
}

/// As many splits as the problem asks for; where it leaves that to the kernel, one to `own` keys
/// (0: nothing is said of those).
Deviation split_tail_dropped(std::int64_t own) {
    std::string id = "split_tail_dropped", says = "Tk / splits keys a split, without the remainder";
    if (own > 0) {
        id.append("_").append(std::to_string(own));
        says.append("; of its own accord a split to ").append(std::to_string(own)).append(" keys");
    }
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [own](const Specification& s) -> std::optional<Specification> {
                const std::int64_t asked = s.problem.splits;
                if (asked == 1 || (asked == 0 && own == 0)) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [asked, own](const MaskPlace& p) {
                    const std::int64_t keys = std::max<std::int64_t>(1, p.len_kv);
                    const std::int64_t splits = asked > 0 ? asked : (keys + own - 1) / own;
                    const std::int64_t n = std::clamp<std::int64_t>(splits, 1, keys);
                    return p.column >= p.len_kv / n * n;
                };
                return with_rules(s, rules);
            }};
}

/// `change` makes the list of key lengths another, over a cache or without one.
Deviation other_key_lengths(std::string id, std::string says, bool cache,
                            void (*change)(const Problem&, std::vector<std::int64_t>&)) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [=](const Specification& s) -> std::optional<Specification> {
                if (!has_key_lengths(s) || s.problem.cache.present != cache) return std::nullopt;
                Specification out = s;
                std::vector<std::int64_t>& lens = out.problem.mask.lens_kv;
                change(s.problem, lens);
                Tensor& tensor = out.inputs[Role::lens_kv];
                for (std::int64_t n = 0; n < tensor.size(); ++n)
                    tensor.set(n, static_cast<double>(lens[static_cast<std::size_t>(n)]));
                if (out.problem == s.problem) return std::nullopt;
                return out;
            }};
}

void all_as_the_first(const Problem&, std::vector<std::int64_t>& lens) {
    std::ranges::fill(lens, lens.front());
}

void own_keys_added(const Problem& p, std::vector<std::int64_t>& lens) {
    for (std::int64_t& n : lens) n = std::min(n + p.len_q, p.len_kv);
}

// A last page is read to its end: behind the last key it holds the NaN laid there. What a mask
// tensor says of such a slot is not known.
std::optional<bound::Expected> whole_pages(const Specification& s, const bound::Expected& truth) {
    const Problem& p = s.problem;
    const std::int64_t page = p.cache.page_size;
    if (page < 2) return std::nullopt;
    Rules rules = rules_of(s);
    rules.key_lengths = false;
    const bound::ExpectedElement read = p.mask.tensor.kind == MaskKind::none
                                            ? bound::ExpectedElement{std::nan(""), 0, 0}
                                            : bound::ExpectedElement{0, 0, infinite};
    const auto dim = static_cast<std::size_t>(value_dim(p));
    bound::Expected out = truth;
    bool any = false;
    const std::int64_t rows = p.batch * p.heads_q * p.len_q;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t b = row / p.len_q / p.heads_q, i = row % p.len_q;
        if (i >= length_of(p.mask.lens_q, p.len_q, b)) continue;
        MaskPlace at = row_of(s, b, i);
        const std::int64_t end = (at.len_kv + page - 1) / page * page;
        at.column = at.len_kv;
        while (at.column < end && hidden(rules, at)) ++at.column;
        if (at.column >= end) continue;
        any = true;
        const auto flat = static_cast<std::size_t>(row);
        std::fill_n(out.output.begin() + static_cast<std::ptrdiff_t>(flat * dim), dim, read);
        if (flat < out.lse.size()) out.lse[flat] = read;
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
}

void one_for_none(const Problem&, std::vector<std::int64_t>& lens) {
    for (std::int64_t& n : lens) n = std::max<std::int64_t>(n, 1);
}

}  // namespace

std::vector<Deviation> key_length_deviations() {
    std::vector<Deviation> list{
        rule_deviation("key_lengths_ignored", "every key of the axis, whatever the lengths say",
                       has_key_lengths, [](Rules& r) { r.key_lengths = false; }),
        rule_deviation("key_lengths_no_limit", "the keys past a sequence's length too",
                       has_key_lengths, [](Rules& r) { r.keys_behind = all_keys; }),
        other_key_lengths("key_lengths_of_first",
                          "the number of keys of the first sequence for all of them", false,
                          all_as_the_first),
        other_key_lengths("key_length_one_for_none", "a length of 1 key in place of none", false,
                          one_for_none),
        other_key_lengths("key_lengths_without_own",
                          "lengths of keys taken for those before the call's own queries, whose "
                          "keys are added",
                          true, own_keys_added),
        query_lengths_ignored(),
        rule_deviation("documents_ignored", "one sequence instead of packed documents",
                       has_documents, [](Rules& r) { r.documents = false; }),
        rule_deviation(
            "first_key_ignored", "attention without the first key",
            [](const Specification& s) { return s.problem.len_kv > 1; },
            [](Rules& r) { r.also_hidden = [](const MaskPlace& p) { return p.column == 0; }; }),
        rule_deviation(
            "last_key_ignored", "attention without the last key",
            [](const Specification& s) { return s.problem.len_kv > 1; },
            [](Rules& r) {
                r.also_hidden = [](const MaskPlace& p) { return p.column == p.len_kv - 1; };
            }),
    };
    const auto bounded = [](const Specification& s) {
        return has_key_lengths(s) || has_documents(s);
    };
    list.push_back(formula_deviation("pages_to_their_end",
                                     "every slot of a sequence's last page, past its last key too",
                                     whole_pages));
    list.push_back(rule_deviation("key_behind", "one key behind each sequence or document", bounded,
                                  [](Rules& r) { r.keys_behind = 1; }));
    list.push_back(rule_deviation("key_before", "the last key of the document before",
                                  has_documents, [](Rules& r) { r.keys_before = 1; }));
    list.push_back(rule_deviation("documents_before", "the keys of all documents before its own",
                                  has_documents, [](Rules& r) { r.keys_before = all_keys; }));
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
        list.push_back(
            rule_deviation("key_lengths_padded_" + std::to_string(tile),
                           "lengths of keys rounded up to multiples of " + std::to_string(tile),
                           bounded, [tile](Rules& r) { r.key_tile = tile; }));
    for (const std::int64_t tile : {8, 16, 32, 64, 128, 256}) list.push_back(tail_dropped(tile));
    list.push_back(split_tail_dropped(0));
    for (const std::int64_t own : {16, 32, 64, 128, 256, 512})
        list.push_back(as_form_of("split_tail_dropped", split_tail_dropped(own)));
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128, 256})
        list.push_back(
            {.id = "tail_padded_" + std::to_string(tile),
             .says = "keys of zeros that fill the last tile of " + std::to_string(tile) +
                     ", each with score 0",
             .respecify = [tile](const Specification& s) { return with_zero_tail(s, tile); }});
    return list;
}

// The tail of each split, where the problem asks for splits: ceil(keys / splits) keys each.
Deviation tail_dropped(std::int64_t tile) {
    return {.id = "tail_dropped_" + std::to_string(tile),
            .says = "only whole tiles of " + std::to_string(tile) + " keys, without the rest",
            .respecify = [tile](const Specification& s) -> std::optional<Specification> {
                if (s.problem.len_kv <= tile) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [tile, splits = s.problem.splits](const MaskPlace& p) {
                    if (p.column < 0 || p.column >= p.len_kv) return false;
                    const std::int64_t n = std::clamp<std::int64_t>(splits, 1, p.len_kv);
                    const std::int64_t each = (p.len_kv + n - 1) / n;
                    const std::int64_t begin = p.column / each * each;
                    const std::int64_t keys = std::min(each, p.len_kv - begin);
                    return keys > tile && p.column - begin >= keys / tile * tile;
                };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

}  // namespace attest::diagnosis
