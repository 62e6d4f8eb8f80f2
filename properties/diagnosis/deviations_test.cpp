// Every deviation is played by a kernel that computes it, and must be recognised.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {
namespace {

Answer acting(const Deviation& deviation) {
    return [&deviation](const Specification& s, const bound::Expected& truth) {
        const std::optional<bound::Expected> own = predict(deviation, s, truth);
        return own ? *own : truth;
    };
}

// More would show the same again; so would two of each size of tile.
int stages_of(const Deviation& deviation) {
    return std::isdigit(static_cast<unsigned char>(deviation.id.back())) != 0 ? 1 : 2;
}
constexpr std::size_t groups = 8;  // tests of a few seconds each

// Where inputs and output are of one format, what is rounded to it has several names.
std::string of_inputs(std::string id) {
    for (const std::string of : {"_queries", "_values", "_output", "_bf16", "_f16"})
        if (const auto at = id.find("_rounded" + of); at != id.npos)
            id.replace(at + 8, of.size(), "_own");
    return id;
}

// Deviations that are each other on every call: naming either is right.
bool same_thing(const std::string& a, const std::string& b) {
    static const std::set<std::set<std::string>> pairs{
        {"causal_one_less", "causal_unasked"},
        {"causal_bottom_right", "diagonal_bottom_right"},  // where there is no window
        {"causal_bottom_right", "window_top_left"},
        {"causal_top_left", "diagonal_top_left"},
        {"window_top_left", "diagonal_top_left"},       // where there is no causal mask
        {"softcap_other_place", "softcap_over_alibi"},  // where there is no other bias
        {"softcap_other_place", "softcap_over_bias_tensor"},
        {"uniform_visible", "uniform_all"},               // where nothing is hidden
        {"scale_one", "scale_times_root"},                // where the scale is the default one
        {"hidden_finite", "tensor_finite"},               // where nothing else hides
        {"key_lengths_ignored", "key_lengths_no_limit"},  // where no diagonal is aligned by them
        {"query_lengths_ignored", "queries_past_length"},
        {"lse_empty_zero", "lse_empty_zero_padding"},  // where no query length is given
        {"lse_empty_infinite", "lse_empty_infinite_padding"},
        {"lse_without_sink", "lse_of_keys"},  // where every query sees a key
        {"lse_padding_zero", "lse_empty_zero_padding"},  // where every query sees a key
        {"lse_padding_infinite", "lse_empty_infinite_padding"},
        {"rope_other_style", "rope_always_interleaved"},  // where those are not asked for
        {"rope_other_style", "rope_always_half"},
        {"sink_outside_maximum", "sink_outside_maximum_guarded"},  // where every row has a key
        {"window_ignored", "window_left_ignored"},                 // where there is no right limit
        {"maximum_finite", "maximum_finite_empty"},                // where every query sees a key
        {"empty_row_nan", "maximum_finite_empty"},     // where no scores are far below 0
        {"hidden_minus_1e4", "hidden_minus_1e4_own"},  // where nothing is packed
        {"softcap_over_mask", "softcap_over_mask_own"},
        {"hidden_finite", "hidden_finite_own"},
        {"window_left_one_less", "window_ends_exclusive"},  // where one side is limited
        {"window_right_one_less", "window_ends_exclusive"},
        {"window_left_one_more", "window_ends_inclusive"},
        {"window_right_one_more", "window_ends_inclusive"},
        {"diagonal_longest", "causal_longest"},  // where there is no window
        {"diagonal_longest", "window_longest"},  // where that hides what the other does
        {"scores_rounded_bf16", "scaled_products_rounded_bf16"},  // without cap and bias
        {"scores_rounded_f16", "scaled_products_rounded_f16"},
        {"scores_rounded_own", "scaled_products_rounded_own"},
        {"maximum_finite", "maximum_finite_f16"},  // where no weight is fed in f16
        {"maximum_finite_empty", "maximum_finite_f16"},
        {"softcap_overflows",
         "softcap_overflows_below"},      // where every row has scores of both signs
        {"alibi_scaled", "bias_scaled"},  // where there is no mask tensor
    };
    if (of_inputs(a) == b || (of_inputs(b) != b && same_thing(a, of_inputs(b)))) return true;
    // A window hides most added keys, whatever the tile.
    if (a.starts_with("tail_padded_") && b.starts_with("tail_padded_")) return true;
    // Pages taken for ones that hold more keys than there are.
    const auto wider_pages = [](const std::string& id) {
        return id.starts_with("pages_of_") && std::isdigit(static_cast<unsigned char>(id.back()));
    };
    if (wider_pages(a) && (wider_pages(b) || b == "pages_first_alone")) return true;
    // Where the problem asks for splits, none is of the kernel's own accord.
    if (a.starts_with("split_tail_dropped") && b.starts_with("split_tail_dropped")) return true;
    // A row with two tiles has no other tile than the last that its maximum grows in.
    const auto every = [](std::string id) {
        for (const std::string place : {"_seen", "_last"})
            if (const auto at = id.find(place); id.starts_with("not_rescaled") && at != id.npos)
                id.erase(at, place.size());
        return id;
    };
    if (every(a) == every(b)) return true;
    // A scale that is corrected is made anew where it is the default one.
    const std::string made = "scale_", corrected = "scale_times_";
    if (a.starts_with(made) && b == corrected + a.substr(made.size())) return true;
    if (b.starts_with(made) && a == corrected + b.substr(made.size())) return true;
    return a == b || pairs.count({a, b}) != 0;
}

// Of the masks, ALiBi and rotation that queries are placed elsewhere for, those that a call has.
std::string as_seen_in(const Problem& p, const std::string& id) {
    const std::string placed = "queries_longest";
    if (!id.starts_with(placed)) return id;
    std::string seen;
    for (const auto& [part, has] :
         {std::pair<std::string, bool>{"_masks", p.mask.causal || p.mask.window.limited()},
          {"_alibi", p.alibi},
          {"_rope", p.rope.style != RopeStyle::none}})
        if (has && (id == placed || id.find(part) != id.npos)) seen += part;
    return seen == "_masks" ? "diagonal_longest" : placed + seen;
}

// Plays one deviation; returns what went wrong.
std::string misread(const Deviation& deviation) {
    Dialect nan, top_left, exclusive;
    nan.empty_row = top_left.empty_row = EmptyRow::nan;
    top_left.causal = CausalAlignment::top_left;
    exclusive.window_ends = WindowEnds::exclusive;
    int played = 0;
    for (const Dialect& dialect : {Dialect{}, top_left, nan, exclusive}) {
        Actor actor(acting(deviation), dialect);
        for (const Case& stage : stages()) {
            const std::optional<Evidence> e = evidence_of(actor, stage);
            if (played == stages_of(deviation) || !e || !e->wrong()) continue;
            ++played;
            search::Counterexample c;
            c.smallest = c.found.tried = stage;
            const Diagnosis d = diagnose(actor, c, {});
            const std::string own = as_seen_in(stage.problem, deviation.id);
            if (!d.known || !same_thing(as_seen_in(stage.problem, d.id), own) || d.agree != d.of)
                return "taken for " + (d.known ? d.id : "not known") + " on " + print(stage) +
                       ", " + std::to_string(d.agree) + " of " + std::to_string(d.of) + ", next " +
                       d.next_id;
        }
    }
    return played == 0 ? "has no stage" : "";
}

class EveryDeviation : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryDeviation, IsRecognised) {
    for (std::size_t n = GetParam(); n < deviations().size(); n += groups)
        EXPECT_EQ(misread(deviations()[n]), "") << deviations()[n].id;
}

