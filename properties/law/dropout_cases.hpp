#pragma once
// What the laws of dropout are tried on, and how a kernel is planted wrong in its dropout alone.

#include "properties/law/property.hpp"

namespace attest::law {

/// Reading a mask takes a call for every dim_v keys; the reference has a row's channels for every
/// row of a group.
CaseSpace dropout_cases(std::int64_t cost = 8);
/// Where whoever calls backward does: no caches.
CaseSpace dropout_gradient_cases();

namespace planted {

PlantedDeviation dropped_at_zero();         ///< p = 0 with a seed drops a tenth
PlantedDeviation dropped_by_one_minus_p();  ///< keeps with probability p
PlantedDeviation dropout_factor_missing();
PlantedDeviation one_mask_for_all_heads();
PlantedDeviation one_mask_for_all_seeds();
PlantedDeviation one_mask_for_all_sequences();
PlantedDeviation one_mask_for_all_rows();
PlantedDeviation one_mask_for_sums();      ///< of sequence and head
PlantedDeviation one_mask_for_128_keys();  ///< key j has that of key j mod 128
PlantedDeviation masks_by_the_call();      ///< the seed counts the calls of the process
PlantedDeviation masks_by_the_queries();   ///< queries that are not all zero have another mask
PlantedDeviation backward_mask_of_another_seed();
PlantedDeviation backward_mask_of_last_forward();
PlantedDeviation backward_without_dropout();

}  // namespace planted

}  // namespace attest::law
