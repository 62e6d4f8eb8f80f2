// Causal masks that end elsewhere, maxima that are none, outputs that are never written: what only
// the evidence can tell.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {
namespace {

Answer causal_to(std::int64_t (*last)(const MaskPlace&)) {
    return [last](const Specification& s, const bound::Expected& truth) {
        if (!s.problem.mask.causal) return truth;
        Rules rules = rules_of(s);
        rules.causal = false;
        rules.also_hidden = [last](const MaskPlace& p) { return p.column > last(p); };
        const Specification own = with_rules(s, rules);
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    };
}

TEST(Fitted, CausalMasksThatEndElsewhereAreNamed) {
    const char* line = "b1 hq2 hkv2 tq6 tk9 d4 causal f32";
    const auto shifted = [](const MaskPlace& p) { return p.row + p.len_kv - p.len_q + 2; };
    const auto hiding = [](const MaskPlace& p) { return p.row + p.len_kv - p.len_q - 3; };
    const auto blocks = [](const MaskPlace& p) { return p.row / 4 * 4 + 3 + p.len_kv - p.len_q; };
    const auto longest = [](const MaskPlace& p) { return p.row + 3; };
    EXPECT_EQ(diagnosed_of(causal_to(shifted), line).says,
              "a causal mask that shows 2 keys too many");
    EXPECT_EQ(diagnosed_of(causal_to(hiding), line).says,
              "a causal mask that hides the query's own key and 2 before it");
    EXPECT_EQ(diagnosed_of(causal_to(blocks), line).says,
              "the causal mask of the last query in its block of 4 for all of them");
    EXPECT_FALSE(diagnosed_of(causal_to(longest), line).known);  // a diagonal that no list holds
}

TEST(Fitted, AMaximumOverHiddenKeysIsNamed) {
    const auto underflows = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        Rules none;
        none.mask_tensor = false;
        const Specification open = with_rules(s, none);
        const auto all = oracle::row_details(open.problem, open.dialect, open.inputs);
        const auto dim = static_cast<std::size_t>(value_dim(s.problem));
        for (std::size_t n = 0; n < own.output.size(); ++n)
            if (all[n / dim].max > rows[n / dim].max + 104) own.output[n].value = 0;
        return own;
    };
    const char* line = "b1 hq2 hkv2 tq6 tk6 d4 causal f32 values logit1e4";
    EXPECT_EQ(diagnosed_of(underflows, line).id, "maximum_of_hidden_guarded");
}

// What a query sees decides, not where its scores stand.
TEST(Fitted, TheNaNOfAHiddenFirstTileIsNamed) {
    const auto hidden_first = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        const auto dim = static_cast<std::size_t>(value_dim(s.problem));
        for (std::size_t n = 0; n < rows.size(); ++n) {
            const std::vector<double>& scores = rows[n].scores;
            const auto first = scores.begin() + std::min<std::ptrdiff_t>(32, std::ssize(scores));
            if (std::any_of(scores.begin(), first, [](double x) { return x > -infinite; }))
                continue;
            for (std::size_t k = n * dim; k < (n + 1) * dim; ++k)
                own.output[k].value = std::nan("");
            own.lse[n].value = std::nan("");
        }
        return own;
    };
    for (const char* line : {"b1 hq1 hkv1 tq1 tk33 d1 mask bool pattern left_pad f32 seed 5",
                             "b1 hq2 hkv2 tq3 tk70 d2 mask bool pattern left_pad f32 seed 1"})
        EXPECT_EQ(diagnosed_of(hidden_first, line).says,
                  "NaN, exp(-inf + inf), where a query sees none of the first 32 keys")
            << line;
}

TEST(Fitted, ASinkCountedBySplitsOfWholeTilesIsNamed) {
    const auto each_split = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        if (!s.problem.sink || s.problem.splits < 2) return own;
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        const auto dim = static_cast<std::size_t>(value_dim(s.problem));
        const std::int64_t tiles = (s.problem.len_kv + 31) / 32;
        const std::int64_t each = (tiles + s.problem.splits - 1) / s.problem.splits;
        const auto splits = static_cast<double>((tiles + each - 1) / each);
        for (std::size_t n = 0; n < rows.size(); ++n) {
            double keys = 0;
            for (const double w : rows[n].weights) keys += w;
            const double sum = keys + splits * (1 - keys);
            for (std::size_t k = n * dim; k < (n + 1) * dim; ++k) own.output[k].value /= sum;
            own.lse[n].value += std::log(sum);
        }
        return own;
    };
    EXPECT_EQ(diagnosed_of(each_split, "b1 hq1 hkv1 tq1 tk33 d1 sink splits 2 f32").says,
              "the sink once for each split, of whole tiles of 32, in which the query sees a key");
}

