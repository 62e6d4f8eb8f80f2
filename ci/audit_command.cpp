// `attest audit`: every planted bug by every law, told on the screen and kept as records.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "ci/audit.hpp"
#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/number.hpp"
#include "ci/screen.hpp"
#include "ci/suggest.hpp"
#include "kernels/interface/builtin_catalogue.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/errors.hpp"

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

/// What must not be: a bug that no law sees, a law of a bug's row that misses it, an equivalent one
/// that is accused.
std::string fault_of(const BugAudit& bug) {
    if (bug.mutant->equivalent) {
        const auto accuser =
            std::ranges::find_if(bug.laws, [](const LawOnBug& law) { return law.seen > 0; });
        return accuser == bug.laws.end() ? "" : "accused by " + accuser->law;
    }
    if (bug.killers() == 0) return "seen by no law";
    std::string missed;
    for (const std::string& law : bug.missed()) missed += (missed.empty() ? "" : ", ") + law;
    return missed.empty() ? "" : "not seen by " + missed;
}

std::string_view name(Told told) {
    constexpr std::string_view names[] = {"", "right", "silent", "wrong"};
    return names[static_cast<std::size_t>(told)];
}

std::string line_of(const BugAudit& bug) {
    std::string text = fmt::format("{:<9} {:<4} ", bug.mutant->id, bug.mutant->bug_class);
    if (const LawOnBug* first = bug.quickest())
        text += fmt::format("{:>3} laws  {:<28} {:>3} cases {:>7}  ", bug.killers(), first->law,
                            first->cases, time_text(first->seconds));
    else
        text += fmt::format("{:<53}  ", bug.mutant->equivalent ? "equivalent: holds" : "no law");
    for (const std::int64_t rejected : bug.rejected_by_peers) text += rejected > 0 ? '+' : '-';
    if (bug.told != Told::not_asked) text.append("  ").append(name(bug.told));
    const std::string fault = fault_of(bug);
    return fault.empty() ? text : text + "  " + fault;
}

void write_record(std::ofstream& file, const BugAudit& bug) {
    nlohmann::ordered_json record = {{"record", "audit"},
                                     {"mutant", bug.mutant->id},
                                     {"class", bug.mutant->bug_class},
                                     {"kernel", bug.mutant->kernel},
                                     {"seeds", bug.seeds},
                                     {"seconds", bug.seconds},
                                     {"diagnosis", name(bug.told)},
                                     {"says", bug.says},
                                     {"peer_cases", bug.peer_cases}};
    for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
        record["peers"][std::string(peer_rules[rule])] = bug.rejected_by_peers[rule];
    for (const LawOnBug& law : bug.laws)
        record["laws"].push_back(
            {{"law", law.law}, {"seen", law.seen}, {"cases", law.cases}, {"seconds", law.seconds}});
    file << record.dump() << "\n";
}

struct Work {
    AuditOptions options;
    std::vector<const kernel::Mutant*> mutants;
    std::vector<BugAudit> done;
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::string error;

    void loop() {
        for (std::size_t n = next++; n < mutants.size(); n = next++) {
            try {
                done[n] = audit(*mutants[n], options);
            } catch (const std::exception& e) {
                const std::lock_guard lock(mutex);
                error = std::string(mutants[n]->id) + ": " + e.what();
                done[n].mutant = mutants[n];
            }
            const std::lock_guard lock(mutex);
            write_out(line_of(done[n]) + "\n");
        }
    }
};

void write_summary(const Work& work) {
    std::set<std::string> seeing, tried;
    std::int64_t bugs = 0, caught = 0;
    std::array<std::int64_t, peer_rule_count> peers{};
    for (const BugAudit& bug : work.done) {
        for (const LawOnBug& law : bug.laws) {
            tried.insert(law.law);
            if (law.seen == bug.seeds && !bug.mutant->equivalent) seeing.insert(law.law);
        }
        if (bug.mutant->equivalent) continue;
        ++bugs;
        caught += bug.killers() > 0;
        for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
            peers[rule] += bug.rejected_by_peers[rule] > 0;
    }
    std::string text = fmt::format("\n{} of {} planted bugs seen by a law", caught, bugs);
    for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
        text += fmt::format("; {} by {}", peers[rule], peer_rules[rule]);
    for (const char* kernel : {"cpu_flash_plain", "cpu_decode"}) {
        const BugAudit right = audit_peers(kernel, work.options);
        text += fmt::format("\n{}, which is right, rejected in", kernel);
        for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
            text += fmt::format("{} {} of {} cases by {}", rule > 0 ? "," : "",
                                right.rejected_by_peers[rule], right.peer_cases, peer_rules[rule]);
    }
    std::string none;
    for (const std::string& law : tried)
        if (!seeing.contains(law)) none += " " + law;
    if (!none.empty()) text += "\nlaws that see none of these bugs:" + none;
    write_out(text + "\n");
}

}  // namespace

int audit_command(const CommandOptions& options) {
    constexpr std::int64_t cases = 120;
    Work work;
    work.options = {.match = options.match,
                    .seed = options.seed.value_or(1),
                    .cases = options.cases.value_or(cases),
                    .seeds = options.seeds};
    work.mutants = chosen(options.arguments);
    work.done.resize(work.mutants.size());
    write_out(
        "bug       class           quickest law                 after              peers: torch, "
        "FlashAttention, ggml, KernelBench\n");
    std::vector<std::jthread> threads;
    for (int n = 1; n < options.jobs; ++n) threads.emplace_back([&] { work.loop(); });
    work.loop();
    threads.clear();
    if (!work.error.empty()) throw InternalError("audit of " + work.error);
    write_summary(work);
    std::filesystem::create_directories(options.out);
    std::ofstream file(options.out + "/audit.jsonl");
    bool faultless = true;
    for (const BugAudit& bug : work.done) {
        write_record(file, bug);
        // Where the laws are chosen a bug may be beyond all of them.
        faultless = faultless && (fault_of(bug).empty() || !options.match.empty());
    }
    if (!file.flush()) throw BadInput("--out " + options.out + ": cannot be written");
    return faultless ? exit_holds : exit_violated;
}

}  // namespace attest::ci
