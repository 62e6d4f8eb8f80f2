// Deviations that stand in no list of those always tried, each played by a kernel that computes it.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/full_tiles.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {
namespace {

std::vector<Deviation> unlisted() {
    std::vector<Deviation> all;
    for (auto part : {window_origins(),
                      counted_without_keys(true),
                      length_scales(),
                      rotation_tables(),
                      other_heads(),
                      inputs_narrowed(),
                      exponents_narrowed(),
                      parameters_rounded(),
                      merges_rounded(),
                      split_outputs_rounded(true),
                      weights_of_tiles_rounded(),
                      lse_misscaled(),
                      last_sums_not_rescaled(),
                      lost_keys(),
                      early_limits(),
                      channel_orders(),
                      pages_beside(),
                      page_layouts(),
                      sinks_in_output(),
                      lse_maximum_held(),
                      large_inputs_lost(),
                      queries_placed_elsewhere(),
                      other_strides(),
                      numbers_of_other_heads(),
                      mixed_lengths(),
                      cut_indices(),
                      starting_maxima(),
                      shared_masks(),
                      hidden_at_scores_in_part(),
                      lse_in_other_rows(),
                      tile_candidates()})
        all.insert(all.end(), part.begin(), part.end());
    constexpr std::int64_t queries[] = {16}, keys[] = {32};
    for (Deviation& d : full_tiles(queries, keys, true)) all.push_back(std::move(d));
    return all;
}

struct Played {
    const char *id, *line;
};
class Unlisted : public testing::TestWithParam<Played> {};

TEST_P(Unlisted, IsRecognised) {
    EXPECT_EQ(played(unlisted(), GetParam().id, GetParam().line), GetParam().id);
}

constexpr Played plays[] = {
    {"ring_of_longest", "b2 hq1 hkv1 tq2 tk9 d4 window 3 -1 lens_kv 9,5 cache 7 ring f32"},
    {"hidden_minus_1e4_own_tiles_32_32_seen",
     "b1 hq8 hkv8 tq40 tk40 d4 causal f32 values logit1e4"},
    {"boolean_minus_1e4_seen",
     "b1 hq8 hkv8 tq6 tk9 d4 mask bool pattern one_key f32 values logit1e4"},
    {"documents_empty_take_first_query", "b1 hq2 hkv2 tq6 tk9 d4 docs_q 2,0,4 docs_kv 3,2,4 f32"},
    {"queries_in_chunks_16_masks", "b1 hq2 hkv2 tq40 tk40 d4 causal f32"},
    {"window_left_from_row", "b1 hq2 hkv2 tq3 tk9 d4 window 2 -1 f32"},
    {"window_right_whole_tile_16", "b1 hq2 hkv2 tq20 tk40 d4 window -1 3 f32"},
    {"window_left_of_first_16", "b1 hq2 hkv2 tq20 tk40 d4 window 3 -1 f32"},
    {"scale_log_keys_128", "b1 hq1 hkv1 tq2 tk200 d4 f32"},
    {"scale_root_of_keys", "b1 hq2 hkv2 tq3 tk9 d4 f32"},
    {"rope_positions_bf16", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 301 cache 4 f32"},
    {"rope_frequencies_bf16", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 31 cache 4 f32"},
    {"rope_table_f16", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 31 cache 4 f32"},
    {"rope_positions_end_256", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 254 cache 4 f32"},
    {"heads_group_power", "b1 hq6 hkv2 tq2 tk5 d4 f32"},
    {"hidden_first_tile_8_guarded",
     "b2 hq2 hkv2 tq4 tk20 d4 mask bool pattern left_pad tile 8 lens_kv 20,5 f32"},
    {"empty_splits_counted_16", "b1 hq1 hkv1 tq2 tk20 d4 splits 3 f32"},
    {"split_tiles_dropped_16", "b1 hq1 hkv1 tq2 tk49 d4 splits 2 f32"},
    {"empty_splits_counted_16_pages", "b1 hq1 hkv1 tq2 tk6 d4 cache 4 page 2 splits 2 f32"},
    {"split_tiles_dropped_16_pages", "b1 hq1 hkv1 tq2 tk5 d4 cache 3 page 2 splits 2 f32"},
    {"splits_added_weights_16", "b1 hq1 hkv1 tq2 tk40 d4 splits 2 f32"},
    {"lse_plain_strides", "b2 hq3 hkv3 tq4 tk5 d4 layout_o tbhd f32"},
    {"sum_and_one", "b1 hq1 hkv1 tq2 tk5 d4 f32"},
    {"queries_keys_as_tf32_cut", "b1 hq2 hkv2 tq3 tk5 d8 f32"},
    {"lse_scaled", "b1 hq2 hkv2 tq3 tk5 d8 f32"},
    {"lse_maximum_unscaled", "b1 hq2 hkv2 tq3 tk5 d8 f32"},
    {"lse_maximum_other_base", "b1 hq2 hkv2 tq3 tk5 d8 f32"},
    {"alibi_distance_ends_8", "b1 hq2 hkv2 tq3 tk20 d4 alibi cache 17 f32"},
    {"mask_rounded_bf16", "b1 hq2 hkv2 tq3 tk9 d4 mask additive f32"},
    {"sinks_rounded_own", "b1 hq4 hkv4 tq3 tk5 d4 sink f16"},
    {"slopes_rounded_bf16", "b1 hq2 hkv2 tq3 tk20 d4 alibi slopes random cache 17 f32"},
    {"sinks_rounded_f16", "b1 hq4 hkv4 tq3 tk5 d4 sink f32"},
    {"alibi_distance_rounded_bf16", "b1 hq2 hkv2 tq2 tk300 d4 alibi cache 298 f32"},
    {"alibi_distance_mod_128", "b1 hq2 hkv2 tq2 tk200 d4 alibi cache 198 f32"},
    {"alibi_distance_signed_8", "b1 hq2 hkv2 tq2 tk200 d4 alibi cache 198 f32"},
    {"weights_rounded_bf16_and_sum_64",
     "b1 hq1 hkv1 tq2 tk150 d1 scale 0.01 f32 q ones k steep v index"},
    {"merge_rounded_bf16", "b1 hq2 hkv2 tq3 tk20 d4 splits 3 f32"},
    {"weights_rounded_bf16_in_sum_64",
     "b1 hq1 hkv1 tq2 tk150 d1 scale 0.01 f32 q ones k steep v index"},
    {"merge_maxima_rounded_own_and_sum", "b1 hq2 hkv2 tq3 tk20 d4 splits 3 f16"},
    {"split_outputs_rounded_bf16", "b1 hq2 hkv2 tq3 tk20 d4 splits 3 f32"},
    {"splits_end_2", "b1 hq1 hkv1 tq2 tk20 d4 splits 5 f32"},
    {"rope_odd_pairs_backwards", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 31 cache 4 f32"},
    {"last_of_odd_channels_twice", "b1 hq2 hkv2 tq3 tk5 d7 f32"},
    {"roots_of_the_scale", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 31 cache 4 f16"},
    {"values_in_rows_of_keys", "b1 hq2 hkv2 tq3 tk5 d4 dv6 f32"},
    {"pages_last_from_before", "b1 hq1 hkv1 tq2 tk20 d4 cache 18 page 8 f32"},
    {"values_lost_last_before_more_16", "b1 hq1 hkv1 tq2 tk40 d4 f32"},
    {"keys_lost_last_before_more_64", "b1 hq1 hkv1 tq2 tk65 d4 f32"},
    {"keys_lost_first_of_rest_16", "b1 hq1 hkv1 tq2 tk20 d4 f32"},
    {"window_left_one_fewer", "b1 hq2 hkv2 tq3 tk9 d4 window 0 -1 f32"},
    {"rest_below_4_of_16_dropped", "b1 hq1 hkv1 tq2 tk19 d4 f32"},
    {"last_key_from_before", "b2 hq1 hkv1 tq2 tk20 d4 lens_kv 7,20 cache 18 page 16 f32"},
    {"sink_shared_by_group_in_output", "b1 hq4 hkv2 tq2 tk5 d4 sink f32"},
    {"rope_positions_down_2_keys", "b1 hq2 hkv2 tq2 tk6 d8 rope half offset 31 cache 4 f32"},
    {"lse_maximum_from_-100", "b1 hq1 hkv1 tq4 tk1 d4 scale 200 f32"},
    {"mask_values_from_-10", "b1 hq2 hkv2 tq3 tk9 d4 mask additive floor -1000 f32"},
    {"pages_of_first_in_8", "b1 hq1 hkv1 tq2 tk20 d4 cache 18 page 4 f32"},
    {"rope_last_channels", "b1 hq2 hkv2 tq2 tk6 d8 rope half dims 4 offset 31 cache 4 f32"},
    {"not_rescaled_last_sum_16", "b1 hq1 hkv1 tq2 tk20 d4 f32"},
    {"not_rescaled_last_sum_16_sink_first", "b1 hq1 hkv1 tq2 tk20 d4 sink f32"},
    {"window_ignored_at_left_1", "b1 hq2 hkv2 tq9 tk9 d4 window 8 1 f32"},
    {"mask_values_hide_-1000", "b1 hq2 hkv2 tq3 tk2 d4 mask additive floor -1000 f32"},
    {"mask_infinity_-10", "b1 hq2 hkv2 tq3 tk9 d4 mask additive f32"},
    {"pages_last_of_one_key_dropped", "b1 hq1 hkv1 tq2 tk17 d4 cache 15 page 8 f32"},
    {"pages_full_last_dropped", "b1 hq1 hkv1 tq2 tk16 d4 cache 14 page 8 f32"},
    {"queries_top_left_alibi_rope", "b1 hq2 hkv2 tq3 tk9 d4 causal alibi rope half cache 6 f32"},
    {"alibi_of_group_first", "b1 hq6 hkv2 tq9 tk9 d4 alibi f32"},
    {"sink_of_group_first", "b1 hq6 hkv2 tq3 tk9 d4 sink f32"},
    {"query_lengths_less", "b2 hq2 hkv2 tq6 tk9 d4 lens_q 3,6 f32"},
    {"key_lengths_of_next", "b2 hq2 hkv2 tq3 tk9 d4 lens_kv 4,9 f32"},
    {"documents_from_queries", "b1 hq2 hkv2 tq7 tk9 d4 docs_q 2,5 docs_kv 4,5 f32"},
    {"window_left_of_zero_ignored", "b1 hq2 hkv2 tq9 tk9 d4 window 0 3 f32"},
    {"window_right_alone_ignored", "b1 hq2 hkv2 tq9 tk9 d4 window -1 2 f32"},
    {"window_left_from_packed_row", "b1 hq4 hkv2 tq9 tk9 d4 window 2 -1 f32"},
    {"window_left_of_first_packed_16", "b1 hq6 hkv2 tq20 tk40 d4 window 3 -1 f32"},
    {"window_left_inwards_packed_16_32", "b1 hq6 hkv2 tq20 tk90 d4 window 40 -1 f32"},
    {"sink_of_group_by_key_head", "b1 hq6 hkv2 tq3 tk9 d4 sink f32"},
    {"sink_of_modulo_4", "b1 hq6 hkv2 tq3 tk9 d4 sink f32"},
    {"mask_in_documents", "b1 hq2 hkv2 tq7 tk9 d4 mask additive docs_q 2,5 docs_kv 4,5 f32"},
    {"mask_shared_query_ignored_causal",
     "b1 hq2 hkv2 tq4 tk6 d4 causal mask additive shared queries f32"},
    {"mask_of_head_by_sequence", "b2 hq2 hkv2 tq4 tk6 d4 mask additive shared batch f32"},
    {"lse_in_packed_order", "b1 hq6 hkv2 tq3 tk9 d4 f32"},
    {"softcap_over_additive_tiles_16_16",
     "b1 hq1 hkv1 tq20 tk40 d4 mask additive pattern inner_tiles tile 16 softcap 0.5 f32"},
    {"softcap_over_additive", "b1 hq2 hkv2 tq3 tk9 d4 causal mask additive softcap 0.5 f32"},
    {"tiles_skipped_16_17_exp2", "b1 hq2 hkv2 tq5 tk80 d8 dv7 scale 3 f32"},
    {"maximum_of_hidden_tiles_16",
     "b1 hq2 hkv2 tq7 tk40 d4 docs_q 2,5 docs_kv 20,20 f32 values logit1e3"},
    {"sink_without_keys_minus_infinity", "b1 hq2 hkv2 tq3 tk2 d4 causal sink f32"},
    {"rope_queries_in_halves",
     "b1 hq2 hkv2 tq2 tk6 d8 rope interleaved offset 31 cache 4 rotated f32"},
    {"page_numbers_modulo_256", "b2 hq1 hkv1 tq1 tk260 d2 cache 259 page 1 f32"},
    {"bias_of_head_group_first", "b1 hq4 hkv2 tq3 tk5 d4 mask additive f32"},
    {"queries_behind_keys_rope", "b1 hq2 hkv2 tq2 tk6 d6 rope half offset 31 cache 4 f32"},
    {"mask_boolean_-10", "b1 hq2 hkv2 tq3 tk9 d4 mask bool f32"},
    {"scores_of_last_chunk_8", "b1 hq2 hkv2 tq3 tk9 d11 f32"},
    {"full_tile_boolean_16_32", "b1 hq1 hkv1 tq20 tk70 d4 causal mask bool f32"},
    {"full_tile_boolean_packed_16_32", "b1 hq6 hkv2 tq20 tk70 d4 causal mask bool f32"},
    {"full_tile_window_first_16_32", "b1 hq1 hkv1 tq20 tk90 d4 window 50 -1 f32"},
    {"full_tile_causal_last_16_32", "b1 hq1 hkv1 tq20 tk70 d4 causal f32"},
    {"window_loop_last_16_32", "b1 hq1 hkv1 tq40 tk90 d4 window 20 -1 f32"},
    {"window_queries_first_16_32_0", "b1 hq1 hkv1 tq90 tk90 d4 window 20 -1 f32"},
    {"window_queries_first_16_32_16", "b1 hq1 hkv1 tq90 tk90 d4 window 20 -1 f32"},
    {"v_k_head_strides", "b1 hq2 hkv2 tq3 tk9 d4 layout_v bthd pad 1 f32"},
    {"o_q_all_strides", "b1 hq2 hkv2 tq3 tk9 d4 layout_o bthd pad 1 f32"},
    {"key_offset_modulo_65536", "b1 hq2 hkv2 tq1 tk18000 d2 f32"},
    {"pages_full_last_dropped_or_16", "b1 hq1 hkv1 tq2 tk32 d4 f32"},
    {"pages_of_slots_of_heads_values", "b1 hq2 hkv2 tq2 tk16 d4 cache 14 page 4 f32"},
    {"ends_at_hidden_tile_16_16",
     "b1 hq1 hkv1 tq20 tk70 d4 mask bool pattern inner_tiles tile 16 f32"},
    {"maximum_without_rest_4", "b1 hq2 hkv2 tq3 tk5 d4 f32 values logit1e3"},
    {"alibi_and_sink_of_group_by_key_head", "b1 hq6 hkv2 tq9 tk9 d4 alibi sink f32"},
    {"window_left_chunk_1", "b1 hq2 hkv2 tq9 tk9 d4 window 2 -1 f32"},
    {"window_left_chunk_0", "b1 hq2 hkv2 tq9 tk9 d4 window 3 -1 f32"},
    {"window_left_halved", "b1 hq2 hkv2 tq9 tk9 d4 window 4 -1 f32"},
    {"window_keeps_first_1_beside_sinks", "b1 hq2 hkv2 tq9 tk9 d4 window 2 -1 sink f32"},
    {"window_keeps_first_4", "b1 hq2 hkv2 tq9 tk9 d4 window 2 -1 f32"},
    {"mask_of_heads_first", "b2 hq3 hkv3 tq3 tk5 d4 mask bool f32"},
    {"mask_of_heads_first_written_out", "b2 hq3 hkv3 tq3 tk5 d4 mask bool shared heads f32"},
    {"key_lengths_from_the_end", "b2 hq2 hkv2 tq3 tk9 d4 lens_kv 4,9 f32"},
    {"rope_last_of_odd_pairs_left", "b1 hq2 hkv2 tq2 tk6 d6 rope half offset 31 cache 4 f32"},
    {"rope_table_of_other_style", "b1 hq2 hkv2 tq2 tk6 d6 rope half offset 31 cache 4 f32"},
    {"queries_packed_masks", "b1 hq2 hkv2 tq7 tk9 d4 causal docs_q 2,5 docs_kv 4,5 f32"},
    {"queries_packed_top_left_masks", "b1 hq2 hkv2 tq7 tk9 d4 causal docs_q 2,5 docs_kv 4,5 f32"},
    {"sink_not_rescaled_values", "b1 hq2 hkv2 tq3 tk5 d4 scale 0.01 sink f32"},
    {"sink_not_rescaled_weights", "b1 hq2 hkv2 tq3 tk5 d4 scale 0.01 sink f32"},
    {"sink_not_rescaled", "b1 hq2 hkv2 tq3 tk5 d4 scale 0.01 sink f32"},
    {"keys_skipped_8", "b1 hq2 hkv2 tq3 tk9 d4 f32 values logit50"},
    {"channels_of_last_8_twice", "b1 hq2 hkv2 tq3 tk5 d11 f32"},
    {"outputs_of_last_8_twice", "b1 hq2 hkv2 tq3 tk5 d4 dv11 f32"},
    {"maximum_without_lane_8", "b1 hq2 hkv2 tq3 tk24 d4 f32 values logit1e3"},
    {"merged_without_maximum", "b1 hq1 hkv1 tq4 tk400 d1 scale -53 f32 q index k ones v index"},
    {"splits_merged_maxima_exp2_1", "b1 hq2 hkv2 tq3 tk20 d4 splits 3 f32"},
    {"splits_merged_lse_exp_1", "b1 hq2 hkv2 tq3 tk20 d4 sink splits 3 f32"},
    {"splits_merged_lse_exp_1_sink_apart", "b1 hq2 hkv2 tq3 tk20 d4 sink splits 3 f32"},
    {"splits_merged_lse_exp2_1", "b1 hq2 hkv2 tq3 tk20 d4 splits 3 f32"},
    {"window_left_of_zero_hides_own", "b1 hq2 hkv2 tq3 tk9 d4 window 0 -1 f32"},
    {"window_of_zero_hides_own", "b1 hq2 hkv2 tq3 tk9 d4 window 2 0 f32"},
    {"pages_by_shift", "b1 hq2 hkv2 tq2 tk20 d4 cache 18 page 6 f32"},
    {"pages_modulo_256", "b1 hq1 hkv1 tq2 tk300 d4 cache 298 page 1 f32"},
    {"window_left_whole_page", "b1 hq2 hkv2 tq6 tk20 d4 window 3 -1 cache 14 page 6 f32"},
    {"exponent_log2e_f32", "b1 hq2 hkv2 tq3 tk9 d4 f64"},
    {"scale_f32", "b1 hq2 hkv2 tq3 tk9 d5 f64"},
    {"maximum_of_block_8", "b1 hq2 hkv2 tq20 tk3 d4 f32 values logit1e3"},
    {"maximum_of_products", "b1 hq2 hkv2 tq9 tk40 d4 scale -1 f32 values logit50"},
    {"mask_of_first_sequence_of_shared_head",
     "b3 hq2 hkv2 tq4 tk6 d4 mask additive shared heads f32"},
    {"mask_plane_modulo", "b2 hq3 hkv3 tq3 tk5 d4 mask bool shared heads f32"},
    {"documents_as_long_as_queries", "b1 hq2 hkv2 tq7 tk9 d4 docs_q 2,5 docs_kv 4,5 f32"},
};

INSTANTIATE_TEST_SUITE_P(Each, Unlisted, testing::ValuesIn(plays), [](const auto& play) {
    std::string name = play.param.id;
    std::ranges::replace(name, '-', 'm');
    return name;
});

TEST(OtherStrides, ALogSumExpThatNobodyAsksForHasNone) {
    const Case c = parse_case("b2 hq3 hkv3 tq4 tk5 d4 layout_o tbhd f32 no_lse");
    const Specification s{c.problem, {}, {}, make_inputs(c)};
    const bound::Expected truth = oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
    for (const Deviation& d : other_strides())
        if (d.id == "lse_plain_strides") {
            EXPECT_FALSE(predict(d, s, truth));
        }
}

TEST(QueriesPlacedElsewhere, BehindTheCacheWhereItHoldsKeys) {
    const std::vector<Deviation> all = queries_placed_elsewhere();
    const auto own = std::ranges::find(all, "queries_behind_cache_rope", &Deviation::id);
    ASSERT_NE(own, all.end());
    const auto differs = [&](const char* line) {
        const Case c = parse_case(line);
        const Specification s{c.problem, {}, {}, make_inputs(c)};
        const bound::Expected truth = oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
        return predict(*own, s, truth).has_value();
    };
    EXPECT_TRUE(differs("b2 hq2 hkv2 tq2 tk6 d8 rope half lens_kv 3,6 cache 4 f32"));
    EXPECT_FALSE(differs("b2 hq2 hkv2 tq2 tk6 d8 rope half lens_kv 6,6 cache 4 f32"));
    EXPECT_FALSE(differs("b2 hq2 hkv2 tq6 tk6 d8 rope half lens_q 3,6 lens_kv 3,6 f32"));
}

// Tiles of 32 keys of which the first query of 16 sees none are hidden from all of these.
TEST(SkippedTiles, OfWhichTheFirstQueryOfTheBlockSeesNone) {
    const auto answer = [](const Specification& s, const bound::Expected& truth) {
        const Problem& p = s.problem;
        if (p.mask.tensor.kind == MaskKind::none || !p.mask.lens_kv.empty()) return truth;
        const Tensor& mask = s.inputs[Role::mask];
        const auto sees = [&](auto b, auto h, auto query, auto key) {
            const bool causal = p.mask.causal && key > query + p.len_kv - p.len_q;
            const double value = mask.broadcast_at(b, h, query, key);
            return !causal &&
                   (p.mask.tensor.kind == MaskKind::boolean ? value != 0 : value > -1e30);
        };
        Specification own = s;
        own.inputs.put(Role::mask,
                       remake(ElementType::f64, {p.batch, p.heads_q, p.len_q, p.len_kv},
                              [&](auto b, auto h, auto query, auto key) {
                                  const std::int64_t to = std::min(key / 32 * 32 + 32, p.len_kv);
                                  for (std::int64_t k = key / 32 * 32; k < to; ++k)
                                      if (sees(b, h, query / 16 * 16, k))
                                          return mask.broadcast_at(b, h, query, key);
                                  return p.mask.tensor.kind == MaskKind::boolean ? 0.0 : -HUGE_VAL;
                              }));
        own.problem.mask.tensor = {.kind = p.mask.tensor.kind};
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    };
    const Diagnosis d =
        diagnosed_of(answer, "b1 hq1 hkv1 tq40 tk40 d4 causal mask bool pattern one_key f32");
    EXPECT_EQ(d.id, "mask_tile_first_query_sees_16_32") << d.says;
}

}  // namespace
}  // namespace attest::diagnosis
