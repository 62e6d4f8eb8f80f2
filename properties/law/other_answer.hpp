#pragma once
// Two specifications, one output: where the reference of another specification is apart from that
// of the one asked for, the output must not be the other's. A kernel within its bound lies in the
// asked interval; one that computes the other thing lies in the other. What lies in neither is for
// the laws of the reference.

#include <functional>
#include <string>

#include "properties/law/paired_runs.hpp"

namespace attest::law {

struct OtherAnswer {
    bound::Expected expected;
    /// Where the other answer has the element (row, channel) of the call.
    std::function<std::int64_t(const Row&, std::int64_t channel)> flat;
    /// The sentence of a violation.
    std::function<std::string(const Row&)> sentence;
};

/// The other answer in the shape of the call itself.
OtherAnswer same_shape(const Run& call, bound::Expected expected);

/// Violated where a whole row is the other answer: every channel in which the two are apart for
/// certain, and there are two at least, lies within the other's interval, and so outside its own.
Judgement not_the_other(const Run& call, const OtherAnswer& other);

}  // namespace attest::law
