#pragma once
// The total order of cases by size. "Smaller" means this and nothing else: the shrinker accepts a
// case only if it is smaller, so it ends, and the smallest failing case is one.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/problem/case.hpp"

namespace attest {

/// Scores, then dimensions, batch, heads, lengths, features, formats, the features' own numbers,
/// the data, and at last the text. Compared in this order.
struct SizeKey {
    std::vector<std::int64_t> numbers;
    std::string text;
    auto operator<=>(const SizeKey&) const = default;
};

SizeKey size_key(const Case& c);

/// The data a case is tried with, simplest first: fills, then small integers, then the law's own
/// distribution. `kinds` are those the law admits, empty for all.
const std::vector<Values>& data_ladder();
std::vector<Values> data_ladder(const std::vector<ValueKind>& kinds, ValueKind own);

/// The part of it a sweep can afford: one of each sort.
std::vector<Values> sweep_ladder(const std::vector<ValueKind>& kinds, ValueKind own);

/// The place in data_ladder(), or past its end: own kinds by seed, and written-out numbers last.
std::int64_t data_rank(const Values& values);

}  // namespace attest
