#pragma once
// Two specifications, one output: where the reference of another specification is apart from that
// of the one asked for, the output must be in the asked one's interval. What a kernel computes
// instead is then named, if it is the other one.

#include <functional>
#include <string>

#include "properties/law/paired_runs.hpp"

namespace attest {

struct OtherAnswer {
    Expected expected;
    /// Where the other answer has the element (row, channel) of the call.
    std::function<std::int64_t(const Row&, std::int64_t channel)> flat;
    /// The sentence of a violation; `matches`: the output agrees with the other answer there.
    std::function<std::string(const Row&, bool matches)> sentence;
};

/// The other answer in the shape of the call itself.
OtherAnswer same_shape(const Call& call, Expected expected);

/// Inconclusive where the two answers are nowhere apart for certain.
Verdict not_the_other(const Call& call, const OtherAnswer& other);

}  // namespace attest
