#pragma once
// What makes a Problem contradict itself, as data: which field is to blame, why, and what to do.
// The readers of lines and of JSON put the place to it; require_valid() puts the printed line.

#include <optional>
#include <string>

#include "reference/problem/case.hpp"

namespace attest {

struct Contradiction {
    std::string field;   ///< the JSON key: "heads_kv"
    std::string what;    ///< in the words of the line: "hkv3 does not divide hq8"
    std::string remedy;  ///< "heads_q must be a multiple of heads_kv: 1, 2, 4 or 8"
};

/// Fields without a meaning in this problem (rope.base without RoPE) are not looked at.
std::optional<Contradiction> find_contradiction(const Problem& problem);

/// The values of a case against a problem that is valid: only q, k, v, as many numbers as the
/// logical tensor has elements, each a member of its format.
std::optional<Contradiction> find_contradiction(const Problem& problem, const Values& values);

}  // namespace attest
