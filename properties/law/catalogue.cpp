#include "properties/law/catalogue.hpp"

#include <algorithm>
#include <array>

namespace attest {

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
    // Every field a reader relies on; the check itself is code and is covered by the version.
    std::string text;
    for (const Property& law : catalogue()) {
        for (const std::string& part : {law.id, law.statement, law.statement_short, law.why,
                                        law.source, std::string(name(law.compares)), law.file}) {
            text += part;
            text += '\n';
        }
        const CaseSpace& space = law.cases;
        for (const std::int64_t number :
             {std::int64_t{space.allow.bits()}, std::int64_t{space.require.bits()},
              space.scores_max, space.len_max, space.dim_max, space.batch_max,
              std::int64_t{space.len_q_one}, std::int64_t{space.square},
              std::int64_t{law.needs.lse}, std::int64_t{law.needs.backward},
              std::int64_t{law.needs.simulated}})
            text += std::to_string(number) + ' ';
        text += '\n';
    }
    return sha256_hex(text);
}

}  // namespace attest
