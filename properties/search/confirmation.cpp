#include "properties/search/confirmation.hpp"

#include <array>

namespace attest::search {

std::string_view name(Confirmation how) noexcept {
    constexpr std::array<std::string_view, 7> names = {"none",  "alone",     "sequence", "schedule",
                                                       "alike", "elsewhere", "flaky"};
    return names[static_cast<std::size_t>(how)];
}

}  // namespace attest::search
