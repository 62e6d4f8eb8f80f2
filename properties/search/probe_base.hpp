#pragma once
// The problems that every question to supports() varies.

#include <cstdint>
#include <vector>

#include "properties/search/capability.hpp"

namespace attest::search {

/// Head dimensions; v 0: the same.
struct Dims {
    std::int64_t qk, v;
};

/// What every question varies: the smallest problem there is a reason to hope for.
struct Base {
    FeatureSet features;
    std::int64_t tokens, len_q, heads_kv, heads_q, page_size;
};

/// The plainest first. Some kernels take nothing that is not causal, cached, one query, paged or
/// grouped.
std::vector<Base> bases(FeatureSet offered);

Problem problem_of(const Base& base, const kernel::Formats& formats, const Dims& dims,
                   const Capability& capability);

}  // namespace attest::search
