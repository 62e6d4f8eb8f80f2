// Every deviation of backward is wrong somewhere, and those that look alike are told apart.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "properties/diagnosis/backward_actor_test.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {
namespace {

/// Beside these, long ones for tiles, and what forward's deviations ask for.
constexpr const char* long_lines[] = {
    "b1 hq1 hkv1 tq2 tk130 d2 causal f32 grad",
    "b1 hq2 hkv1 tq140 tk141 d2 f32 grad",
    "b1 hq2 hkv1 tq140 tk141 d2 f32 grad lse_grad",
    "b1 hq1 hkv1 tq270 tk300 d2 causal f32 grad",
    "b1 hq1 hkv1 tq131 tk131 d2 lens_q 130 lens_kv 129 f32 grad",
    "b1 hq1 hkv1 tq3 tk130 d2 causal f32 grad",
    "b1 hq1 hkv1 tq3 tk130 d2 window 1 -1 f32 grad",
    "b1 hq1 hkv1 tq130 tk140 d2 dropout 0.5 seed 8 f32 grad",
    "b1 hq17 hkv1 tq2 tk3 d2 f32 grad",
    "b1 hq1 hkv1 tq260 tk2 d1 sink f32 grad",
    "b1 hq1 hkv1 tq3 tk3 d6 rope half dims 4 scale 0.5 f32 grad",
    "b1 hq1 hkv1 tq6 tk6 d4 docs_q 2,4 docs_kv 2,4 rope half f32 grad",
    "b1 hq1 hkv1 tq140 tk140 d1 window 20 10 f32 grad",
    "b1 hq1 hkv1 tq140 tk140 d1 causal lens_q 70 lens_kv 140 f32 grad",
    "b1 hq2 hkv2 tq6 tk6 d4 docs_q 2,4 docs_kv 2,4 dropout 0.5 seed 3 f32 grad",
};
constexpr const char* more_lines[] = {
    "b3 hq6 hkv3 tq4 tk4 d6 dv70 sink softcap 0.5 alibi scale 0.3 f32 grad",
    "b3 hq6 hkv3 tq4 tk4 d140 dv150 mask additive shared batch,heads scale 0.03 softcap 2 f32 grad",
    "b2 hq6 hkv2 tq4 tk6 d4 mask additive shared queries f32 grad",
    "b2 hq2 hkv2 tq3 tk5 d4 mask additive shared queries,keys sink f32 grad",
    "b2 hq4 hkv4 tq5 tk5 d12 rope interleaved base 100 dims 8 offset 5 f32 grad",
    "b2 hq4 hkv2 tq5 tk5 d4 mask bool f32 grad",
    "b1 hq1 hkv1 tq2 tk3 d3 dv260 f32 grad",
    "b1 hq4 hkv2 tq4 tk6 d4 mask bool causal window 2 1 f32 grad",
    "b2 hq2 hkv2 tq5 tk3 d4 causal f32 grad",
    "b2 hq1 hkv1 tq12 tk5 d3 lens_q 3,9 f32 grad",
    "b1 hq6 hkv2 tq3 tk4 d4 sink mask additive shared heads f32 grad lse_grad",
    "b1 hq4 hkv2 tq5 tk3 d4 causal sink f32 grad lse_grad",
    "b1 hq2 hkv2 tq6 tk6 d4 docs_q 2,4 docs_kv 2,4 alibi sink f32 grad",
    "b1 hq1 hkv1 tq20 tk40 d3 dropout 0.5 seed 9 f32 grad",
    "b1 hq2 hkv2 tq3 tk5 d7 dv4 f32 grad",
    "b1 hq4 hkv2 tq6 tk6 d4 docs_q 2,4 docs_kv 2,4 dropout 0.5 seed 5 f32 grad",
    "b2 hq2 hkv2 tq40 tk46 d4 lens_kv 30,46 lens_q 24,40 causal window 6 3 f32 grad",
};

std::vector<const char*> all_lines() {
    std::vector<const char*> all(std::begin(lines), std::end(lines));
    all.insert(all.end(), std::begin(dropped_lines), std::end(dropped_lines));
    all.insert(all.end(), std::begin(more_lines), std::end(more_lines));
    return all;
}

bool differs_from_truth(const BackwardDeviation& d, const BackwardEvidence& e) {
    const auto own = predict(d, e);
    if (!own) return false;
    for (const Role role : gradient_roles)
        for (std::size_t n = 0; n < (*own)[role].size(); ++n)  // what hides may be a mask by now
            if (outside((*own)[role][n].value, e.truth[role][n],
                        law::gradient_format(e.asked.problem, role)))
                return true;
    return false;
}

// One that is the truth wherever it is tried would be a name for nothing. What forward may do wrong
// too has stages of its own (deviations_test.cpp), and a leak shows where something is NaN.
TEST(BackwardDeviations, EachIsWrongSomewhere) {
    std::vector<const char*> all = all_lines();
    all.insert(all.end(), std::begin(long_lines), std::end(long_lines));
    std::vector<BackwardEvidence> stages;
    for (const char* line : all) stages.push_back(evidence_of(parse_case(line), reference));
    Numerics f32;
    f32.weights = NumberFormat::f32;
    stages.push_back(
        evidence_of(parse_case("b1 hq2 hkv2 tq6 tk7 d4 bf16 out f32 grad"), reference, f32));
    stages.push_back(evidence_of(parse_case("b1 hq8 hkv1 tq6 tk7 d4 bf16 grad"), reference, f32));
    for (const BackwardDeviation& d : backward_deviations()) {
        const bool of_forward = d.respecify && !(d.id.starts_with("backward_causal_") &&
                                                 d.id.find("_tile_") != std::string::npos);
        if (of_forward || d.id == "hidden_leaks") continue;
        EXPECT_TRUE(std::ranges::any_of(
            stages, [&d](const BackwardEvidence& e) { return differs_from_truth(d, e); }))
            << d.id << ": " << d.says;
    }
}

TEST(BackwardDeviations, NoSentenceSaysTwoThings) {
    std::map<std::string, std::string> ids;
    for (const BackwardDeviation& d : backward_deviations())
        EXPECT_EQ(ids.try_emplace(d.says, d.id).first->second, d.id) << d.says;
}

/// A kernel that computes it in some gradients; what is not claimed is as it should be.
Diagnosis diagnosis_of_one(const BackwardDeviation& d, const std::vector<Role>& roles) {
    AllBackwardEvidence all;
    for (const char* line : all_lines()) {
        const Case c = parse_case(line);
        const BackwardEvidence right = evidence_of(c, reference);
        const auto own = predict(d, right);
        all.add(evidence_of(c, changed([&](const Specification&, GradientNumbers& values) {
                                if (!own) return;
                                for (const Role role : roles)
                                    for (std::size_t n = 0; n < (*own)[role].size(); ++n)
                                        if (std::isfinite((*own)[role][n].value))
                                            values[role][n] = (*own)[role][n].value;
                            })));
    }
    return explain_backward(all);
}

struct PlayedBackward {
    const char* id;
    std::vector<Role> roles;
};

std::vector<PlayedBackward> alike() {
    const std::vector<Role> every(std::begin(gradient_roles), std::end(gradient_roles)),
        q_and_k{Role::d_q, Role::d_k}, k_and_v{Role::d_k, Role::d_v};
    return {{"delta_first_of_group", q_and_k},
            {"delta_of_pair", q_and_k},
            {"delta_reversed", q_and_k},
            {"delta_not_negative", q_and_k},
            {"lse_first_of_group", k_and_v},
            {"lse_not_negative", every},
            {"lse_and_delta_row_above_1", every},
            {"d_o_row_above_1", {Role::d_v}},
            {"dp_last_channel", q_and_k},
            {"dp_key_channels", q_and_k},
            {"dp_key_channels_up_to_8", q_and_k},
            {"dp_first_96_channels", q_and_k},
            {"delta_of_both_bf16", q_and_k},
            {"values_key_channels", {Role::d_v}},
            {"value_rows_overlap", {Role::d_v}},
            {"sequences_first", {Role::d_k}},
            {"delta_omitted", q_and_k},
            {"weights_scale_value_dim", k_and_v},
            {"score_bf16", every},
            {"slope_over_cap", q_and_k},
            {"slope_of_size", q_and_k},
            {"group_without_last", k_and_v},
            {"group_power_of_two", k_and_v},
            {"dropout_head_in_group", every},
            {"dropout_query_in_document", every},
            {"dropout_key_in_document", every},
            {"lse_gradient_first_of_group", q_and_k},
            {"lse_gradient_key_heads", q_and_k},
            {"delta_of_products_bf16", q_and_k},
            {"dropout_mask_in_ds", q_and_k},
            {"dropout_key_in_tile_16", every},
            {"mask_first_of_group", {Role::d_mask}},
            {"sinks_rows_with_keys", {Role::d_sinks}},
            {"slopes_last_sequence", {Role::d_slopes}},
            {"bias_slope", {Role::d_slopes}},
            {"dropout_missing_in_delta", q_and_k},
            {"dropout_factor_missing_in_delta", q_and_k},
            {"dropout_twice_in_delta", q_and_k},
            {"delta_in_tile_8", q_and_k},
            {"heads_modulo", k_and_v},
            {"value_head_modulo", q_and_k},
            {"product_head_modulo", {Role::d_q}},
            {"keys_ends_16", {Role::d_q}},
            {"queries_twice_ends_16", k_and_v},
            {"keys_but_last_tile_24", {Role::d_q}},
            {"keys_overwritten_16", {Role::d_q}},
            {"past_lengths_of_one_8", {Role::d_v}},
            {"dropout_of_ds", q_and_k},
            {"dropout_in_ds", q_and_k},
            {"mask_last_head", {Role::d_mask}},
            {"mask_last_key", {Role::d_mask}},
            {"mask_transposed", {Role::d_mask}},
            {"sinks_last_sequence", {Role::d_sinks}},
            {"sinks_first_sequence", {Role::d_sinks}},
            {"sinks_diagonal", {Role::d_sinks}},
            {"shared_key_head", {Role::d_sinks}},
            {"sink_left_out", every},
            {"slopes_squared", {Role::d_slopes}},
            {"slopes_of_key", {Role::d_slopes}},
            {"shared_first_head", {Role::d_slopes}},
            {"rope_back_without_offset", {Role::d_q}},
            {"rope_back_one_more", {Role::d_k}},
            {"rope_back_other_pairs", {Role::d_q}},
            {"rope_products_plain", {Role::d_k}},
            {"backward_causal_query_tile_lost_16", k_and_v},
            {"backward_causal_key_tile_shown_8", k_and_v}};
}

TEST(BackwardDeviations, ThoseThatLookAlikeAreToldApart) {
    std::vector<PlayedBackward> played = alike();
    for (const char* kept : {"kept_sequences", "kept_heads"})
        played.push_back({kept, {Role::d_k, Role::d_v}});
    for (const PlayedBackward& p : played) {
        int forms = 0;
        for (const BackwardDeviation& d : backward_deviations()) {
            // In lines as short as these a second form of a tile may be that of half the tile.
            if (d.id != p.id || (forms > 0 && d.respecify)) continue;
            ++forms;
            const Diagnosis found = diagnosis_of_one(d, p.roles);
            EXPECT_EQ(found.id, p.id) << "form " << forms << ": " << found.says;
        }
        EXPECT_GT(forms, 0) << p.id;
    }
}

// A maximum with the sink, and a sum without it: exp(S - sink) is 0 in f32 where the sink is larger
// by more than its range, and what a kernel makes of an empty sum is its own.
TEST(BackwardDeviations, NothingIsClaimedOfKeysThatASinkLeavesNoRoomFor) {
    const auto d =
        std::ranges::find(backward_deviations(), "sink_left_out", &BackwardDeviation::id);
    const auto claims = [&](const char* line) {
        const BackwardEvidence e = evidence_of(parse_case(line), reference);
        const auto own = predict(*d, e);
        return std::ranges::all_of((*own)[Role::d_v],
                                   [](const auto& x) { return x.bound < infinite; });
    };
    EXPECT_TRUE(claims("b1 hq1 hkv1 tq3 tk5 d4 sink f32 grad"));
    EXPECT_FALSE(claims("b1 hq1 hkv1 tq7 tk2 d3 sink scale 32 f32 grad values logit1e4 seed 11"));
}

/// Whether an element of a kind of place is left as the memory was.
AnswerOf unwritten_where(Role role, std::function<bool(const Specification&, const Shape&)> is) {
    return changed([role, is = std::move(is)](const Specification& s, GradientNumbers& v) {
        const Tensor shaped(type_of(s.problem, role), shape_of(s.problem, role).value());
        for (std::int64_t n = 0; n < shaped.size(); ++n)
            if (is(s, law::index_of(shaped.shape(), n)))
                v[role][static_cast<std::size_t>(n)] = std::nan("");
    });
}

TEST(DiagnoseBackward, PlacesThatNobodyWroteAreNamed) {
    const auto past = [](const Specification& s, const Shape& at) {
        const auto& lens = s.problem.mask.lens_kv;
        return !lens.empty() && at[2] >= lens[static_cast<std::size_t>(at[0])];
    };
    const Diagnosis keys = diagnosis_of(unwritten_where(Role::d_v, past));
    EXPECT_EQ(keys.id, "unwritten_past_length");
    EXPECT_NE(keys.says.find("dV"), std::string::npos) << keys.says;
    // Zeros of a dO that is 0 are written like any other number.
    const auto blind = [](const Specification& s, const Shape& at) {
        const BackwardCall call(s, s, oracle::attend(s.problem, s.dialect, s.numerics, s.inputs));
        if (!call.row(at[0], at[1], at[2]).is_query) return false;
        for (std::int64_t j = 0; j < s.problem.len_kv; ++j)
            if (call.score(at[0], at[1], at[2], j).visible) return false;
        return true;
    };
    constexpr const char* empty_lines[] = {
        "b2 hq4 hkv2 tq4 tk6 d4 mask bool pattern empty_rows f32 grad d_o one_hot",
        "b2 hq2 hkv2 tq5 tk3 d4 causal f32 grad",
        "b2 hq2 hkv2 tq5 tk3 d4 causal f32 grad d_o one_hot"};
    EXPECT_EQ(diagnosis_of(unwritten_where(Role::d_q, blind), empty_lines).id, "unwritten_unseen");
    // One that was written refutes it.
    EXPECT_EQ(diagnosis_of(unwritten_where(Role::d_v,
                                           [&](const Specification& s, const Shape& at) {
                                               return past(s, at) && at[3] > 0;
                                           }))
                  .id,
              "unwritten_some_zeros");
}

// Of three numbers that are all NaN, one is told by what memory held before.
TEST(DiagnoseBackward, WhatIsNotWrittenWhereAnotherIsNotWantedIsNamed) {
    const Case c = parse_case("b1 hq1 hkv1 tq1 tk1 d1 f32 grad");
    AllBackwardEvidence all;
    all.add(evidence_of(c, reference));
    BackwardEvidence alone = evidence_of(c, changed([](const Specification&, GradientNumbers& v) {
                                             v[Role::d_v][0] = std::nan("");
                                             v.erase(Role::d_k);
                                         }));
    all.add(alone);
    const Diagnosis found = explain_backward(all);
    EXPECT_EQ(found.id, "not_cleared");
    EXPECT_NE(found.says.find("dV, never written"), std::string::npos) << found.says;
    EXPECT_NE(found.says.find("where dK is not wanted"), std::string::npos) << found.says;
}

// No number of a list: it is read off the calls, and has to hold in all of them.
TEST(DiagnoseBackward, OneFactorOnEverythingIsFitted) {
    const auto times = [](std::vector<Role> roles, double first, double later) {
        return diagnosis_of(changed([=](const Specification&, GradientNumbers& v) {
            for (const Role role : roles)
                for (std::size_t n = 0; n < v[role].size(); ++n)
                    v[role][n] *= n < 2 ? first : later;
        }));
    };
    const Diagnosis slight = times({Role::d_k}, 1.001, 1.001);
    EXPECT_EQ(slight.id, "times_a_number");
    EXPECT_EQ(slight.says, "gradients 1.001 times as large (seen in dK alone)");
    EXPECT_EQ(times({Role::d_q, Role::d_k}, 1.3, 1.3).says,
              "gradients 1.3 times as large (seen in dQ and dK alone)");
    EXPECT_NE(times({Role::d_k}, 1.3, 1.2).id, "times_a_number");
}

}  // namespace
}  // namespace attest::diagnosis
