#pragma once
// What the laws of gradients are tried on, and how a kernel is planted wrong in its backward alone.

#include "properties/law/property.hpp"

namespace attest::law {

/// Whole sequences: nobody differentiates caches. Backward is five products where forward is two,
/// and so is its reference: a law that calls both once has a quarter of the scores.
inline CaseSpace gradient_cases(std::int64_t cost = 4) {
    return {.allow = FeatureSet::all()
                         .without(Feature::dropout)
                         .without(Feature::cache)
                         .without(Feature::paged)
                         .without(Feature::keys_rotated)
                         .without(Feature::splits),
            .cost = cost};
}

namespace planted {

PlantedDeviation key_gradients_unscaled();
PlantedDeviation both_gradients_unscaled();      ///< those of queries and keys
PlantedDeviation last_key_without_gradient();    ///< as of a tail that is not written back
PlantedDeviation group_overwritten();            ///< keys have their last query head's gradients
PlantedDeviation mask_ignored_in_backward();     ///< all but lengths and documents
PlantedDeviation first_channel_doubled();        ///< the first query's dQ has one channel doubled
PlantedDeviation deltas_of_next_row();           ///< dO rolled by a query, in dS alone
PlantedDeviation large_biases_hide();            ///< below -1e4, in backward alone
PlantedDeviation gradients_of_squares();         ///< of dO |dO|
PlantedDeviation gradients_by_the_call();        ///< odd calls differ
PlantedDeviation gradients_of_first_sequence();  ///< every sequence has those of the first
PlantedDeviation padded_gradients_negated();     ///< where queries are laid out with gaps
PlantedDeviation hidden_gradients_tiny();        ///< 2^-10 where 0 is due

}  // namespace planted

}  // namespace attest::law
