#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "ci/case_source.hpp"
#include "ci/check_screen.hpp"
#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/number.hpp"
#include "ci/screen.hpp"
#include "ci/session_options.hpp"
#include "properties/law/property.hpp"
#include "properties/search/capability.hpp"
#include "properties/search/confirm.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/limited_kernel.hpp"
#include "properties/search/session_kernel.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

// The law asked for, or every law this case lies in the space of.
std::vector<const law::Property*> laws_for(const NamedCase& named, const CommandOptions& options,
                                           search::Kernel& kernel) {
    const std::string wanted = options.law.empty() ? named.law : options.law;
    if (!wanted.empty()) {
        return {&law_named(wanted)};
    }
    std::vector<const law::Property*> laws;
    const search::Capability capability = search::declared_capability(kernel.manifest());
    for (const law::Property& law : law::catalogue())
        if (!search::why_not_applicable(law, capability) &&
            search::in_space(law, capability, named.tried.problem) &&
            search::in_space(law, named.tried.values))
            laws.push_back(&law);
    return laws;
}

void draw_violation(Screen& s, const search::CaseRecord& record) {
    if (!record.verdict.violation) return;
    const law::Violation& v = *record.verdict.violation;
    s.fact("problem", s.bold(clean(v.problem)));
    if (record.outcome == worker::Outcome::ok) draw_element(s, element_words(v));
    std::istringstream printed(record.printed);
    const char* key = "it printed";
    for (std::string line; std::getline(printed, line);)
        s.fact(std::exchange(key, ""), clean(line));
}

void draw_law(Screen& s, const law::Property& law, const search::CaseRecord& record) {
    const law::Verdict& v = record.verdict;
    const std::string mark =
        s.mark(v.doubt ? "doubted" : name(v.decision)) + " " + s.pad(law.id, 28);
    switch (v.decision) {
        case law::Decision::violated:
            s.line(mark + " " + s.bad("violated"));
            draw_violation(s, record);
            break;
        case law::Decision::holds:
            if (v.doubt) {
                s.line(mark + " " + s.warn("suspected"));
                s.fact("problem", clean(v.doubt->problem));
                break;
            }
            s.line(mark + " holds" +
                   (law.compares == law::Compares::bound
                        ? s.dim(", " + ratio_text(v.worst_ratio) + " of the bound")
                        : ""));
            break;
        default: {
            std::string word(name(v.decision));
            std::replace(word.begin(), word.end(), '_', ' ');
            s.line(mark + " " + s.warn(word) + s.dim(": " + clean(v.reason.text)), 32);
        }
    }
}

// In a fresh process, after what it depends on.
search::CaseRecord try_named(search::Kernel& kernel, const law::Property& law,
                             const NamedCase& named) {
    std::vector<search::Judging> before;
    for (const search::EarlierCase& earlier : named.before)
        if (const law::Property* its_law = law::find_property(earlier.law))
            before.push_back({its_law, earlier.tried, earlier.placement});
    if (before.empty()) return search::try_case(kernel, law, named.tried);
    search::CaseRecord record;
    for (const auto placement : {search::PlacementOrder::even, search::PlacementOrder::odd}) {
        record = search::try_after(kernel, before, law, named.tried, placement);
        if (search::failure_kind(record)) break;
    }
    return record;
}

// The kernel of the stored failures, which are all of one, and theirs alone.
kernel::KernelSpec kernel_of(std::vector<search::StoredFailure>& failures,
                             const CommandOptions& options) {
    std::set<std::string> names, asked{options.kernel};
    for (const search::StoredFailure& failure : failures) names.insert(failure.kernel);
    // As it was typed, or by its name alone, where another run has left its results since.
    if (!options.kernel.empty())
        asked.insert(kernel::parse_kernel_spec(options.kernel, options.python).id);
    const auto other = [&](const std::string& name) { return !asked.contains(name); };
    if (names.size() > 1 && !std::ranges::all_of(names, other))
        std::erase_if(failures, [&](const auto& one) { return other(one.kernel); });
    else if (names.size() > 1)
        throw BadInput("replay: the stored failures are of " + std::to_string(names.size()) +
                           " kernels, such as " + clean(*names.begin()),
                       {"attest replay --kernel KERNEL"});
    return kernel_for({{}, "", failures.front().kernel, {}}, options);
}

// Whether the kernel that is tried is the one that failed, and no other that may hold.
bool is_same_kernel(const std::string& failed, const CommandOptions& options) {
    std::error_code none;
    return options.kernel.empty() || options.kernel == failed ||
           std::filesystem::equivalent(options.kernel, failed, none);
}

bool holds(const search::CaseRecord& record) {
    return record.verdict.decision == law::Decision::holds;
}

// Out of the list, and not lost: a fixed failure is a good fixture.
void put_aside(const search::StoredFailure& failure, const std::string& folder) {
    const std::filesystem::path list(folder), fixed = list / "fixed";
    std::filesystem::create_directories(fixed);
    std::filesystem::rename(list / (failure.id + ".json"), fixed / (failure.id + ".json"));
}

