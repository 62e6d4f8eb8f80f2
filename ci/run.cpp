#include "ci/run.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "ci/explanations.hpp"
#include "ci/fixture.hpp"
#include "ci/gpu_oracle.hpp"
#include "ci/machine.hpp"
#include "ci/process_files.hpp"
#include "ci/run_observer.hpp"
#include "ci/sanitizer.hpp"
#include "ci/session_options.hpp"
#include "properties/search/clock.hpp"
#include "properties/search/few_shapes.hpp"
#include "properties/search/limited_kernel.hpp"
#include "properties/search/session_kernel.hpp"

namespace attest::ci {

namespace {

search::CampaignOptions campaign_options(const RunPlan& plan, const InterruptGuard& interrupt) {
    const CommandOptions& o = plan.options;
    search::CampaignOptions c;
    c.kernel = plan.kernel;
    c.profile = search::profile_for(plan.profile, o.shapes);
    c.match = plan.match;
    if (!o.resume.empty())
        c.match_of_whole = o.match.empty() ? std::vector<std::string>{"*"} : o.match;
    c.seed = plan.seed;
    c.seconds = o.seconds;
    c.cases = o.cases;
    c.shapes = o.shapes;
    c.until_first = o.until_first;
    c.all_cases = o.all_cases;
    c.jobs = o.jobs;
    c.shard_index = o.shard_index;
    c.shard_count = o.shard_count;
    c.store = o.out + "/cases";
    c.session = session_options(o);
    c.session.poison_seed = plan.seed;
    c.interrupted = &interrupt.count();
    for (const auto& [name, fixture] : builtin_fixtures())
        for (const std::string& law : fixture.laws) c.fixtures.push_back({law, fixture.tried});
    return c;
}

// What the file begins with: the run itself, and what an earlier one left.
std::vector<std::string> first_lines(const RunReport& report) {
    std::vector<std::string> lines{record_line(report.run)};
    for (const search::CaseReport& tried : report.cases) lines.push_back(record_line(tried));
    for (const search::DrawReport& drawn : report.draws) lines.push_back(record_line(drawn));
    for (const search::LawReport& law : report.laws)
        if (law.counterexample.empty()) lines.push_back(record_line(law));
    return lines;
}

// What compute-sanitizer says of each cause's smallest case, where the kernel runs on a GPU.
void ask_of_leads(std::vector<diagnosis::CounterexampleReport>& counterexamples,
                  const std::vector<diagnosis::CauseReport>& causes, const RunPlan& plan,
                  const InterruptGuard& interrupt) {
    const std::string attest = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string folder = plan.options.out + "/sanitizer/";
    for (diagnosis::CounterexampleReport& c : counterexamples) {
        const std::string id = search::short_id(c.example.id);
        const bool leads =
            std::ranges::find(causes, id, &diagnosis::CauseReport::lead) != causes.end();
        if (!leads || !c.sanitizer.empty()) continue;  // of the run that is resumed
        // The call's own limit is the whole replay's: code under a sanitizer is slow, not hung.
        c.sanitizer =
            ask_sanitizer({attest, "replay", print(c.example.smallest), "--kernel",
                           plan.kernel.text, "--law", c.example.law, "--python",
                           plan.options.python, "--timeout", sanitizer_limit, "--unconfined"},
                          folder + id + ".", interrupt.count());
    }
}

// Those that are so, taken out of the others.
template <typename Item, typename Is>
std::vector<Item> taken_if(std::vector<Item>& all, Is is) {
    const auto first =
        std::stable_partition(all.begin(), all.end(), [&](const Item& item) { return !is(item); });
    std::vector<Item> taken(std::make_move_iterator(first), std::make_move_iterator(all.end()));
    all.erase(first, all.end());
    return taken;
}

// Violated laws, counterexamples, causes, coverage: what needs the whole run to be said.
void write_findings(RunObserver& out, RunReport& report, const search::CampaignResult& result,
                    const RunPlan& plan, search::Kernel& kernel,
                    const search::KernelFactory& another, const InterruptGuard& interrupt) {
    const auto failed = [](const search::LawReport& law) { return !law.counterexample.empty(); };
    std::vector<search::LawReport> failed_laws = taken_if(report.laws, failed);
    auto counterexamples = std::exchange(report.counterexamples, {});
    std::vector<const search::LawResult*> open;
    for (const search::LawResult& law : result.laws) {
        if (plan.earlier.law(law.property->id) != nullptr || out.wrote_law(law.property->id))
            continue;
        if (law.counterexample) {
            failed_laws.push_back(search::law_report(law));
            open.push_back(&law);
        } else {
            out.write_law(law);
        }
    }
    // A device may be one process's alone.
    const bool on_device = kernel.manifest().memory == kernel::Memory::cuda;
    std::ranges::move(
        explanations(open, kernel, another, on_device ? 1 : plan.options.jobs, interrupt.count()),
        std::back_inserter(counterexamples));
    auto unproven = taken_if(counterexamples, [](const diagnosis::CounterexampleReport& c) {
        return !search::is_proven(c.example.confirmed.how);
    });
    const std::vector<diagnosis::CauseReport> causes = diagnosis::group_causes(counterexamples);
    diagnosis::tell_boundaries(causes, counterexamples, open);
    if (on_device) ask_of_leads(counterexamples, causes, plan, interrupt);
    for (search::LawReport& law : failed_laws) {
        for (const diagnosis::CounterexampleReport& c : counterexamples)
            if (c.example.law == law.law) law.cause = c.cause;
        out.write(std::move(law));
    }
    for (diagnosis::CounterexampleReport& c : counterexamples) out.write(std::move(c));
    for (diagnosis::CounterexampleReport& c : unproven) out.write(std::move(c));
    for (const diagnosis::CauseReport& cause : causes) out.write(cause);
    report.coverage.clear();
    const auto earlier = drawn_before(plan.earlier, result.manifest);
    // Few shapes leave pairs undrawn: what was drawn is said.
    const std::int64_t pairs_max = plan.options.shapes ? std::numeric_limits<std::int64_t>::max()
                                                       : plan.profile.undrawn_pairs_max;
    for (search::CoverageReport& c : search::coverage_reports(result, pairs_max, &kernel, earlier))
        out.write(std::move(c));
}

// What was thrown, in a sentence; empty where nothing was.
std::string words_of(const std::exception_ptr& error) {
    if (!error) return {};
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
        return thrown.what();
    }
}

// A kernel that was loaded before and is gone, which says nothing of attest or this machine.
bool is_of_kernel(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const worker::KernelGone&) {
    } catch (const worker::LoadCrash&) {
    } catch (const BadInput&) {
    } catch (...) {
        return false;
    }
    return true;
}

