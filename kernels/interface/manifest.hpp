#pragma once
// What a kernel says of itself: its manifest (JSON; README.md, "The manifest"), read strictly.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/dialect.hpp"
#include "reference/problem/feature.hpp"

namespace attest::kernel {

enum class Memory : std::uint8_t { host, cuda };

struct Limits {
    std::int64_t dim_max = 0;  ///< 0: none declared
    std::int64_t len_max = 0;
    bool operator==(const Limits&) const = default;
};

struct Manifest {
    std::string name, version;
    std::vector<Precision> formats;
    Memory memory = Memory::host;
    /// A runtime simulates its threads: each call runs under another schedule, and what the runtime
    /// finds wrong is the call's error.
    bool simulated = false;
    bool features_declared = false;             ///< false: every feature is offered to supports()
    FeatureSet features;                        ///< known names only
    std::vector<std::string> features_unknown;  ///< names of a later version, kept for display
    Limits limits;
    Dialect dialect;
    Numerics numerics;
};

/// What may be asked of a kernel: what it declares, and what the ABI gives every kernel, so that
/// supports() alone need say no to it: an LSE, a scale, strides, dim_v != dim_qk and, where causal
/// masks are aligned to the last key anyway, queries that stand at the end of a cache.
FeatureSet offered_features(const Manifest& manifest) noexcept;

/// Strict: unknown key, duplicate key, wrong type or value is BadInput with `source_name:
/// manifest:LINE:COLUMN`, the text and a caret, and the allowed values. `name`, `version` and
/// `formats` are required.
Manifest parse_manifest(std::string_view json, std::string_view source_name);
std::string to_json(const Manifest& manifest);  ///< with every default written out, sorted keys

}  // namespace attest::kernel