// A bias cannot tell it: every hidden key has this score, whatever its own.
TEST(Fitted, AScoreThatHiddenKeysHaveIsNamed) {
    const auto minus_7 = [](const Specification& s, const bound::Expected&) {
        const Specification plain = unmasked(s);
        const auto rows = oracle::row_details(plain.problem, plain.dialect, plain.inputs);
        const Specification own = with_rules(s, rules_of(s), [&](const MaskPlace& p) {
            const std::int64_t row = p.head * s.problem.len_q + p.query;
            return -7 - rows[static_cast<std::size_t>(row)].scores[static_cast<std::size_t>(p.key)];
        });
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    };
    EXPECT_EQ(diagnosed_of(minus_7, "b1 hq2 hkv2 tq3 tk5 d4 causal f32").says,
              "hidden keys of a query's document with score -7 instead of -inf");
}

TEST(Fitted, AMaximumThatIsNotSubtractedIsNamed) {
    const auto overflows = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        const auto dim = static_cast<std::size_t>(value_dim(s.problem));
        for (std::size_t n = 0; n < own.output.size(); ++n) {
            const double most = rows[n / dim].max;
            if (most > 89 || most < -104) own.output[n].value = most > 0 ? std::nan("") : 0;
        }
        return own;
    };
    const char* line = "b1 hq2 hkv2 tq9 tk2 d4 f32 values logit1e4";
    EXPECT_EQ(diagnosed_of(overflows, line).id, "maximum_not_subtracted_guarded");
}

Answer of_rules(void (*change)(const Specification&, Rules&)) {
    return [change](const Specification& s, const bound::Expected&) {
        Rules rules = rules_of(s);
        change(s, rules);
        const Specification other = with_rules(s, rules);
        return oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
    };
}

TEST(Fitted, KeysLostAtTheEdgesOfTilesAreNamed) {
    const auto whole_tiles = [](const Specification&, Rules& rules) {
        const std::int64_t left = rules.window.left;
        rules.also_hidden = [left, causal = rules.causal](const MaskPlace& p) {
            const std::int64_t own = p.row + p.len_kv - p.len_q, first = own - left;
            const std::int64_t begin = (std::max<std::int64_t>(first, 0) + 31) / 32 * 32;
            const std::int64_t last = causal ? own : p.len_kv - 1;
            return left >= 0 && p.column < begin && begin <= last;
        };
    };
    const auto of_block = [](const Specification&, Rules& rules) {
        rules.also_hidden = [left = rules.window.left](const MaskPlace& p) {
            const std::int64_t first = p.row / 32 * 32 + p.len_kv - p.len_q - left;
            return left >= 0 && p.column < (std::max<std::int64_t>(first, 0) + 31) / 32 * 32;
        };
    };
    EXPECT_EQ(diagnosed_of(of_rules(of_block), "b1 hq1 hkv1 tq33 tk33 d1 dv2 window 5 -1 f32").says,
              "in each block of 32 queries no key before the first whole tile of 32 in its first "
              "query's window");
    const auto last_of_64 = [](const Specification&, Rules& rules) {
        rules.also_hidden = [](const MaskPlace& p) { return p.column % 64 == 63; };
    };
    EXPECT_EQ(
        diagnosed_of(of_rules(whole_tiles), "b1 hq1 hkv1 tq1 tk33 d1 causal window 1 -1 f32").says,
        "a window that begins with its first whole tile of 32 keys, where it has one");
    EXPECT_EQ(diagnosed_of(of_rules(last_of_64), "b1 hq1 hkv1 tq1 tk64 d2 f32").says,
              "attention without the last key of each 64");
}

TEST(Fitted, ExchangedValuesAreNamed) {
    const auto exchanged = [](const Specification& s, const bound::Expected&) {
        Specification out = s;
        const Tensor& v = s.inputs[Role::v];
        const auto source = [n = s.problem.len_kv](std::int64_t j) {
            if (j % 32 == 4 && j + 1 < n) return j + 1;
            return j % 32 == 5 ? j - 1 : j;
        };
        out.inputs.put(Role::v, remake(v.type(), v.shape(),
                                       [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                           std::int64_t c) { return v.at(b, h, source(j), c); }));
        return oracle::attend(out.problem, out.dialect, out.numerics, out.inputs);
    };
    EXPECT_EQ(diagnosed_of(exchanged, "b1 hq1 hkv1 tq1 tk6 d1 f32").says,
              "keys 4 and 5 of each 32 with each other's value");
}

