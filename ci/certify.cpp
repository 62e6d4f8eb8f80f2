#include <unistd.h>

#include <fstream>
#include <sstream>

#include "ci/certificate.hpp"
#include "ci/check_screen.hpp"
#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/journal.hpp"
#include "ci/run.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

std::string digest_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    require(static_cast<bool>(file), "the records just written can be read");
    return sha256_hex(bytes.str());
}

}  // namespace

int certify_command(const CommandOptions& options) {
    prepare_ci_files(options.files);
    const FinishedRun run = run_and_record(options);
    const Certificate data = certificate(run.report, digest_of(run.directory + "/result.jsonl"));
    write_file_atomically(run.directory + "/certificate.json", certificate_text(data));
    write_file_atomically(run.directory + "/certificate.md", certificate_page(data));
    write_ci_files(run.report, options.files, run.directory, "");
    const std::string screen =
        draw_check(run.report, style_of(STDOUT_FILENO, options.colour, options.ascii),
                   run.directory) +
        "certificate: " + clean(run.directory) + "/certificate.md\n";
    write_out(printed(run.report, screen, run.directory));
    return run.report.end->verdict.exit;
}

}  // namespace attest::ci
