#pragma once
// What the generated list of laws hands over. The catalogue proper is property.hpp's.

#include <vector>

#include "properties/law/property.hpp"

namespace attest {

/// The laws of every file in catalogue order, each with the file it stands in. Defined in
/// catalogue_list.cpp, which the build writes (properties/CMakeLists.txt).
std::vector<Property> declared_laws();

/// The declarations as data: ids well formed and unique, statements short enough, a check function
/// each. Throws InternalError with the law and what is wrong.
void require_well_declared(std::span<const Property> laws);

}  // namespace attest
