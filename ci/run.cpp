#include "ci/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ci/cause.hpp"
#include "ci/counterexample_record.hpp"
#include "ci/coverage.hpp"
#include "ci/fixture.hpp"
#include "ci/gpu_oracle.hpp"
#include "ci/law_record.hpp"
#include "ci/run_observer.hpp"
#include "ci/sanitizer.hpp"
#include "properties/search/session_subject.hpp"

namespace attest {

namespace {

CampaignOptions campaign_options(const RunPlan& plan, const InterruptGuard& interrupt) {
    const Options& o = plan.options;
    CampaignOptions c;
    c.kernel = plan.kernel;
    c.profile = plan.profile;
    c.match = plan.match;
    c.seed = plan.seed;
    c.seconds = o.seconds;
    c.cases = o.cases;
    c.jobs = o.jobs;
    c.shard_index = o.shard_index;
    c.shard_count = o.shard_count;
    c.store = o.out + "/cases";
    c.session.timeout = o.timeout;
    c.session.poison_seed = plan.seed;
    c.interrupted = &interrupt.count();
    for (const auto& [name, fixture] : builtin_fixtures())
        for (const std::string& law : fixture.laws) c.fixtures.push_back({law, fixture.subject});
    return c;
}

// The records a run begins with: its own, and what an earlier run left.
std::vector<Record> first_records(const Records& records) {
    std::vector<Record> list{records.run};
    list.insert(list.end(), records.cases.begin(), records.cases.end());
    for (const Record& law : records.laws)
        if (law.at("verdict") != "violated") list.push_back(law);
    return list;
}

// What compute-sanitizer says of each cause's smallest case, where the kernel runs on a GPU.
void ask_sanitizer(std::vector<Record>& counterexamples, const std::vector<Record>& causes,
                   const RunPlan& plan, const InterruptGuard& interrupt) {
    const std::string attest = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string folder = plan.options.out + "/sanitizer/";
    for (Record& c : counterexamples) {
        const std::string id = c.at("id");
        const bool leads = std::ranges::any_of(
            causes, [&](const Record& cause) { return cause.at("lead") == id; });
        if (!leads || c.contains("sanitizer")) continue;  // of the run that is resumed
        // The call's own limit is the whole replay's: code under a sanitizer is slow, not hung.
        c["sanitizer"] = sanitizer_records(
            {attest, "replay", c.at("line"), "--kernel", plan.kernel.text, "--law", c.at("law"),
             "--python", plan.options.python, "--timeout", sanitizer_limit},
            folder + id + ".", interrupt.count());
    }
}

// Violated laws, counterexamples, causes, coverage: what needs the whole run to be said.
void write_findings(RunObserver& out, Records& records, const CampaignResult& result,
                    const RunPlan& plan, Subject& kernel, const InterruptGuard& interrupt) {
    std::vector<Record> violated_laws, counterexamples = std::move(records.counterexamples);
    records.counterexamples.clear();
    for (Record& law : records.laws)
        if (law.at("verdict") == "violated") violated_laws.push_back(law);
    std::erase_if(records.laws, [](const Record& law) { return law.at("verdict") == "violated"; });
    for (const LawResult& law : result.laws) {
        if (plan.earlier.law(law.property->id) != nullptr || out.wrote_law(law.property->id))
            continue;
        if (law.counterexample) {
            violated_laws.push_back(law_record(law));
            counterexamples.push_back(counterexample_record(law, &kernel));
        } else {
            out.write_law(law, law_record(law));
        }
    }
    std::vector<Record> causes = group_causes(counterexamples);
    if (kernel.manifest().memory == Memory::cuda)
        ask_sanitizer(counterexamples, causes, plan, interrupt);
    for (Record& law : violated_laws) {
        for (const Record& c : counterexamples)
            if (c.at("law") == law.at("law")) law["cause"] = c.at("cause");
        out.write(std::move(law));
    }
    for (Record& c : counterexamples) out.write(std::move(c));
    for (Record& cause : causes) out.write(std::move(cause));
    std::vector<Record> earlier = std::move(records.coverage);
    records.coverage.clear();
    for (Record& c : coverage_records(result, plan.profile.undrawn_pairs_max, &kernel, earlier))
        out.write(std::move(c));
}

Record end_record(const RunVerdict& v, const CampaignResult& result) {
    Record end{{"record", "end"},
               {"v", 1},
               {"verdict", v.verdict},
               {"exit", v.exit},
               {"laws",
                {{"holds", v.holds},
                 {"violated", v.violated},
                 {"inconclusive", v.inconclusive},
                 {"not_applicable", v.not_applicable},
                 {"not_run", v.not_run}}},
               {"cases", v.cases},
               {"elements", v.elements},
               {"seconds", result.seconds}};
    if (result.interrupted) end["interrupted"] = true;
    if (!result.narrowed.empty()) end["narrowed"] = result.narrowed;
    if (const std::string words = long_context_words(); !words.empty()) end["oracle"] = words;
    return end;
}

[[noreturn]] void rethrow_with_verdict(const OutputFailed& failure, const Records& records) {
    const std::int64_t violated =
        std::count_if(records.cases.begin(), records.cases.end(),
                      [](const Record& one) { return one.at("verdict") == "violated"; });
    std::string remedy = failure.details().empty() ? "" : failure.details().front();
    throw OutputFailed(failure.what(),
                       {"the verdict so far stands: " +
                        std::string(violated > 0 ? "violated" : "nothing violated") +
                        (remedy.empty() ? "" : "; " + remedy)});
}

}  // namespace

FinishedRun run_and_record(const Options& options) {
    const RunPlan plan = plan_run(options);
    // Loaded once before anything is written: a kernel that cannot be loaded leaves no results.
    SessionOptions session;
    session.timeout = plan.options.timeout;
    SessionSubject kernel(plan.kernel, session);

    FinishedRun run;
    run.directory = plan.options.out;
    Records& records = run.records;
    records = plan.earlier;
    records.end = nullptr;
    records.run = run_record(plan, kernel.manifest());
    Journal journal(run.directory, first_records(records));

    InterruptGuard interrupt(plan.options.jobs);
    const bool terminal = isatty(STDERR_FILENO) != 0;
    Progress progress(stderr, terminal,
                      style_of(STDERR_FILENO, plan.options.colour, plan.options.ascii));
    RunObserver observer(journal, records, progress, interrupt, plan.options.record_cases);
    try {
        const bool anything = plan.options.resume.empty() || !plan.match.empty();
        CampaignResult result;
        result.manifest = kernel.manifest();
        if (anything) result = run_campaign(campaign_options(plan, interrupt), observer);
        progress.clear();
        observer.rethrow();
        write_findings(observer, records, result, plan, kernel, interrupt);
        observer.rethrow();
        sort_records(records);
        run.verdict = verdict_of(records, result.interrupted);
        Record end = end_record(run.verdict, result);
        journal.finish(end);
        records.end = std::move(end);
    } catch (const OutputFailed& failure) {
        progress.clear();
        rethrow_with_verdict(failure, records);
    }
    return run;
}

}  // namespace attest