// The campaign's result, whatever ends it.
search::CampaignResult judge(const RunPlan& plan, const InterruptGuard& interrupt,
                             RunObserver& observer, LaterFiles* later) {
    try {
        search::CampaignOptions options = campaign_options(plan, interrupt);
        if (later) options.session.before_end = [=](auto& session) { later->look(session); };
        return search::run_campaign(options, observer);
    } catch (...) {
        search::CampaignResult none;
        none.interrupted = true;
        none.error = std::current_exception();
        return none;
    }
}

RunEnd end_of(const RunReport& report, const search::CampaignResult& result, double seconds) {
    RunEnd end;
    end.ended = words_of(result.error);
    end.unread = result.unread;
    end.verdict = verdict_of(report, result.interrupted);
    end.seconds = seconds;
    end.interrupted = result.interrupted;
    end.narrowed = result.narrowed;
    if (result.shapes)
        end.shapes_chosen.assign(result.shapes->chosen().begin(), result.shapes->chosen().end());
    end.shapes_visited = result.shapes_visited;
    end.oracle = long_context_words();
    end.narrow = result.narrow;
    end.at = time_now();
    return end;
}

// Whether it was made now. Why it could not be, who opens the first file in it says.
bool make_folder(const std::string& folder) {
    std::error_code failure;
    return std::filesystem::create_directories(folder, failure);
}

