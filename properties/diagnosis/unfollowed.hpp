#pragma once
// Which inputs the answers of a kernel follow, whose defect has no name: a part of an input is made
// another (the mask of one head, one query, one sink), and whose answer changes is looked at.

#include <string>

#include "properties/search/kernel.hpp"
#include "reference/problem/case.hpp"

namespace attest::diagnosis {

/// "query 0 of head 1 follows the mask of head 0, and not the mask of head 1": of the first query
/// whose output or log-sum-exp stays within the bounds where the truth changes by many times as
/// much, or changes by more where the truth stays. In the smallest case with numbers of another
/// draw, without dropout. Empty where every answer follows what it should, where the kernel gives
/// none, and where the case is too large.
std::string unfollowed(search::Kernel& kernel, const Case& smallest);

}  // namespace attest::diagnosis
