#pragma once
// The fixtures, built into the command.

#include <string>
#include <vector>

#include "fixtures/fixture.hpp"

namespace attest {

struct NamedFixture {
    std::string name;  ///< without folder and extension: "row_fully_masked"
    Fixture fixture;
};

const std::vector<NamedFixture>& builtin_fixtures();

}  // namespace attest
