#pragma once

// The maker of the rows of the backward pass.

#include <string_view>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {

/// diagnosis: the id of the deviation it is named by; empty: no single one is demanded.
inline kernel::Mutant backward_bug(std::string_view id, std::string_view bug_class,
                                   std::string_view change, std::string_view trigger,
                                   std::string_view diagnosis, kernel::LawIds must,
                                   std::string_view source = {}) {
    return {.id = id,
            .bug_class = bug_class,
            .operation = "backward",
            .change = change,
            .trigger = trigger,
            .source = source,
            .must = must,
            .diagnosis = diagnosis};
}

}  // namespace attest::museum
