#pragma once
// A campaign of few shapes, for kernels that compile each shape they meet: a bounded number of
// them, chosen before the first case so that their traits come in pairs, and many cases each. Laws
// that ask about further shapes than their case's have those chosen too, as far as there is room.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "properties/search/campaign.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/store.hpp"

namespace attest::search {

/// What a compiler may specialise on: the problem's line without what only values tell, the valid
/// lengths, where documents end, which keys a mask tensor hides.
std::string shape_of(const Problem& problem);

/// What a profile asks of a campaign of so many shapes, if they are bounded: few reach what they
/// reach, and leave a law what it finds among them.
inline Profile profile_for(Profile profile, const std::optional<std::int64_t>& shapes) {
    if (!shapes) return profile;
    profile.reach = {};
    profile.refuse_max = 1;
    return profile;
}

/// For people: how many shapes saw a call.
inline std::string told_of_shapes(std::size_t visited, std::int64_t most) {
    return "shapes: " + std::to_string(visited) + " of at most " + std::to_string(most) +
           " (--shapes); sizes are what these have";
}

class FewShapes {
public:
    /// At most `options.shapes` shapes for these laws. `stored` are cases that are
    /// tried whatever is drawn. The kernel is asked supports() alone.
    FewShapes(std::span<const law::Property> laws, Kernel& kernel, const Capability& capability,
              const CampaignOptions& options, const std::vector<StoredFailure>& stored);

    bool has(const Problem& problem) const { return chosen_.contains(shape_of(problem)); }

    /// As search::draw(), of the shapes chosen.
    std::optional<Case> draw(const DrawSpace& space, std::uint64_t seed, std::int64_t number,
                             std::int64_t attempt) const;

    void visit(const Problem& problem) const;  ///< a call was made
    void tell(CampaignResult& result) const;   ///< which shapes saw a call
    const std::set<std::string>& chosen() const noexcept { return chosen_; }

private:
    /// A case of a law, and the shapes the law asks about beside it.
    struct Planned {
        Case tried;
        std::set<std::string> shapes;
    };
    struct Choice;

    std::int64_t most_;
    std::set<std::string> chosen_;
    /// By law: cases all of whose shapes are chosen.
    std::map<std::string, std::vector<Case>, std::less<>> cases_;
    mutable std::mutex mutex_;
    mutable std::set<std::string> visited_;
};

/// None where the options bound no number of shapes.
inline std::shared_ptr<const FewShapes> shapes_for(const std::vector<law::Property>& laws,
                                                   Kernel& kernel, const Capability& capability,
                                                   const CampaignOptions& options,
                                                   const std::vector<StoredFailure>& stored) {
    if (!options.shapes) return nullptr;
    return std::make_shared<const FewShapes>(laws, kernel, capability, options, stored);
}

}  // namespace attest::search
