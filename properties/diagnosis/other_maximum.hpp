#pragma once
// Weights of a softmax taken against another number than the row's largest score.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "properties/diagnosis/deviation.hpp"

namespace attest::diagnosis {

/// For each row, flat over [batch, heads_q, len_q], the number that is subtracted from its scores.
using StartOf = std::function<std::vector<double>(const Specification&, std::size_t rows)>;

/// What becomes of rows whose scores all lie far below that number; none where there are none.
/// `underflow` is a quotient of two sums that are 0: NaN, or 0 where it is guarded.
std::optional<bound::Expected> maximum_from(const StartOf& start_of, double underflow,
                                            const Specification& s, const bound::Expected& truth);

/// For each row, and each of its keys, a number above the largest score that is seen, which is
/// subtracted instead of that; -inf where none is.
using KeyMaxima = std::vector<std::vector<double>>;
using KeyMaximaOf = std::function<KeyMaxima(const Specification&)>;

/// What becomes of a kernel that feeds its weights to the second product in f16: exp(S - maximum)
/// of scores a few below it has lost bits there, or all of them. None of other kernels, or where a
/// sink comes in.
std::optional<bound::Expected> weights_lost_in_f16(const KeyMaximaOf& maxima_of,
                                                   const Specification& s,
                                                   const bound::Expected& truth);

/// A deviation of such rows, with that quotient.
using WhereZero = std::function<std::optional<bound::Expected>(
    double quotient, const Specification&, const bound::Expected& truth)>;
Deviation underflowing(std::string id, std::string says, bool guarded, WhereZero expected);

/// exp(S - such a number), of sums of values that are open where they may overflow, or infinite.
std::vector<Deviation> subtracting(const std::string& id, const std::string& says, bool guarded,
                                   const StartOf& other);

/// One for a block of rows, or of products that a scale below 0 turns round
/// (shared_maximum_deviations.cpp).
std::vector<Deviation> maximum_of_other_rows(bool guarded);
std::vector<Deviation> maximum_of_products(bool guarded);

/// The largest score of hidden keys too (hidden_maximum_deviations.cpp).
std::vector<Deviation> maximum_of_hidden(bool guarded);

/// No number at all: exp(S).
std::vector<Deviation> maximum_not_subtracted(bool guarded);

/// The largest of whole steps of keys: whoever takes several at once and forgets the rest.
std::vector<Deviation> maximum_without_rest(std::int64_t step, bool guarded);

/// The largest of all lanes but the last.
std::vector<Deviation> maximum_without_last_lane(std::int64_t lanes, bool guarded);

/// None, where parts of the keys are merged.
std::vector<Deviation> merged_without_maximum(bool guarded);

}  // namespace attest::diagnosis