// Every stored failure of the kernel. What holds now leaves the list.
int replay_stored(const CommandOptions& options) {
    const std::string folder = options.out + "/cases";
    if (options.out != CommandOptions().out && !std::filesystem::is_directory(options.out))
        throw BadInput("replay: --out " + clean(options.out) + ": no such folder",
                       {"the folder of a run, whose cases/ holds what failed"});
    std::vector<std::string> unread;
    std::vector<search::StoredFailure> failures = stored_failures(options.out, unread);
    Screen s(style_of(STDOUT_FILENO, options.colour, options.ascii));
    for (const std::string& file : unread) s.line(s.warn("not read: " + clean(file)));
    if (failures.empty()) {
        s.line("no known failures in " + clean(folder));
        write_out(s.text());
        return exit_holds;
    }
    const kernel::KernelSpec spec = kernel_of(failures, options);
    search::TimeLimit limit(session_options(options), search::patience_of(spec));
    search::LimitedKernel kernel(
        std::make_unique<search::SessionKernel>(spec, session_options(options)), limit);
    kernel.set_timeout(limit.patient(0));  // each call decides
    std::size_t fixed = 0, failing = 0;
    std::string kept;  // the kernel whose failures stay listed
    for (const search::StoredFailure& failure : failures) {
        const law::Property* law = law::find_property(failure.law);
        if (law == nullptr) continue;
        const NamedCase named{search::asked_of(kernel.manifest().features, failure.tried),
                              failure.law, failure.kernel, failure.before};
        search::CaseRecord record = try_named(kernel, *law, named);
        // What failed now and then is not fixed because it holds once.
        const bool surely = failure.shrunk || !failure.before.empty();
        for (auto n = search::replays_most; !surely && holds(record) && n > 1; --n)
            record = try_named(kernel, *law, named);
        draw_law(s, *law, record);
        failing += record.verdict.decision == law::Decision::violated;
        if (!holds(record)) continue;
        ++fixed;
        if (is_same_kernel(failure.kernel, options))
            put_aside(failure, folder);
        else
            kept = failure.kernel;
    }
    const int code = failing > 0                ? exit_violated
                     : fixed == failures.size() ? exit_holds
                                                : exit_inconclusive;
    s.line();
    s.line("known failures: " + std::to_string(fixed) + " of " + std::to_string(failures.size()) +
           (kept.empty() ? std::string(" fixed") + (fixed > 0 ? ", and no longer listed" : "")
                         : " hold here; they stay listed, as those of " + clean(kept)) +
           "   exit " + std::to_string(code));
    write_out(s.text());
    return code;
}

}  // namespace

int replay_command(const CommandOptions& options) {
    if (options.arguments.empty()) return replay_stored(options);
    NamedCase named = find_case(options.arguments.front(), options.out);
    const kernel::KernelSpec spec = kernel_for(named, options);
    worker::SessionOptions session = session_options(options);
    // Whoever watches the one call, a debugger or compute-sanitizer, hears of its end.
    session.farewell = std::chrono::seconds(5);
    search::TimeLimit limit(session, search::patience_of(spec));
    search::LimitedKernel kernel(std::make_unique<search::SessionKernel>(spec, session), limit);
    kernel.set_timeout(limit.patient(0));  // the one call decides
    named.tried = search::asked_of(kernel.manifest().features, std::move(named.tried));
    const std::vector<const law::Property*> laws = laws_for(named, options, kernel);
    if (const auto no = kernel::refusal(kernel.manifest(), named.tried.problem))
        throw BadInput("replay: " + clean(kernel.manifest().name) + " is never asked this: " + *no,
                       {"takes and features of its manifest say what it is asked"});
    if (laws.empty())
        throw BadInput("replay: no law is tried on such a case",
                       {"--law ID judges it by one law all the same"});

    Screen s(style_of(STDOUT_FILENO, options.colour, options.ascii));
    s.line(s.bold("attest replay") + "  " + clean(kernel.manifest().name) + " " +
           clean(kernel.manifest().version) +
           (spec.text == kernel.manifest().name ? "" : "  " + s.dim(clean(spec.text))));
    s.line(print(named.tried), 2);
    if (!named.before.empty())
        s.line(s.dim("after " +
                     counted(static_cast<std::int64_t>(named.before.size()), "other case")));
    s.line();
    std::int64_t violated = 0, holds = 0, suspected = 0;
    // What is improbable fails no run, unless its profile said so: then the case was stored.
    const bool stored = !named.law.empty();
    for (const law::Property* law : laws) {
        search::CaseRecord record = try_named(kernel, *law, named);
        if (!stored)
            record.verdict = law::graded(std::move(record.verdict), search::Profile().fails);
        suspected += record.verdict.doubt.has_value();
        violated += record.verdict.decision == law::Decision::violated;
        holds += record.verdict.decision == law::Decision::holds;
        draw_law(s, *law, record);
    }
    s.line();
    const int code = violated > 0 ? exit_violated : holds > 0 ? exit_holds : exit_inconclusive;
    const std::string tail = "   exit " + std::to_string(code);
    if (violated > 0)
        s.line(s.bad(s.symbol("✕ ", "") + "VIOLATED") + "   " + count_text(violated) + " of " +
               counted(static_cast<std::int64_t>(laws.size()), "law") + tail);
    else if (holds > 0)
        s.line(s.bold(s.symbol("● ", "") + "HOLDS") + "   " + counted(holds, "law") +
               (suspected == 0 ? "" : ", " + count_text(suspected) + " suspected") + tail);
    else
        s.line(s.warn(s.symbol("◐ ", "? ") + "INCONCLUSIVE") + "   nothing was judged" + tail);
    write_out(s.text());
    return code;
}

}  // namespace attest::ci
