#pragma once
// What the generated list of families hands over. The catalogue proper is property.hpp's.

#include <vector>

#include "properties/law/property.hpp"

namespace attest {

/// Every family's laws, in the order of properties.md. Defined in catalogue_list.cpp, which the
/// build writes from the family files that exist.
std::vector<Property> declared_laws();

/// The declarations as data: ids well formed and unique, statements short enough, a check function
/// each. Throws InternalError with the law and what is wrong.
void require_well_declared(std::span<const Property> laws);

}  // namespace attest