INSTANTIATE_TEST_SUITE_P(Group, EveryDeviation, testing::Range<std::size_t>(0, groups));

TEST(Deviations, HaveDistinctNamesAndSentences) {
    std::set<std::string> ids, says;
    for (const Deviation& d : deviations()) {
        EXPECT_TRUE(ids.insert(d.id).second) << d.id;
        EXPECT_TRUE(says.insert(d.says).second) << d.says;
        EXPECT_NE(static_cast<bool>(d.respecify), static_cast<bool>(d.formula)) << d.id;
    }
    EXPECT_GE(ids.size(), 60u);
}

// The rules written out as a mask must be the problem itself, whatever the problem.
TEST(Respecify, RulesWrittenOutChangeNothing) {
    for (const Case& stage : stages()) {
        for (const CausalAlignment causal :
             {CausalAlignment::bottom_right, CausalAlignment::top_left})
            for (const WindowEnds ends : {WindowEnds::inclusive, WindowEnds::exclusive}) {
                Dialect dialect;
                dialect.causal = causal;
                dialect.window_ends = ends;
                const Specification s{stage.problem, dialect, {}, make_inputs(stage)};
                const Specification w = with_rules(s, rules_of(s));
                const bound::Expected a =
                    oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
                const bound::Expected b =
                    oracle::attend(w.problem, w.dialect, w.numerics, w.inputs);
                ASSERT_EQ(a.output.size(), b.output.size());
                for (std::size_t n = 0; n < a.output.size(); ++n)
                    EXPECT_LE(std::abs(a.output[n].value - b.output[n].value),
                              a.output[n].error + b.output[n].error)
                        << print(stage);
            }
    }
}

}  // namespace
}  // namespace attest::diagnosis
