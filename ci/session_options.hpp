#pragma once
// How a command's kernel is run: the one place where options become those of a session.

#include <filesystem>

#include "ci/options.hpp"
#include "kernels/worker/session.hpp"

namespace attest::ci {

inline worker::SessionOptions session_options(const CommandOptions& options) {
    worker::SessionOptions session;
    if (options.timeout) session.timeout = session.silence = *options.timeout;
    session.confinement.confined = !options.unconfined;
    session.confinement.variables = options.variables;
    std::error_code none;  // then there is nothing to protect
    const auto results = std::filesystem::canonical(options.out, none);
    if (!none) session.confinement.results = results.string();
    return session;
}

}  // namespace attest::ci
