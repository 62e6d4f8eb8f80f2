// A backward written out by itself, with the slips that the second forms of deviations are: nothing
// that it computes comes from what it is told by.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_actor_test.hpp"

namespace attest::diagnosis {
namespace {

/// Whole sequences and groups of one head; causal masks and sinks alone.
constexpr const char* plain_lines[] = {
    "b2 hq2 hkv2 tq5 tk3 d4 causal f32 grad",
    "b1 hq1 hkv1 tq6 tk2 d2 causal f32 grad",
    "b1 hq2 hkv2 tq4 tk6 d3 causal f32 grad",
    "b2 hq2 hkv2 tq3 tk5 d4 f32 grad lse_grad",
    "b1 hq2 hkv2 tq3 tk5 d4 sink f32 grad",
    "b2 hq2 hkv2 tq4 tk5 d4 sink f32 grad lse_grad seed 13",
};

struct Slips {
    bool forgets_causal = false, forgets_delta = false, forgets_sink = false;
    std::int64_t skips_blocks_of = 0;  ///< queries and keys, whose first query sees none of these
};

struct WrittenRow {
    const Specification& s;
    std::int64_t b, h, i;

    bool sees(std::int64_t j) const {
        return !s.problem.mask.causal || j <= i + s.problem.len_kv - s.problem.len_q;
    }
    double product(Role a, Role b_, std::int64_t j) const {
        double sum = 0;
        for (std::int64_t c = 0; c < s.inputs[a].shape()[3]; ++c)
            sum += s.inputs[a].at(b, h, i, c) * s.inputs[b_].at(b, h, j, c);
        return sum;
    }
    double score(std::int64_t j) const {
        return effective_scale(s.problem) * product(Role::q, Role::k, j);
    }
    double lse_of_keys() const {
        double sum = 0;
        for (std::int64_t j = 0; j < s.problem.len_kv; ++j) sum += sees(j) ? std::exp(score(j)) : 0;
        return std::log(sum);
    }
};

bool skips(const WrittenRow& row, std::int64_t j, std::int64_t block) {
    WrittenRow first = row;
    first.i = row.i / block * block;
    const std::int64_t from = j / block * block, to = std::min(from + block, row.s.problem.len_kv);
    for (std::int64_t n = from; n < to; ++n)
        if (first.sees(n)) return false;
    return true;
}

void add_row(const WrittenRow& row, const Slips& slips, GradientNumbers& v) {
    const Problem& p = row.s.problem;
    const TensorSet& in = row.s.inputs;
    const double lse =
        slips.forgets_sink && p.sink ? row.lse_of_keys() : in[Role::lse].at(row.b, row.h, row.i, 0);
    if (lse == -infinite) return;  // no key, as forward saw it
    double delta = slips.forgets_delta ? 0 : row.product(Role::d_o, Role::o, row.i);
    if (in.has(Role::d_lse) && !slips.forgets_delta)
        delta -= in[Role::d_lse].at(row.b, row.h, row.i, 0);
    const std::int64_t head = row.b * p.heads_q + row.h, d = p.dim_qk;
    const auto at = [&](std::int64_t t, std::int64_t len, std::int64_t c) {
        return static_cast<std::size_t>((head * len + t) * d + c);
    };
    for (std::int64_t j = 0; j < p.len_kv; ++j) {
        if (!slips.forgets_causal && !row.sees(j)) continue;
        if (slips.skips_blocks_of > 0 && skips(row, j, slips.skips_blocks_of)) continue;
        const double weight = std::exp(row.score(j) - lse);
        const double ds = weight * (row.product(Role::d_o, Role::v, j) - delta);
        const double dx = effective_scale(p) * ds;
        for (std::int64_t c = 0; c < d; ++c) {
            v[Role::d_q][at(row.i, p.len_q, c)] += dx * in[Role::k].at(row.b, row.h, j, c);
            v[Role::d_k][at(j, p.len_kv, c)] += dx * in[Role::q].at(row.b, row.h, row.i, c);
            v[Role::d_v][at(j, p.len_kv, c)] += weight * in[Role::d_o].at(row.b, row.h, row.i, c);
        }
    }
}

Diagnosis diagnosis_with(Slips slips, std::span<const char* const> asked = plain_lines) {
    return diagnosis_of(changed([slips](const Specification& s, GradientNumbers& v) {
                            for (const Role role : {Role::d_q, Role::d_k, Role::d_v})
                                std::fill(v[role].begin(), v[role].end(), 0.0);
                            if (slips.forgets_sink)
                                std::fill(v[Role::d_sinks].begin(), v[Role::d_sinks].end(), 0.0);
                            for (std::int64_t b = 0; b < s.problem.batch; ++b)
                                for (std::int64_t h = 0; h < s.problem.heads_q; ++h)
                                    for (std::int64_t i = 0; i < s.problem.len_q; ++i)
                                        add_row({s, b, h, i}, slips, v);
                        }),
                        asked);
}

TEST(BackwardForms, WithoutASlipItIsRight) {
    EXPECT_EQ(diagnosis_with({}).cases, 0);
}

// Many kernels leave a row out whose LSE is that of no key, whatever they take for its mask.
TEST(BackwardForms, AForgottenMaskIsNamedWhereRowsWithoutKeysAreLeftOut) {
    EXPECT_EQ(diagnosis_with({.forgets_causal = true}).id, "backward_causal_ignored");
}

TEST(BackwardForms, ADeltaLeftOutWithTheGradientOfTheLseIsNamed) {
    EXPECT_EQ(diagnosis_with({.forgets_delta = true}).id, "delta_omitted");
}

TEST(BackwardForms, ASinkLeftOutOfItsOwnGradientTooIsNamed) {
    EXPECT_EQ(diagnosis_with({.forgets_sink = true}).id, "sink_left_out");
}

TEST(BackwardForms, ABlockSkippedByItsFirstQueryIsNamed) {
    constexpr const char* tiles[] = {
        "b1 hq1 hkv1 tq20 tk40 d2 causal f32 grad", "b1 hq1 hkv1 tq33 tk90 d2 causal f32 grad",
        "b1 hq1 hkv1 tq60 tk75 d2 causal f32 grad", "b1 hq2 hkv2 tq40 tk30 d3 causal f32 grad"};
    EXPECT_EQ(diagnosis_with({.skips_blocks_of = 16}, tiles).id, "blocks_first_query_16_16");
    EXPECT_EQ(diagnosis_with({.skips_blocks_of = 32}, tiles).id, "blocks_first_query_32_32");
}

/// Of two rows that see no key, dQ of the first, or of both, is what memory held.
Diagnosis diagnosis_of_unwritten(std::int64_t rows) {
    constexpr const char* asked[] = {"b2 hq2 hkv2 tq5 tk3 d4 causal f32 grad",
                                     "b1 hq1 hkv1 tq6 tk4 d2 causal f32 grad"};
    return diagnosis_of(changed([rows](const Specification& s, GradientNumbers& v) {
                            const Problem& p = s.problem;
                            for (std::int64_t at = 0; at < std::ssize(v[Role::d_q]); ++at)
                                if (at / p.dim_qk % p.len_q < rows)
                                    v[Role::d_q][static_cast<std::size_t>(at)] = std::nan("");
                        }),
                        asked);
}

TEST(BackwardForms, WhatIsUnwrittenInSomeRowsIsNamed) {
    EXPECT_EQ(diagnosis_of_unwritten(2).id, "unwritten_unseen");
    EXPECT_EQ(diagnosis_of_unwritten(1).id, "unwritten_some_zeros");
    EXPECT_FALSE(diagnosis_of_unwritten(3).id.starts_with("unwritten"));
}

TEST(BackwardForms, KeysOfASequenceWithoutQueriesThatAreUnwrittenAreNamed) {
    constexpr const char* asked[] = {"b2 hq1 hkv1 tq3 tk3 d4 lens_q 0,3 lens_kv 2,2 f32 grad",
                                     "b1 hq1 hkv1 tq3 tk5 d4 docs_q 0,3 docs_kv 2,3 f32 grad"};
    const auto unwritten = changed([](const Specification& s, GradientNumbers& v) {
        for (const Role role : {Role::d_k, Role::d_v}) {
            const Shape shape = shape_of(s.problem, role).value();
            const std::int64_t rows = s.problem.mask.lens_q.empty() ? 2 : shape[2];
            std::fill_n(v[role].begin(), rows * shape[3], std::nan(""));
        }
    });
    EXPECT_EQ(diagnosis_of(unwritten, asked).id, "unwritten_of_no_query");
}

/// Rows that forward shows no key have an LSE of -inf: a backward that shows them keys makes
/// infinite weights of these, and what dropout drops of them is 0 or a NaN, as kernels drop.
TEST(BackwardForms, NothingIsClaimedOfInfiniteWeightsThatAreDropped) {
    const BackwardEvidence e = evidence_of(
        parse_case("b1 hq8 hkv8 tq8 tk4 d2 causal dropout 0.875 seed 5 f32 grad"), reference);
    const auto own = predict(*std::ranges::find(backward_deviations(), "backward_diagonal_top_left",
                                                &BackwardDeviation::id),
                             e);
    ASSERT_TRUE(own);
    const Problem& p = e.asked.problem;
    const Tensor& keep = e.asked.inputs[Role::dropout_keep];
    int dropped = 0;
    for (std::int64_t h = 0; h < p.heads_q; ++h)
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            const std::int64_t seen_by_none = p.len_q - p.len_kv;
            bool all = j < seen_by_none;
            for (std::int64_t i = j; i < seen_by_none; ++i) all = all && keep.at(0, h, i, j) == 0;
            if (!all) continue;
            ++dropped;
            const auto at = static_cast<std::size_t>((h * p.len_kv + j) * p.dim_qk);
            EXPECT_FALSE(std::isnan((*own)[Role::d_v][at].value)) << h << " " << j;
            EXPECT_EQ((*own)[Role::d_v][at].bound, infinite) << h << " " << j;
        }
    EXPECT_GT(dropped, 0);
}

TEST(DiagnoseBackward, ErrorsOfACoarserArithmeticAreNamedByTheirSize) {
    // A part of each number: no factor, and no format's rounding.
    const auto off_by = [](double part) {
        return diagnosis_of(changed([part](const Specification&, GradientNumbers& v) {
            for (std::size_t n = 0; n < v[Role::d_v].size(); ++n)
                v[Role::d_v][n] *= 1 + part * std::sin(static_cast<double>(n));
        }));
    };
    EXPECT_EQ(off_by(0x1p-13).id, "backward_step_exp_12");
    EXPECT_EQ(off_by(0x1p-10).id, "backward_step_exp_9");
    EXPECT_FALSE(off_by(0.25).known);
}

// Of sums in bf16 little comes out right; of one that loses a small share of long rows, the rest.
TEST(DiagnoseBackward, SumsInACoarserFormatAreRefutedByRightCalls) {
    const auto off_from = [](std::int64_t keys) {
        return diagnosis_of(changed([keys](const Specification& s, GradientNumbers& v) {
            for (std::size_t n = 0; s.problem.len_kv >= keys && n < v[Role::d_q].size(); ++n)
                v[Role::d_q][n] *= 1 + 0x1p-10 * std::sin(static_cast<double>(n));
        }));
    };
    EXPECT_EQ(off_from(0).id, "backward_step_sums_f16");
    const Diagnosis lost = off_from(7);
    EXPECT_FALSE(lost.known) << lost.id;
}

// Whatever mask backward goes by, exp(S + infinity) is NaN in a row that forward saw no key of.
TEST(DiagnoseBackward, NaNWhereForwardSawNoKeyTellsOfNoOtherMask) {
    constexpr const char* hidden[] = {"b1 hq1 hkv1 tq1 tk1 d1 mask additive f32 grad",
                                      "b1 hq1 hkv1 tq2 tk1 d4 mask additive f32 grad"};
    AllBackwardEvidence all;
    for (const char* line : hidden) {
        const auto nan = changed([](const Specification&, GradientNumbers& v) {
            for (auto& [role, numbers] : v) std::ranges::fill(numbers, std::nan(""));
        });
        BackwardEvidence e = evidence_of(parse_case(line), nan, {}, [](TensorSet& inputs) {
            Tensor& mask = inputs[Role::mask];
            for (std::int64_t n = 0; n < mask.size(); ++n) mask.set(n, -infinite);
        });
        e.unwritten = false;
        all.add(std::move(e));
    }
    all.add(evidence_of(parse_case("b1 hq2 hkv2 tq4 tk6 d4 causal f32 grad"), reference));
    const Diagnosis found = explain_backward(all);
    EXPECT_EQ(found.id, "empty_rows_recomputed");
    for (const Explanation& other : found.also)
        EXPECT_FALSE(other.id.starts_with("backward_")) << other.says;
}

}  // namespace
}  // namespace attest::diagnosis
