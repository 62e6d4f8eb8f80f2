#pragma once
// The loops of bound (a) over the entries of a row, vectorised by Highway. What they compute is
// said and proven in forward_bound.cpp.

#include <cstddef>

#include "reference/bound/forward_bound.hpp"

namespace attest::bound {

/// errors[j] = error.dot a_j + error.bias B_j + error.angle t_j + error.absolute.
RowMaxima score_errors(const RowFacts& facts, const ScoreError& error, double* errors);

/// Entries, an array of each number. exponent holds the errors of the scores, and afterwards D_j.
struct EntryTask : EntryRule {
    const double *score = nullptr, *weight = nullptr;
    const double* count = nullptr;  ///< null: one each
    double* exponent = nullptr;
    double *centred = nullptr, *plain = nullptr;
};

/// weigh_entry() for entries [first, last).
void coefficients(const EntryTask& task, std::size_t first, std::size_t last, EntryTotals& totals);

/// Of n columns: e = (spread + plain + of_size |O|) inverse, at most what bounds held (or all of
/// that, where it is not a number); e += 2.5 ua (|O| + e) + absolute + of_total total;
/// e += uo (|O| + e) + omo; infinite where total is total_max or more.
struct OutputTask {
    const double *exact = nullptr, *spread = nullptr, *plain = nullptr, *total = nullptr;
    double of_size = 0, inverse = 0, ua = 0, absolute = 0, of_total = 0, uo = 0, omo = 0;
    double total_max = 0;
};
void output_bounds(const OutputTask& task, std::size_t n, double* bounds);

}  // namespace attest::bound
