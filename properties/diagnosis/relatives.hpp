#pragma once
// Relatives of a smallest case: the same features, but lengths, dimensions, heads, windows and
// scales varied, so that deviations which agree on the smallest case come apart.

#include <vector>

#include "reference/problem/case.hpp"

namespace attest::diagnosis {

/// Some of them may be problems that cannot be, or that the kernel refuses.
std::vector<Case> relatives(const Case& smallest);

/// Nothing but the lengths varied, so that a limit or a period is told from its neighbours: for
/// powers of two n there are n, n + 1, 3n and 3n + 1 keys, what lies past n and past no 2n, n and
/// n + 1 queries, and n + 1 of both.
std::vector<Case> length_neighbours(const Case& smallest);

/// It and two of the relatives, each with one feature less or plainer. No smallest case fails
/// without one of its features, so that a claim that says nothing of them is put to the test.
std::vector<Case> feature_neighbours(const Case& smallest);

/// One of the relatives with one feature more each, or in another format: where the kernel is right
/// on these, it must not be said to be wrong; where it is wrong, that may be another defect.
std::vector<Case> richer_neighbours(const Case& smallest);

/// Its packed documents, or the sequences that have lengths of their own, in another order and
/// number, each longer, or none of them empty; nothing where it has neither.
std::vector<Case> list_neighbours(const Case& smallest);

/// It with other dimensions: powers of two, multiples of them, and numbers between; and in pages of
/// other sizes, with the last one full or not.
std::vector<Case> dimension_neighbours(const Case& smallest);

}  // namespace attest::diagnosis
