#pragma once
// Enough of JSON Schema to hold every record to fixtures/schema in a test: types, required,
// properties and whether there may be others, enum, const, pattern, minimum, item counts, anyOf,
// allOf with if and then.

#include <string>

#include "ci/record_writer.hpp"

namespace attest::ci {

/// fixtures/schema/NAME.schema.json, parsed.
Record schema_named(const std::string& name);

/// Empty where the value fits; else the path and what is wrong there.
std::string schema_fault(const Record& value, const Record& schema, const Record& root,
                         const std::string& path = "");

}  // namespace attest::ci
