#pragma once
// Enough of JSON Schema to hold every record to fixtures/schema/result.schema.json in a test:
// types, required, properties, enum, const, pattern, minimum, item counts, anyOf, allOf with if and
// then.

#include <string>

#include "ci/record_writer.hpp"

namespace attest::ci {

/// The schema's own text, parsed.
Record result_schema();

/// Empty where the value fits; else the path and what is wrong there.
std::string schema_fault(const Record& value, const Record& schema, const Record& root,
                         const std::string& path = "");

}  // namespace attest::ci
