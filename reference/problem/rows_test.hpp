#pragma once
// Looking at made inputs, for the tests of this folder.

#include <vector>

#include "reference/problem/case.hpp"

namespace attest {

inline constexpr Precision all_formats[] = {Precision::f64, Precision::f32, Precision::f16,
                                            Precision::bf16};

inline Case with_kind(Case c, int kind) {
    c.values.kind = static_cast<ValueKind>(kind);
    return c;
}

/// Row [b, h, t] of a role in logical coordinates.
inline std::vector<double> row(const Case&, const TensorSet& set, Role role, std::int64_t b,
                               std::int64_t h, std::int64_t t) {
    std::vector<double> out;
    for (std::int64_t i = 0; i < set[role].shape()[3]; ++i) out.push_back(set[role].at(b, h, t, i));
    return out;
}

}  // namespace attest
