#pragma once
// "takes" of a manifest: from JSON, and back.

#include <nlohmann/json.hpp>

#include "kernels/interface/manifest_section.hpp"
#include "kernels/interface/takes.hpp"

namespace attest::kernel {

void read_takes(const JsonSource& source, const Json& object, Takes& takes);
/// What limits nothing is left out.
nlohmann::json takes_json(const Takes& takes);

/// A list of the names of features.
FeatureSet read_features(Section& section, std::string_view key);
std::vector<std::string> feature_names(FeatureSet features);

}  // namespace attest::kernel
