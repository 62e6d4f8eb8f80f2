#pragma once
// What is read wrongly by a kernel whose defect has no name: read off the kernel with unit vectors,
// as V in forward, and as dO in backward, whose dV is then a column of the weights.

#include <string>

#include "properties/search/kernel.hpp"
#include "reference/problem/case.hpp"

namespace attest::diagnosis {

enum class Pass : std::uint8_t { forward, backward };

/// "query 1 reads key 0, which lies outside the window; 5 of 12 queries read other keys than they
/// see": of the first query that reads a value which it may not, or not that of a key which it
/// sees; where its log-sum-exp is right, that is said of the values alone. Without dropout, with Q
/// = 0, so that no weight is too small to show, and then with the case's own. Empty where every
/// query reads what it sees, where the kernel gives no answer (in backward: no dV), and where the
/// case is too large.
std::string misread(search::Kernel& kernel, const Case& smallest, Pass pass);

}  // namespace attest::diagnosis
