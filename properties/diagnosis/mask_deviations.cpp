// Which keys a query sees, wrongly: causal masks and windows aligned elsewhere, off by one,
// ignored.

#include <utility>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

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
bool has_bottom_right_causal(const Specification& s) {
    return s.problem.mask.causal && !rules_of(s).top_left;
}

std::string declared_alignment(const Specification& s) {
    if (s.problem.cache.present) return "a cache: query i stands at position Tk - Tq + i";
    return s.dialect.causal == CausalAlignment::bottom_right
               ? "bottom_right: key j is visible to query i iff j <= i + Tk - Tq"
               : "top_left: key j is visible to query i iff j <= i";
}

/// Of what the dialect's other word would make right.
Deviation by_design(Deviation deviation) {
    deviation.declares = [](const Specification& s) {
        if (s.problem.cache.present) return declared_alignment(s);
        const bool bottom = s.dialect.causal == CausalAlignment::bottom_right;
        return declared_alignment(s) + "; by design? declare dialect: causal " +
               (bottom ? "top_left" : "bottom_right");
    };
    return deviation;
}

std::vector<Deviation> causal_deviations() {
    std::vector<Deviation> list{
        by_design(rule_deviation("causal_top_left", "a causal mask aligned top-left",
                                 has_bottom_right_causal, [](Rules& r) { r.top_left = true; })),
        rule_deviation(
            "window_top_left", "a window placed from the top left",
            [](const Specification& s) { return !rules_of(s).top_left && has_window(s); },
            [](Rules& r) { r.window_top_left = true; }),
        by_design(rule_deviation(
            "diagonal_top_left", "a causal mask and a window aligned top-left",
            [](const Specification& s) { return has_diagonal(s) && !rules_of(s).top_left; },
            [](Rules& r) { r.top_left = r.window_top_left = true; })),
        by_design(rule_deviation(
            "causal_bottom_right", "a causal mask aligned bottom-right",
            [](const Specification& s) { return has_causal(s) && rules_of(s).top_left; },
            [](Rules& r) { r.top_left = false; })),
        rule_deviation(
            "window_bottom_right", "a window placed from the bottom right",
            [](const Specification& s) { return rules_of(s).top_left && has_window(s); },
            [](Rules& r) { r.window_top_left = false; }),
        by_design(rule_deviation(
            "diagonal_bottom_right", "a causal mask and a window aligned bottom-right",
            [](const Specification& s) { return has_diagonal(s) && rules_of(s).top_left; },
            [](Rules& r) { r.top_left = r.window_top_left = false; })),
        rule_deviation("causal_one_more", "a causal mask that shows one key too many", has_causal,
                       [](Rules& r) { r.diagonal = 1; }),
        rule_deviation("causal_one_less", "a causal mask that hides the query's own key",
                       has_causal, [](Rules& r) { r.diagonal = -1; }),
        rule_deviation("causal_ignored", "no causal mask at all", has_causal,
                       [](Rules& r) { r.causal = false; }),
    };
    for (Deviation& d : list)
        if (!d.declares) d.declares = declared_alignment;
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

std::string declared_ends(const Specification& s) {
    return s.dialect.window_ends == WindowEnds::inclusive
               ? "inclusive: the last key of each side is seen; by design? declare dialect: "
                 "window_ends exclusive"
               : "exclusive: the last key of each side is hidden; by design? declare dialect: "
                 "window_ends inclusive";
}

/// Both sides as the dialect's other word has them.
Deviation other_ends(WindowEnds declared, std::string id, std::string says) {
    Deviation d = rule_deviation(
        std::move(id), std::move(says),
        [declared](const Specification& s) {
            const Window& w = s.problem.mask.window;
            return s.dialect.window_ends == declared && (w.left > 0 || w.right > 0);
        },
        [declared](Rules& r) {
            r.ends =
                declared == WindowEnds::inclusive ? WindowEnds::exclusive : WindowEnds::inclusive;
        });
    d.declares = declared_ends;
    return d;
}

std::vector<Deviation> window_deviations() {
    return {
        other_ends(WindowEnds::inclusive, "window_ends_exclusive",
                   "a window that hides the last key of each side"),
        other_ends(WindowEnds::exclusive, "window_ends_inclusive",
                   "a window that shows the last key of each side"),
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
            "window_left_is_causal", "no later key where a window has a left limit alone",
            [](const Specification& s) {
                const Mask& mask = s.problem.mask;
                return mask.window.left >= 0 && mask.window.right < 0 && !mask.causal;
            },
            [](Rules& r) { r.causal = true; }),
        rule_deviation(
            "window_swapped", "a window with its left and right limits exchanged",
            [](const Specification& s) {
                return s.problem.mask.window.left != s.problem.mask.window.right;
            },
            [](Rules& r) { std::swap(r.window.left, r.window.right); }),
    };
}

}  // namespace

std::vector<Deviation> mask_deviations() {
    std::vector<Deviation> all = causal_deviations();
    for (auto part : {window_deviations(), aligned_by_axes(), mask_tensor_deviations(),
                      key_length_deviations()})
        all.insert(all.end(), part.begin(), part.end());
    for (Deviation& d : all) d.tells = law::Tells::visibility;
    return all;
}

}  // namespace attest::diagnosis
