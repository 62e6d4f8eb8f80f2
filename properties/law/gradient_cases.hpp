#pragma once
// What the laws of gradients are tried on, and how a kernel is planted wrong in its backward alone.

#include <string>
#include <utility>
#include <vector>

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
                         .without(Feature::ring)
                         .without(Feature::splits),
            .cost = cost};
}

/// A law of gradients: within bounds, of a kernel with a backward.
inline Property gradient_law(std::string id, std::string statement, std::string statement_short,
                             std::string why, std::string source, CaseSpace cases,
                             Plan (*check)(const Given&),
                             std::vector<PlantedDeviation> turned_red_by,
                             Needs needs = {.backward = true}) {
    return {.id = std::move(id),
            .statement = std::move(statement),
            .statement_short = std::move(statement_short),
            .why = std::move(why),
            .source = std::move(source),
            .compares = Compares::bound,
            .needs = needs,
            .cases = std::move(cases),
            .check = check,
            .turned_red_by = std::move(turned_red_by)};
}

namespace planted {

PlantedDeviation key_gradients_unscaled();
PlantedDeviation both_gradients_unscaled();  ///< those of queries and keys
PlantedDeviation slope_gradients_negated();
PlantedDeviation lse_gradient_ignored();
PlantedDeviation last_key_without_gradient();  ///< as of a tail that is not written back
PlantedDeviation group_overwritten();          ///< keys have their last query head's gradients
PlantedDeviation mask_ignored_in_backward();   ///< all but lengths and documents
PlantedDeviation first_channel_doubled();      ///< the first query's dQ has one channel doubled
PlantedDeviation gradients_times(double factor);
PlantedDeviation deltas_times(double factor);    ///< where d_q and d_k are asked for
PlantedDeviation deltas_of_next_row();           ///< dO rolled by a query, in dS alone
PlantedDeviation large_biases_hide();            ///< below -1e4, in backward alone
PlantedDeviation gradients_of_squares();         ///< of dO |dO|
PlantedDeviation gradients_by_the_call();        ///< odd calls differ
PlantedDeviation gradients_of_first_sequence();  ///< every sequence has those of the first
PlantedDeviation padded_gradients_negated();     ///< where queries are laid out with gaps
PlantedDeviation hidden_gradients_tiny();        ///< 2^-10 where 0 is due

}  // namespace planted

}  // namespace attest::law
