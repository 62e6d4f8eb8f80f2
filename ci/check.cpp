#include <unistd.h>

#include <cstdio>

#include "ci/check_screen.hpp"
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
    const FinishedRun run = run_and_record(options);
    write_out(draw_check(run.report, style_of(STDOUT_FILENO, options.colour, options.ascii),
                         run.directory));
    print_annotations(run.report);
    return run.report.end->verdict.exit;
}

}  // namespace attest::ci
