#pragma once
// Deviations with a number in them that only the evidence can tell: the key from which a kernel
// forgets all others, the temperature it uses. The number is read off the evidence; whether the
// deviation then explains it is judged like that of any other.

#include <cstdint>
#include <vector>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

std::vector<Deviation> fitted_deviations(const AllEvidence& evidence);

/// Running maxima that start at some number, that hidden keys share in, or that nobody subtracts.
std::vector<Deviation> starting_maxima();

/// Only whole tiles of so many keys, without the rest.
Deviation tail_dropped(std::int64_t tile);

/// Tiles skipped where their weights are small, counted where they lack keys, NaN where hidden.
std::vector<Deviation> tile_candidates();

/// Values exchanged, outputs taken for 0, weights that end (fitted_outputs.cpp).
std::vector<Deviation> fitted_outputs(const AllEvidence& evidence);

/// The sink counted by splits of whole tiles (sink_deviations.cpp).
std::vector<Deviation> sinks_of_splits();

/// The log-sum-exp of one split (lse_deviations.cpp).
std::vector<Deviation> lse_of_splits();

/// Rescaling put off while the maximum grows little, as if it had not grown
/// (online_deviations.cpp).
std::vector<Deviation> late_rescales();

/// Keys, values and lengths read at an index of fewer bits (input_deviations.cpp).
std::vector<Deviation> cut_indices();

/// Keys lost at the edges of tiles (tile_deviations.cpp).
std::vector<Deviation> tile_deviations();

/// Tiles that a mask tensor or a causal loop leaves out by one of their keys or queries
/// (skipped_tile_deviations.cpp); of the calls in which the kernel was wrong the first is asked.
std::vector<Deviation> skipped_tiles(const std::vector<Evidence>& wrong);

/// A window's limits counted from elsewhere (window_origin_deviations.cpp).
std::vector<Deviation> window_origins();
std::vector<Deviation> window_limits();  ///< of them, those without blocks and tiles

/// Splits and slots without keys that are counted (counted_split_deviations.cpp).
std::vector<Deviation> counted_without_keys(bool paged);

/// Scores scaled by the number of keys (length_scale_deviations.cpp).
std::vector<Deviation> length_scales();

/// Rotations of rounded or limited numbers (rotation_table_deviations.cpp).
std::vector<Deviation> rotation_tables();

/// Further mappings of query heads (head_deviations.cpp).
std::vector<Deviation> other_heads();

/// Slots of pages read from the page beside (cache_deviations.cpp).
std::vector<Deviation> pages_beside();
std::vector<Deviation> page_layouts();  ///< (page_layout_deviations.cpp)

/// The sum over values rounded (rounded_output_deviations.cpp).
std::vector<Deviation> sums_of_values_rounded();

/// Weights rounded by the largest score of each split, as the problem asks for splits
/// (rounding_deviations.cpp).
std::vector<Deviation> weights_of_splits_rounded();

/// And by the largest so far of tiles of keys.
std::vector<Deviation> weights_of_tiles_rounded();

/// Masks, slopes and sinks rounded, and ALiBi's distances rounded, cut off or ended
/// (rounded_parameter_deviations.cpp).
std::vector<Deviation> parameters_rounded();

/// Splits merged by rounded numbers (rounded_merge_deviations.cpp), or of outputs stored in a
/// narrower format (split_output_deviations.cpp): of one part alone too, where some are split.
std::vector<Deviation> merges_rounded();
std::vector<Deviation> split_outputs_rounded(bool one_alone_too);

/// Several inputs narrowed at once (narrow_input_deviations.cpp), and numbers of the softmax of f64
/// tensors (narrow_exponent_deviations.cpp).
std::vector<Deviation> inputs_narrowed();
std::vector<Deviation> exponents_narrowed();

/// A finite score for some of what is hidden, or a fitted one (hidden_score_deviations.cpp).
std::vector<Deviation> hidden_at_scores_in_part();
std::vector<Deviation> hidden_scores(const AllEvidence& evidence);

/// A log-sum-exp multiplied or divided by the scale (lse_scale_deviations.cpp).
std::vector<Deviation> lse_misscaled();

/// A sum of weights alone not rescaled in the last tile; any sum, where it starts with the sink.
std::vector<Deviation> last_sums_not_rescaled();
std::vector<Deviation> not_rescaled_after_sink();

/// Splits and mask values that end early (limit_deviations.cpp).
std::vector<Deviation> early_limits();

/// Channels in another order or number (channel_order_deviations.cpp).
std::vector<Deviation> channel_orders();

/// Values or short rests of keys that are lost (lost_key_deviations.cpp).
std::vector<Deviation> lost_keys();

/// Outputs times a number from some channel on (channel_factor.cpp).
std::vector<Deviation> channel_factors(const AllEvidence& evidence);

/// Sinks that are wrong in the output alone, or in the log-sum-exp where there is no key
/// (sink_deviations.cpp).
std::vector<Deviation> sinks_in_output();

/// A log-sum-exp whose maximum is held above a number (lse_scale_deviations.cpp).
std::vector<Deviation> lse_maximum_held();

/// Strides of other tensors (stride_deviations.cpp).
std::vector<Deviation> other_strides();

/// Queries placed from other origins than the lengths of the axes (placed_queries.cpp).
std::vector<Deviation> queries_placed_elsewhere();

/// Splits of the kernel's own accord, by the smallest call that is wrong
/// (own_split_deviations.cpp).
std::vector<Deviation> own_splits(const AllEvidence& evidence);

/// What is wrong from some channel on; the first call in which it was wrong is asked
/// (some_channels.cpp).
std::vector<Deviation> in_some_channels(const AllEvidence& evidence);

/// A log-sum-exp stored in other rows (lse_place_deviations.cpp).
std::vector<Deviation> lse_in_other_rows();

/// Masks that are one for every sequence, head, query or key (mask_tensor_deviations.cpp).
std::vector<Deviation> shared_masks();

/// Slopes, sinks and masks of other heads (head_parameter_deviations.cpp).
std::vector<Deviation> numbers_of_other_heads();

/// Lengths and documents of others (length_deviations.cpp).
std::vector<Deviation> mixed_lengths();

/// Large numbers and NaN that are not taken as such (input_deviations.cpp).
std::vector<Deviation> large_inputs_lost();

}  // namespace attest::diagnosis
