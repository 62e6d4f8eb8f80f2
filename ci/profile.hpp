#pragma once
// Profiles: what a run promises to try, as JSON files that are built into the command.

#include <string>
#include <string_view>
#include <vector>

#include "properties/search/profile.hpp"

namespace attest::ci {

/// Strict: every key is known, each at most once, of its type and range; `name`, `version` and
/// `cases_per_law` are required. BadInput names the file, the key and what is allowed.
search::Profile parse_profile(std::string_view json, const std::string& source_name);

/// A built-in profile by name, or a file where the name ends in .json. BadInput where there is
/// none.
search::Profile load_profile(const std::string& name);

struct ProfileSummary {
    search::Profile profile;
    std::string summary;
};
std::vector<ProfileSummary> builtin_profiles();

}  // namespace attest::ci
