#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ci/certificate.hpp"
#include "ci/check_screen.hpp"
#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/journal.hpp"
#include "ci/profile.hpp"
#include "ci/run.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    if (!file) throw BadInput(path + ": cannot be read");
    return bytes.str();
}

/// The text of a profile that is not one of attest's; empty: it is one. What lets a proven
/// violation pass certifies nothing, whatever it says.
std::string own_profile(const CommandOptions& options) {
    const search::Profile profile = load_profile(options.profile);
    if (std::ranges::find(profile.fails, "violation") == profile.fails.end())
        throw BadInput("certify: profile " + clean(options.profile) +
                           " lets proven violations pass: its \"fails\" lacks \"violation\"",
                       {"attest check judges by it; nothing certifies by it"});
    return options.profile.ends_with(".json") ? bytes_of(options.profile) : "";
}

}  // namespace

int certify_command(const CommandOptions& options) {
    const std::string own = own_profile(options);
    prepare_ci_files(options.files);
    const FinishedRun run = run_and_record(options);
    const Certificate data =
        certificate(run.report, sha256_hex(bytes_of(run.directory + "/result.jsonl")), own);
    write_file_atomically(run.directory + "/certificate.json", certificate_text(data));
    write_file_atomically(run.directory + "/certificate.md", certificate_page(data));
    write_ci_files(run.report, options.files, run.directory, "");
    const ScreenStyle style = style_of(STDOUT_FILENO, options.colour, options.ascii);
    Screen after(style);
    after.line((data.whole() ? "certificate: " : "not a certificate: ") + clean(run.directory) +
               "/certificate.md");
    after.line(data.title());
    write_out(printed(run.report, draw_check(run.report, style, run.directory) + after.text(),
                      run.directory));
    const int exit = run.report.end->verdict.exit;
    return exit == exit_holds && !data.whole() ? exit_inconclusive : exit;
}

}  // namespace attest::ci
