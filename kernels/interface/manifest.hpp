#pragma once
// What a kernel says of itself: its manifest (JSON; README.md, "The manifest"), read strictly.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/interface/takes.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/feature.hpp"
#include "reference/problem/problem.hpp"

namespace attest::kernel {

enum class Memory : std::uint8_t { host, cuda };

/// The formats of one call.
struct Formats {
    Precision q, kv, o;
    constexpr Formats(Precision all) : q(all), kv(all), o(all) {}
    constexpr Formats(Precision of_q, Precision of_kv, Precision of_o)
        : q(of_q), kv(of_kv), o(of_o) {}
    bool operator==(const Formats&) const = default;
};
std::string words(const Formats& formats);  ///< as in a line: "f32 kv f16"

struct Manifest {
    std::string name, version;
    std::vector<Formats> formats;
    Memory memory = Memory::host;
    /// A runtime simulates its threads: each call runs under another schedule, and what the runtime
    /// finds wrong is the call's error.
    bool simulated = false;
    FeatureSet features;  ///< what is not among them is never asked for
    Takes takes;
    /// The gradients that backward returns: d_q d_k d_v d_mask d_sinks d_slopes; none: no backward.
    std::vector<Role> gradients;
    /// A dropout rate is a multiple of one over so many; 0: any rate, to 2^-24 or finer.
    std::int64_t dropout_levels = 0;
    Dialect dialect;
    Numerics numerics;
    /// What it is made of beyond its file: name and SHA-256 in hexadecimal. Recorded, not judged.
    std::map<std::string, std::string> sources;
};

/// The features that are nobody's choice beside such a kernel: those of its takes, and formats that
/// are mixed as its list says.
FeatureSet inherent_features(const Manifest& manifest, const Problem& problem);

/// Why the manifest rules this problem out; none where it does not. supports() is asked after it.
std::optional<std::string> refusal(const Manifest& manifest, const Problem& problem);

/// Strict: unknown key, duplicate key, wrong type or value is BadInput with `source_name:
/// manifest:LINE:COLUMN`, the text and a caret, and the allowed values. `name`, `version` and
/// `formats` are required. A key or a feature that begins with x_ is its author's own.
Manifest parse_manifest(std::string_view json, std::string_view source_name);
std::string to_json(const Manifest& manifest);  ///< with every default written out, sorted keys

}  // namespace attest::kernel
