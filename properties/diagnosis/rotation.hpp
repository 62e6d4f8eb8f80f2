#pragma once
// Queries and keys turned further before the reference turns them: a rotation of other positions or
// angles, written as that of the problem.

#include <functional>
#include <vector>

#include "properties/diagnosis/deviation.hpp"

namespace attest::diagnosis {

/// An angle that may differ from pair to pair, or as by so many positions.
using Angles =
    std::function<double(std::int64_t b, std::int64_t i, std::int64_t pair, double frequency)>;
using Positions = std::function<double(std::int64_t b, std::int64_t i)>;

Tensor turned_by(const Specification& s, Role role, const Angles& by);
Tensor turned(const Specification& s, Role role, const Positions& by);

bool has_rope(const Specification& s);

/// Keys of sequence b before its first query.
double cached(const Specification& s, std::int64_t b);

/// Queries that stand elsewhere in masks, ALiBi and rotation alike, or past their sequence
/// (placed_queries.cpp).
std::vector<Deviation> placed_queries();

}  // namespace attest::diagnosis
