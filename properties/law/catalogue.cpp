#include "properties/law/catalogue.hpp"

#include <algorithm>
#include <array>

#include "reference/problem/digest.hpp"

namespace attest::law {

std::string_view name(Tells tells) noexcept {
    constexpr std::array<std::string_view, 6> names = {"nothing", "truth",  "sight",
                                                       "leak",    "memory", "death"};
    return names[static_cast<std::size_t>(tells)];
}

std::span<const Property> catalogue() {
    static const std::vector<Property> laws = [] {
        std::vector<Property> all = declared_laws();
        require_well_declared(all);
        return all;
    }();
    return laws;
}

const Property* find_property(std::string_view id) {
    const auto laws = catalogue();
    const auto found =
        std::find_if(laws.begin(), laws.end(), [id](const Property& law) { return law.id == id; });
    return found == laws.end() ? nullptr : &*found;
}

std::string catalogue_digest() {
    std::string text;
    for (const Property& law : catalogue()) text += declaration_text(law);
    return sha256_hex(text);
}

}  // namespace attest::law
