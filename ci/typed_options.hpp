#pragma once
// Options as text, before they become values: CLI11 finds options and values, the sentences about
// what is wrong with them are ours.

#include <string>

#include "ci/options.hpp"

namespace attest::ci {

struct TypedOptions {
    std::string profile, seed, seeds, time, cases, shapes, jobs, shard, timeout, colour, record,
        out, accuracy, rerun;
};

/// What is tried where no --profile says so.
std::string default_profile(const std::string& command);

void convert(CommandOptions& options, const TypedOptions& typed);

}  // namespace attest::ci
