// Which keys a query sees, wrongly: alignment, off by one, ignored.

#include <algorithm>
#include <limits>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

using Change = std::function<void(Rules&)>;

// A deviation that changes the rules where `has` says that there is something to change.
Deviation rule_deviation(std::string id, std::string says,
                         std::function<bool(const Specification&)> has, Change change) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [has = std::move(has), change = std::move(change)](
                             const Specification& s) -> std::optional<Specification> {
                if (!has(s)) return std::nullopt;
                Rules rules = rules_of(s);
                change(rules);
                return with_rules(s, rules);
            }};
}

bool has_causal(const Specification& s) {
    return s.problem.mask.causal;
}
bool has_diagonal(const Specification& s) {
    return s.problem.mask.causal || s.problem.mask.window.limited();
}
bool has_left(const Specification& s) {
    return s.problem.mask.window.left >= 0;
}
bool has_right(const Specification& s) {
    return s.problem.mask.window.right >= 0;
}
bool has_window(const Specification& s) {
    return s.problem.mask.window.limited();
}
bool has_key_lengths(const Specification& s) {
    return !s.problem.mask.lens_kv.empty();
}
bool has_documents(const Specification& s) {
    return !s.problem.mask.documents_q.empty();
}

bool has_bottom_right_causal(const Specification& s) {
    return s.problem.mask.causal && !rules_of(s).top_left;
}

std::string declared_alignment(const Specification& s) {
    if (s.problem.cache.present) return "a cache: query i stands at position Tk - Tq + i";
    return s.dialect.causal == CausalAlignment::bottom_right
               ? "bottom_right: key j is visible to query i iff j <= i + Tk - Tq"
               : "top_left: key j is visible to query i iff j <= i";
}

std::vector<Deviation> causal_deviations() {
    std::vector<Deviation> list{
        rule_deviation("causal_top_left", "a causal mask aligned top-left", has_bottom_right_causal,
                       [](Rules& r) { r.top_left = true; }),
        rule_deviation(
            "window_top_left", "a window placed from the top left",
            [](const Specification& s) { return !rules_of(s).top_left && has_window(s); },
            [](Rules& r) { r.window_top_left = true; }),
        rule_deviation(
            "diagonal_top_left", "a causal mask and a window aligned top-left",
            [](const Specification& s) { return has_diagonal(s) && !rules_of(s).top_left; },
            [](Rules& r) { r.top_left = r.window_top_left = true; }),
        rule_deviation(
            "causal_bottom_right", "a causal mask aligned bottom-right",
            [](const Specification& s) { return has_causal(s) && rules_of(s).top_left; },
            [](Rules& r) { r.top_left = false; }),
        rule_deviation(
            "diagonal_bottom_right", "a causal mask and a window aligned bottom-right",
            [](const Specification& s) { return has_diagonal(s) && rules_of(s).top_left; },
            [](Rules& r) { r.top_left = r.window_top_left = false; }),
        rule_deviation("causal_one_more", "a causal mask that shows one key too many", has_causal,
                       [](Rules& r) { r.diagonal = 1; }),
        rule_deviation("causal_one_less", "a causal mask that hides the query's own key",
                       has_causal, [](Rules& r) { r.diagonal = -1; }),
        rule_deviation("causal_ignored", "no causal mask at all", has_causal,
                       [](Rules& r) { r.causal = false; }),
    };
    for (Deviation& d : list) d.declares = declared_alignment;
    const auto unasked = [&list](std::string id, std::string says, bool top_left) {
        list.push_back(rule_deviation(
            std::move(id), std::move(says),
            [](const Specification& s) { return !s.problem.mask.causal; },
            [top_left](Rules& r) {
                r.causal = true;
                r.top_left = r.top_left || top_left;
            }));
    };
    unasked("causal_unasked", "a causal mask although none was asked for", false);
    unasked("causal_unasked_top_left", "a causal mask aligned top-left although none was asked for",
            true);
    return list;
}

// Lengths of its own are what tells a sequence from the axes.
std::vector<Deviation> aligned_by_axes() {
    const auto aligned = [](std::string id, std::string says, auto has, bool causal) {
        return Deviation{
            .id = std::move(id),
            .says = std::move(says),
            .respecify = [has, causal](const Specification& s) -> std::optional<Specification> {
                const bool lengths =
                    has_key_lengths(s) || has_documents(s) || !s.problem.mask.lens_q.empty();
                if (!has(s) || !lengths) return std::nullopt;
                Rules rules = rules_of(s);
                if (rules.window_top_left) return std::nullopt;
                rules.window_offset = s.problem.len_kv - s.problem.len_q;
                if (causal) rules.causal_offset = rules.window_offset;
                return with_rules(s, rules);
            }};
    };
    return {aligned("diagonal_longest",
                    "a causal mask and a window aligned by the lengths of the axes, not each "
                    "sequence's own",
                    has_diagonal, true),
            aligned("window_longest",
                    "a window aligned by the lengths of the axes, not each sequence's own",
                    has_window, false)};
}

