#pragma once
// The total order of cases by size. "Smaller" means this and nothing else: the shrinker accepts a
// case only if it is smaller, so it ends, and the smallest failing case is one.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/problem/case.hpp"

namespace attest::search {

/// Scores, then dimensions, batch, heads, lengths, features, formats, the features' own numbers,
/// the data, and at last the text. Compared in this order.
struct SizeKey {
    std::vector<std::int64_t> numbers;
    std::string text;
    auto operator<=>(const SizeKey&) const = default;
};

SizeKey size_key(const Case& c);

/// How far from the plainest dropout, a rate of 1/2 by seed 0; the first seeds are tried in turn.
std::int64_t dropout_weight(const Dropout& dropout);
constexpr std::uint64_t plain_dropout_seeds = 4;

/// The data a case is tried with, simplest first: fills, two of them with seeds, then small
/// integers and normals, then the other distributions, four seeds each.
const std::vector<Values>& data_ladder();

/// How many values can be tried at one shape: all of them where the shape stays; with a move, one
/// seed of each distribution that the failure was not found in; in a sweep, one of each of them.
enum class Share : std::uint8_t { whole, moving, sweeping };

/// The rungs for this case with a kind the law admits (`kinds` empty: all, and the fills too; those
/// with a seed where the seed says more than q, k and v, such as which keys a mask hides).
std::vector<Values> data_ladder(const std::vector<ValueKind>& kinds, const Case& at, Share share);

/// The place in data_ladder(); past its end written-out numbers by size, then other seeds.
std::int64_t data_rank(const Values& values);

}  // namespace attest::search
