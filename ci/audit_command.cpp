// `attest audit`: every planted bug by every law, told on the screen and kept as records.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "ci/audit.hpp"
#include "ci/commands.hpp"
#include "ci/embedded.hpp"
#include "ci/exit_code.hpp"
#include "ci/interrupt.hpp"
#include "ci/number.hpp"
#include "ci/run.hpp"
#include "ci/screen.hpp"
#include "ci/suggest.hpp"
#include "kernels/interface/builtin_catalogue.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

std::vector<const kernel::Mutant*> chosen(const std::vector<std::string>& ids) {
    std::vector<const kernel::Mutant*> all;
    std::vector<std::string> names;
    for (const kernel::Mutant& mutant : kernel::museum()) names.emplace_back(mutant.id);
    for (const std::string& id : ids)
        if (std::ranges::find(names, id) == names.end())
            throw BadInput("audit: no planted bug " + id + suggestion(id, names),
                           {"attest list mutants shows them"});
    for (const kernel::Mutant& mutant : kernel::museum())
        if (ids.empty() || std::ranges::find(ids, mutant.id) != ids.end()) all.push_back(&mutant);
    return all;
}

/// No wider than the screen.
void write_line(const std::string& text, int hanging) {
    Screen screen(style_of(STDOUT_FILENO, "never", false));
    screen.line(text, hanging);
    write_out(screen.text());
}

std::string line_of(const BugAudit& bug) {
    std::string text = fmt::format("{:<9} {:<4} ", bug.bug, bug.bug_class);
    if (const LawOnBug* first = bug.quickest())
        text += fmt::format("{:>3} {:<4}  {:<28} {:>3} {:<5} {:>7}  ", bug.killers(),
                            bug.killers() == 1 ? "law" : "laws", first->law, first->cases,
                            first->cases == 1 ? "case" : "cases", time_text(first->seconds));
    else
        text += fmt::format("{:<53}  ", bug.equivalent ? "equivalent: holds" : "no law");
    for (const std::int64_t rejected : bug.peers.rejected) text += rejected > 0 ? '+' : '-';
    if (bug.told != Told::not_asked) text.append("  ").append(name(bug.told));
    const std::string fault = bug.fault();
    return fault.empty() ? text : text + "  " + fault;
}

struct Work {
    AuditOptions options;
    std::vector<const kernel::Mutant*> mutants;
    std::vector<std::optional<BugAudit>> done;
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::string error;

    void loop() {
        for (std::size_t n = next++; n < mutants.size() && *options.interrupted == 0; n = next++) {
            try {
                std::optional<BugAudit> bug = audit(*mutants[n], options);
                if (!bug) return;
                const std::lock_guard lock(mutex);
                write_line(line_of(*bug), 15);
                done[n] = std::move(bug);
            } catch (const std::exception& e) {
                const std::lock_guard lock(mutex);
                error = std::string(mutants[n]->id) + ": " + e.what();
            }
        }
    }
};

void write_summary(const AuditReport& report) {
    std::string text = fmt::format("{} of {} seen by a law", report.caught(),
                                   counted(report.planted(), "planted bug"));
    for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
        text += fmt::format("; {} by {}", report.caught_by_peers(rule), peer_rules[rule]);
    write_out("\n");
    write_line(text, 2);
    for (const RightAudit& right : report.right) {
        text = fmt::format("{}, which is right, rejected in", right.kernel);
        for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
            text += fmt::format("{} {} of {} cases by {}", rule > 0 ? "," : "",
                                right.peers.rejected[rule], right.peers.cases, peer_rules[rule]);
        write_line(text, 2);
    }
    text.clear();
    for (const std::string& law : report.idle_laws()) text += " " + law;
    if (!text.empty()) write_line("laws that see none of these bugs:" + text, 2);
}

}  // namespace

int audit_command(const CommandOptions& options) {
    Work work;
    require_some_law(options.match);
    work.options.match = options.match;
    work.options.seed = options.seed.value_or(1);
    work.options.seeds = options.seeds;
    if (options.cases)
        work.options.cases = work.options.cases_elsewhere = work.options.cases_simulated =
            *options.cases;
    work.mutants = chosen(options.arguments);
    work.done.resize(work.mutants.size());
    make_out_folder(options.out);
    write_line(
        "bug       class           quickest law                 after              peers: torch, "
        "FlashAttention, ggml, KernelBench, cuDNN, oneDNN",
        15);
    const InterruptGuard guard(options.jobs);
    work.options.interrupted = &guard.count();
    std::vector<std::jthread> threads;
    for (int n = 1; n < options.jobs; ++n) threads.emplace_back([&] { work.loop(); });
    work.loop();
    threads.clear();
    AuditReport report{.attest = std::string(attest_version()),
                       .catalogue = law::catalogue_digest(),
                       .seed = work.options.seed,
                       .cases = work.options.cases,
                       .cases_elsewhere = work.options.cases_elsewhere,
                       .cases_simulated = work.options.cases_simulated,
                       .seeds = work.options.seeds,
                       .bugs = {},
                       .right = {}};
    for (std::optional<BugAudit>& bug : work.done)
        if (bug) report.bugs.push_back(std::move(*bug));
    const bool all = report.bugs.size() == work.mutants.size();
    report.whole = all && options.arguments.empty() && options.match.empty();
    if (all)
        for (const char* kernel : {"cpu_flash_plain", "cpu_decode"})
            report.right.push_back(audit_right(kernel, work.options));
    // Where the laws are chosen a bug may be beyond all of them; not so if its row names one.
    const bool chosen = !options.match.empty(), faultless = report.faultless(chosen);
    const std::string path = options.out + "/audit.jsonl";
    write_file_atomically(path, audit_records(report));
    if (!work.error.empty()) throw InternalError("audit of " + work.error);
    if (!all) {
        write_out(fmt::format("stopped: {} of {} planted bugs, in {}\n", report.bugs.size(),
                              work.mutants.size(), path));
        return faultless ? exit_inconclusive : exit_violated;
    }
    write_summary(report);
    if (const auto beyond = std::ranges::count_if(report.bugs, &BugAudit::beyond);
        chosen && beyond > 0)
        write_line(counted(beyond, "planted bug") + " beyond the chosen laws (--match): " +
                       (beyond == 1 ? "its row names" : "their rows name") + " none of them",
                   2);
    write_line(fmt::format("records: {}; attest report {} draws a page of them", path, path), 2);
    const int code = faultless ? exit_holds : exit_violated;
    write_out((faultless ? "no fault   exit "
                         : "a planted bug escaped a law, or a right kernel "
                           "was accused   exit ") +
              std::to_string(code) + "\n");
    return code;
}

}  // namespace attest::ci
