#pragma once
// The other half of masking: every key a query can see does matter. One entry of V, or of K, is
// changed; where the references of the two runs are apart for certain, so must the outputs be.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// Spikes in V, one key a channel, under flat scores: every visible key has a weight worth seeing.
Judgement values_matter(const Trial& trial);

/// One channel of one key of each head and sequence changed in K: the last channels, and others.
Judgement key_channels_matter(const Trial& trial);

}  // namespace attest::law
