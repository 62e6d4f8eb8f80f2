#include <unistd.h>

#include <cstdio>

#include "ci/check_screen.hpp"
#include "ci/commands.hpp"
#include "ci/run.hpp"

namespace attest {

namespace {

// FILE:LINE: violated: LAW: the sentence, one a cause, as compilers write it: editors and CI jump.
void print_annotations(const Records& records) {
    if (!records.run.contains("source")) return;
    for (const Record& cause : records.causes) {
        const Record* lead = records.counterexample(cause.at("lead").get<std::string>());
        if (lead == nullptr) continue;
        std::fprintf(stderr, "%s: violated: %s: %s\n",
                     clean(records.run["source"].get<std::string>()).c_str(),
                     lead->at("law").get<std::string>().c_str(),
                     clean(lead->at("problem").get<std::string>()).c_str());
    }
}

}  // namespace

int check_command(const Options& options) {
    const FinishedRun run = run_and_record(options);
    write_out(draw_check(run.records, style_of(STDOUT_FILENO, options.colour, options.ascii),
                         run.directory));
    print_annotations(run.records);
    return run.verdict.exit;
}

}  // namespace attest
