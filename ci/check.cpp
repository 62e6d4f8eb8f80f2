#include <unistd.h>

#include <cstdio>

#include "ci/check_screen.hpp"
#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/run.hpp"

namespace attest::ci {

namespace {

// FILE:LINE: violated: LAW: the sentence, one a cause, as compilers write it: editors and CI jump.
void print_annotations(const RunReport& report) {
    if (report.run.source.empty()) return;
    for (const diagnosis::CauseReport& cause : report.causes) {
        const diagnosis::CounterexampleReport* lead = report.counterexample(cause.lead);
        if (lead == nullptr) continue;
        std::fprintf(stderr, "%s: violated: %s: %s\n", clean(report.run.source).c_str(),
                     lead->example.law.c_str(), clean(lead->violation().problem).c_str());
    }
}

}  // namespace

int check_command(const CommandOptions& options) {
    prepare_ci_files(options.files);
    const FinishedRun run = run_and_record(options);
    const std::string page = run.directory + "/report.html";
    const ScreenStyle style = style_of(STDOUT_FILENO, options.colour, options.ascii);
    const std::string screen = draw_check(run.report, style, run.directory);
    write_out(printed(run.report, screen, run.directory));
    write_ci_files(run.report, options.files, run.directory, page);
    Screen after(style);
    if (options.files.page) after.line("page: " + clean(page));
    write_out(after.text());
    print_annotations(run.report);
    return run.report.end->verdict.exit;
}

}  // namespace attest::ci
