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

/// The two channels of pair c, of a rotation of so many.
std::pair<std::int64_t, std::int64_t> pair_of(const Rope& rope, std::int64_t dims, std::int64_t c);

/// Each pair of `turned` that the problem rotates, this many times as long.
using Stretch = std::function<double(std::int64_t b, std::int64_t i, double frequency)>;
Tensor stretched(const Specification& s, Tensor turned, const Stretch& by);

bool has_rope(const Specification& s);

/// Keys before the first query of row i's sequence or document.
double cached(const Specification& s, std::int64_t b, std::int64_t i);

/// Where query i of sequence b is turned to.
double position_of_query(const Specification& s, std::int64_t b, std::int64_t i);

/// Where row i of sequence b of the queries or keys is turned to.
double position_of(const Specification& s, Role role, std::int64_t b, std::int64_t i);

/// Queries, and keys where the problem turns them, each pair by an angle of its position.
using PlacedAngle = std::function<double(std::int64_t pair, double position, double frequency)>;
void turn_by_positions(Specification& s, const PlacedAngle& by);

/// The channels with those at D/2 + c where dims/2 + c is looked for, so that pairs (c, D/2 + c)
/// are turned; none where these are the pairs that are asked for.
std::vector<std::int64_t> channels_half_of_all_apart(const Problem& problem);
/// Those of queries and keys in that order.
void pairs_half_of_all_apart(Specification& s);

/// Queries that stand elsewhere in masks, ALiBi and rotation alike, or past their sequence
/// (placed_queries.cpp).
std::vector<Deviation> placed_queries();

}  // namespace attest::diagnosis