// Not "subnormal numbers taken for 0", which the smallest values alone would show as well.
TEST(Fitted, SmallOutputsTakenForZeroAreNamed) {
    const auto flushed = [](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output)
            if (std::abs(e.value) < 0x1p-14) e.value = 0;
        return own;
    };
    for (const char* line :
         {"b1 hq1 hkv1 tq1 tk1 d1 f32 values tiny", "b1 hq1 hkv1 tq1 tk1 d4 f32 values tiny"})
        EXPECT_EQ(diagnosed_of(flushed, line).says,
                  "0 for outputs below 2^-14, the least normal number of f16")
            << line;
}

TEST(Fitted, WeightsThatEndAreNamed) {
    const char* line = "b1 hq2 hkv2 tq3 tk9 d4 f32 values logit50";
    EXPECT_EQ(
        diagnosed_of(weighing([](double x) { return std::exp(std::max(x, -10.0)); }), line).says,
        "exp(-10) for scores more than 10 below the largest");
    EXPECT_EQ(
        diagnosed_of(weighing([](double x) { return std::exp(x) < 1e-4 ? 0 : std::exp(x); }), line)
            .says,
        "weights below 1e-4 of the largest dropped");
}

TEST(Fitted, TheLogSumExpOfOneSplitIsNamed) {
    // Splits of whole tiles of 16 keys: the last one has those from the 32nd on.
    const auto last_split = [](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        if (s.problem.splits != 2) return own;
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        const std::int64_t tiles = (s.problem.len_kv + 15) / 16, each = (tiles + 1) / 2 * 16;
        for (std::size_t n = 0; n < rows.size(); ++n) {
            double share = 0;
            for (std::int64_t j = each < s.problem.len_kv ? each : 0; j < s.problem.len_kv; ++j)
                share += rows[n].weights[static_cast<std::size_t>(j)];
            own.lse[n].value += std::log(share);
        }
        return own;
    };
    EXPECT_EQ(diagnosed_of(last_split, "b1 hq1 hkv1 tq2 tk49 d2 splits 2 f32").id,
              "lse_of_last_split_16");
}

TEST(Fitted, RescalingPutOffIsNamed) {
    // Of 16 keys the first; what the second tile's maximum grows by is left out below 1.
    const auto late =
        row_by_row([](const std::vector<double>& below, const std::vector<double>& values) {
            RowAnswer answer;
            double most = -infinite;
            for (std::size_t from = 0; from < below.size(); from += 16) {
                const std::size_t to = std::min(from + 16, below.size());
                const double larger = std::max(
                    most, *std::max_element(below.begin() + static_cast<std::ptrdiff_t>(from),
                                            below.begin() + static_cast<std::ptrdiff_t>(to)));
                const double factor = larger - most < 1 ? 1 : std::exp(most - larger);
                answer.sum *= factor;
                answer.output *= factor;
                most = larger;
                for (std::size_t j = from; j < to; ++j) {
                    answer.sum += std::exp(below[j] - most);
                    answer.output += std::exp(below[j] - most) * values[j];
                }
            }
            answer.output /= answer.sum;
            answer.sum *= std::exp(most);
            return answer;
        });
    EXPECT_EQ(diagnosed_of(late, "b1 hq2 hkv2 tq3 tk40 d4 f32").id, "rescaled_late_16_1");
}

/// What it answers with NaN it never wrote.
struct Forgetful : Actor {
    using Actor::Actor;
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        worker::CallResult result = Actor::forward(problem, inputs);
        const Tensor& o = result.outputs[Role::o];
        for (std::int64_t n = 0; n < o.size(); ++n)
            result.outputs_unwritten = result.outputs_unwritten || std::isnan(o.get(n));
        return result;
    }
};

TEST(Fitted, WhatIsNeverWrittenIsNoNaN) {
    Forgetful actor([](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        const std::size_t dim =
            own.output.size() / std::max<std::size_t>(1, truth.row_empty.size());
        for (std::size_t n = 0; n < own.output.size(); ++n)
            if (truth.row_empty[n / dim] != 0) own.output[n].value = std::nan("");
        return own;
    });
    EXPECT_EQ(diagnosed_by(actor, "b1 hq2 hkv2 tq7 tk5 d4 causal f32").says,
              "nothing where a query sees no key: its output is never written");
}

}  // namespace
}  // namespace attest::diagnosis
