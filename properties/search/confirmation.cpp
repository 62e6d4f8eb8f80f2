#include "properties/search/confirmation.hpp"

#include <array>

namespace attest::search {

std::string_view name(Confirmation how) noexcept {
    constexpr std::array<std::string_view, 6> names = {"none",     "alone", "sequence",
                                                       "schedule", "alike", "flaky"};
    return names[static_cast<std::size_t>(how)];
}

}  // namespace attest::search
