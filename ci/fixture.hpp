#pragma once
// The fixtures, built into the command.

#include <string>
#include <vector>

#include "fixtures/fixture.hpp"

namespace attest::ci {

struct NamedFixture {
    std::string name;  ///< without folder and extension: "row_fully_masked"
    fixtures::Fixture fixture;
};

const std::vector<NamedFixture>& builtin_fixtures();

}  // namespace attest::ci