std::vector<Deviation> window_deviations() {
    return {
        rule_deviation("window_left_one_more", "a window one key wider to the left", has_left,
                       [](Rules& r) { ++r.window.left; }),
        rule_deviation("window_right_one_more", "a window one key wider to the right", has_right,
                       [](Rules& r) { ++r.window.right; }),
        rule_deviation(
            "window_left_one_less", "a window one key narrower on the left",
            [](const Specification& s) { return s.problem.mask.window.left > 0; },
            [](Rules& r) { --r.window.left; }),
        rule_deviation(
            "window_right_one_less", "a window one key narrower on the right",
            [](const Specification& s) { return s.problem.mask.window.right > 0; },
            [](Rules& r) { --r.window.right; }),
        rule_deviation("window_ignored", "no window at all", has_window,
                       [](Rules& r) { r.window = {}; }),
        rule_deviation("window_left_ignored", "no limit to the left of the window", has_left,
                       [](Rules& r) { r.window.left = -1; }),
        rule_deviation("window_right_ignored", "no limit to the right of the window", has_right,
                       [](Rules& r) { r.window.right = -1; }),
        rule_deviation(
            "window_two_sided", "a window as wide to the right as to the left",
            [](const Specification& s) {
                return s.problem.mask.window.left >= 0 && s.problem.mask.window.right < 0;
            },
            [](Rules& r) { r.window.right = r.window.left; }),
        rule_deviation(
            "window_swapped", "a window with its left and right limits exchanged",
            [](const Specification& s) {
                return s.problem.mask.window.left != s.problem.mask.window.right;
            },
            [](Rules& r) { std::swap(r.window.left, r.window.right); }),
    };
}

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

Deviation key_lengths_of_first() {
    return {.id = "key_lengths_of_first",
            .says = "the number of keys of the first sequence for all of them",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                if (!has_key_lengths(s) || s.problem.cache.present) return std::nullopt;
                Specification out = s;
                std::vector<std::int64_t>& lens = out.problem.mask.lens_kv;
                std::fill(lens.begin(), lens.end(), lens.front());
                Tensor& tensor = out.inputs[Role::lens_kv];
                for (std::int64_t n = 0; n < tensor.size(); ++n)
                    tensor.set(n, static_cast<double>(lens.front()));
                if (out.problem == s.problem) return std::nullopt;
                return out;
            }};
}

std::vector<Deviation> length_deviations() {
    std::vector<Deviation> list{
        rule_deviation("key_lengths_ignored", "every key of the axis, whatever the lengths say",
                       has_key_lengths, [](Rules& r) { r.key_lengths = false; }),
        rule_deviation("key_lengths_no_limit", "the keys past a sequence's length too",
                       has_key_lengths,
                       [](Rules& r) { r.keys_behind = std::numeric_limits<std::int32_t>::max(); }),
        key_lengths_of_first(),
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
    list.push_back(rule_deviation("key_behind", "one key behind each sequence or document", bounded,
                                  [](Rules& r) { r.keys_behind = 1; }));
    list.push_back(rule_deviation("key_before", "the last key of the document before",
                                  has_documents, [](Rules& r) { r.keys_before = 1; }));
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
        list.push_back(
            rule_deviation("key_lengths_padded_" + std::to_string(tile),
                           "lengths of keys rounded up to multiples of " + std::to_string(tile),
                           bounded, [tile](Rules& r) { r.key_tile = tile; }));
    for (const std::int64_t tile : {8, 16, 32, 64, 128, 256}) list.push_back(tail_dropped(tile));
    list.push_back(split_tail_dropped(0));
    for (const std::int64_t own : {16, 32, 64, 128, 256, 512})
        list.push_back(split_tail_dropped(own));
    for (const std::int64_t tile : {4, 8, 16, 32, 64, 128, 256})
        list.push_back(
            {.id = "tail_padded_" + std::to_string(tile),
             .says = "keys of zeros that fill the last tile of " + std::to_string(tile) +
                     ", each with score 0",
             .respecify = [tile](const Specification& s) { return with_zero_tail(s, tile); }});
    return list;
}

}  // namespace

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

std::vector<Deviation> mask_deviations() {
    std::vector<Deviation> all = causal_deviations();
    for (auto part :
         {window_deviations(), aligned_by_axes(), mask_tensor_deviations(), length_deviations()})
        all.insert(all.end(), part.begin(), part.end());
    for (Deviation& d : all) d.tells = law::Tells::visibility;
    return all;
}

}  // namespace attest::diagnosis
