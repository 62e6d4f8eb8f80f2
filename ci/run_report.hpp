#pragma once
// Everything one run says, as values, filled while it goes on or read from its file: what every
// screen, page and file is drawn from, and nothing else.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ci/exit_code.hpp"
#include "ci/machine.hpp"
#include "kernels/interface/kernel_spec.hpp"
#include "kernels/interface/manifest.hpp"
#include "properties/diagnosis/cause.hpp"
#include "properties/diagnosis/counterexample_report.hpp"
#include "properties/search/coverage.hpp"
#include "properties/search/law_report.hpp"

namespace attest::ci {

std::string_view name(kernel::KernelInterface interface) noexcept;

struct KernelReport {
    kernel::Manifest manifest;  ///< with the features it is asked for, where it declares none
    std::string id, typed;
    kernel::KernelInterface interface = kernel::KernelInterface::builtin;
    std::string file, sha256;             ///< of its library or program; empty: built in
    std::vector<std::string> barriers{};  ///< that held its process in
    std::vector<std::string> options{};   ///< of the command, by which it is run the same way again
    /// File name and SHA-256 of what its process has mapped and of the Python it has loaded.
    std::map<std::string, std::string> libraries{};
};

/// What was asked for.
struct RunHeader {
    std::string command;
    std::vector<std::string> argv;
    std::string attest_version, catalogue;
    std::int64_t catalogue_laws = 0;
    std::string started;
    std::uint64_t seed = 0;
    std::int64_t shard_index = 0, shard_count = 1;
    std::optional<double> seconds;              ///< the budget
    std::optional<std::int64_t> cases, shapes;  ///< a law; that the kernel sees at most
    search::Profile profile;
    KernelReport kernel;
    Machine machine;
    bool whole = false;                ///< nothing of the profile was left out by options
    std::string source;                ///< FILE:LINE for annotations; empty: none
    std::vector<std::string> match{};  ///< globs on laws; empty: all
    bool all_cases = false;            ///< of each law, also once one is violated
    bool until_first = false;          ///< ended with the first violation
    bool recorded = false;  ///< each number of each law has its records, so that it can be counted
    std::int64_t threads = 0;   ///< that judged at once; 0: not said
    std::string own_profile{};  ///< the text of a profile that is not one of attest's
};

/// Worst first: violated; not complete; inconclusive, also where nothing ran, too many feature
/// pairs were never drawn or a promised size was not reached; holds.
enum class RunDecision : std::uint8_t { holds, violated, inconclusive, not_complete };
std::string_view name(RunDecision decision) noexcept;

struct RunVerdict {
    RunDecision decision = RunDecision::inconclusive;
    int exit = exit_inconclusive;
    std::string reason;  ///< why inconclusive although no single law is
    std::int64_t holds = 0, violated = 0, inconclusive = 0, not_applicable = 0, not_run = 0;
    std::int64_t cut = 0;  ///< laws that did not run although the profile has them
    std::int64_t cases = 0, elements = 0, discarded = 0;
    std::int64_t ran() const noexcept { return holds + violated + inconclusive; }
    bool operator==(const RunVerdict&) const = default;
};

struct RunEnd {
    RunVerdict verdict;
    double seconds = 0;  ///< of the campaign and of what was found out about its failures
    bool interrupted = false;
    std::vector<std::string> narrowed;  ///< what the kernel was found to take
    std::vector<std::string> shapes_chosen{}, shapes_visited{};  ///< of few shapes (--shapes)
    std::string ended;                ///< what ended it before its time; empty: nothing did
    std::vector<std::string> unread;  ///< stored failures that are not readable
    std::string oracle;               ///< how long contexts were judged; empty: there were none
    bool narrow = false;              ///< the kernel takes certain shapes alone
    std::string at, kernel_sha256;    ///< when; of its library or program, then
    std::map<std::string, std::string> libraries{};  ///< loaded since
    std::int64_t lines = 0;  ///< of its file, and the SHA-256 of all before the last
    std::string sha256;
};

/// Laws stand in catalogue order, cases in that of (law, number).
struct RunReport {
    RunHeader run;
    std::vector<search::LawReport> laws;
    std::vector<search::CaseReport> cases;
    std::vector<search::DrawReport> draws;
    std::vector<diagnosis::CounterexampleReport> counterexamples;
    std::vector<diagnosis::CauseReport> causes;
    std::vector<search::CoverageReport> coverage;
    std::optional<RunEnd> end;  ///< none where the run was cut

    void add(search::LawReport report) { laws.push_back(std::move(report)); }
    void add(search::CaseReport report) { cases.push_back(std::move(report)); }
    void add(search::DrawReport report) { draws.push_back(std::move(report)); }
    void add(diagnosis::CounterexampleReport report) {
        counterexamples.push_back(std::move(report));
    }
    void add(diagnosis::CauseReport report) { causes.push_back(std::move(report)); }
    void add(search::CoverageReport report) { coverage.push_back(std::move(report)); }
    const search::LawReport* law(std::string_view id) const;
    const diagnosis::CounterexampleReport* counterexample(std::string_view id) const;
    void sort();
};

/// The verdict of a whole run, and the exit code that goes with it: the only place that finds them.
RunVerdict verdict_of(const RunReport& report, bool interrupted);

/// Over all laws, along each axis: the largest size judged, and that of what the profile promised
/// of this kernel.
struct SizeReport {
    search::Sizes judged, promised;
};
SizeReport sizes_of(const RunReport& report);

/// How many of such runs accuse or suspect a correct kernel by chance, at most, by its cases.
double chance_of(const RunReport& report);

/// Whether a law that did not run was cut off: by an interruption or the end of the time.
bool was_cut(const search::LawReport& law);
/// Whether the run left laws, or cases of one, that it was to judge.
bool was_ended_early(const RunReport& report);

}  // namespace attest::ci