[[noreturn]] void rethrow_with_verdict(const OutputFailed& failure, const RunReport& report) {
    const bool violated = std::ranges::any_of(report.cases, [](const search::CaseReport& one) {
        return one.record.verdict.decision == law::Decision::violated;
    });
    std::string remedy = failure.details().empty() ? "" : failure.details().front();
    throw OutputFailed(failure.what(), {"the verdict so far stands: " +
                                        std::string(violated ? "violated" : "nothing violated") +
                                        (remedy.empty() ? "" : "; " + remedy)});
}

/// What holds the kernel's process in, and what it is made of; unrecorded, its Python module.
void describe_process(RunHeader& run, const search::SessionKernel& kernel, const RunPlan& plan) {
    for (std::size_t n = 0; n < worker::barrier_names.size(); ++n)
        if (kernel.barriers().has(static_cast<worker::Barrier>(n)))
            run.kernel.barriers.emplace_back(worker::barrier_names[n]);
    run.kernel.libraries = run.recorded ? kernel_files(plan.kernel, session_options(plan.options))
                                        : process_files(0, plan.kernel);
}

// As the campaign's own kernels were.
std::unique_ptr<search::LimitedKernel> limited(std::unique_ptr<search::Kernel> kernel,
                                               search::TimeLimit& limit,
                                               const search::CampaignResult& result) {
    auto one = std::make_unique<search::LimitedKernel>(std::move(kernel), limit);
    if (result.shapes) one->keep_to(result.shapes);
    return one;
}

}  // namespace

FinishedRun run_and_record(const CommandOptions& options) {
    const RunPlan plan = plan_run(options);
    // Loaded once before anything is written: a kernel that cannot be loaded leaves no results.
    // No process of this user may look into this one or change it.
    ::prctl(PR_SET_DUMPABLE, 0);
    // The folder is there before: the kernel must not write in it.
    const bool made = make_folder(plan.options.out);
    std::unique_ptr<search::SessionKernel> loaded;
    try {
        loaded =
            std::make_unique<search::SessionKernel>(plan.kernel, session_options(plan.options));
    } catch (...) {
        std::error_code failure;  // somebody has put something there
        if (made) std::filesystem::remove(plan.options.out, failure);
        throw;
    }
    search::SessionKernel& kernel = *loaded;

    FinishedRun run{{}, plan.options.out};
    RunReport& report = run.report;
    report = plan.earlier;
    report.run = run_header(plan, kernel.manifest());
    describe_process(report.run, kernel, plan);
    require_same_kernel(plan, report.run);
    report.end.reset();
    Journal journal(run.directory, first_lines(report), "run with --resume " + run.directory);

    InterruptGuard interrupt(plan.options.jobs);
    Progress progress(stderr, isatty(STDERR_FILENO) != 0,
                      style_of(STDERR_FILENO, plan.options.colour, plan.options.ascii));
    RunObserver observer(journal, report, progress, interrupt, plan.options);
    const auto begin = std::chrono::steady_clock::now();
    try {
        const bool anything = plan.options.resume.empty() || !plan.match.empty();
        search::CampaignResult result;
        LaterFiles later(report.run.kernel.libraries);
        if (anything)
            result = judge(plan, interrupt, observer, report.run.recorded ? &later : nullptr);
        result.manifest = kernel.manifest();
        progress.clear();
        observer.rethrow();
        search::TimeLimit limit(session_options(options), search::patience_of(plan.kernel));
        const search::KernelFactory another = [&]() -> std::unique_ptr<search::Kernel> {
            return limited(
                std::make_unique<search::SessionKernel>(plan.kernel, session_options(options)),
                limit, result);
        };
        const auto first = limited(std::move(loaded), limit, result);
        write_findings(observer, report, result, plan, *first, another, interrupt);
        observer.rethrow();
        report.sort();
        report.end = end_of(report, result, search::seconds_since(begin));
        report.end->libraries = later.found();
        if (!plan.kernel.path.empty()) report.end->kernel_sha256 = file_digest(plan.kernel.path);
        journal.finish(*report.end);
        if (result.error && report.end->verdict.exit != exit_violated &&
            !is_of_kernel(result.error))
            std::rethrow_exception(result.error);
    } catch (const OutputFailed& failure) {
        progress.clear();
        rethrow_with_verdict(failure, report);
    }
    return run;
}

}  // namespace attest::ci
