#pragma once
// A case as a part of a larger JSON text, such as a stored failure's.

#include "reference/problem/case.hpp"
#include "reference/problem/json.hpp"

namespace attest {

/// Strict, as the reader of a whole text is; mistakes point into the source.
Case case_from_json(const JsonSource& source, const Json& value);

}  // namespace attest
