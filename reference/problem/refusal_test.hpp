#pragma once
// What a refused input says, as one text: the line, then its details.

#include <string>

#include "reference/problem/errors.hpp"

namespace attest {

/// Empty where nothing was refused.
template <typename Attempt>
std::string refusal(Attempt attempt) {
    try {
        attempt();
    } catch (const BadInput& error) {
        std::string text = error.what();
        for (const std::string& detail : error.details()) text += "\n" + detail;
        return text;
    }
    return "";
}

}  // namespace attest
