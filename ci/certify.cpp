#include <unistd.h>

#include <algorithm>

#include "ci/certificate_files.hpp"
#include "ci/check_screen.hpp"
#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/journal.hpp"
#include "ci/profile.hpp"
#include "ci/run.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

/// What lets a proven violation pass certifies nothing, whatever it says.
void require_strict_profile(const CommandOptions& options) {
    const search::Profile profile = load_profile(options.profile);
    if (std::ranges::find(profile.fails, "violation") == profile.fails.end())
        throw BadInput("certify: profile " + clean(options.profile) +
                           " lets proven violations pass: its \"fails\" lacks \"violation\"",
                       {"attest check judges by it; nothing certifies by it"});
}

}  // namespace

int certify_command(const CommandOptions& options) {
    require_strict_profile(options);
    const SigningKey key = options.sign.empty() ? SigningKey() : read_signing_key(options.sign);
    prepare_ci_files(options.files);
    const FinishedRun run = run_and_record(options);
    write_certificate(run.report, run.directory, key);
    const ScreenStyle style = style_of(STDOUT_FILENO, options.colour, options.ascii);
    Screen after(style);
    tell_certificate(after, run.report, run.directory);
    write_out(printed(run.report, draw_check(run.report, style, run.directory) + after.text(),
                      run.directory));
    write_ci_files(run.report, options.files, run.directory, "");
    return exit_of(run.report);
}

}  // namespace attest::ci
