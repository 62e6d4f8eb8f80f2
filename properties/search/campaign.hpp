#pragma once
// A campaign: one kernel against laws, case by case, until the budget is spent. Case k of a law has
// its own seed, so any shard starts anywhere and any thread may run it; the result does not depend
// on the number of threads.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/interface/kernel_spec.hpp"
#include "kernels/worker/session.hpp"
#include "properties/law/property.hpp"
#include "properties/search/subject.hpp"
#include "reference/problem/case.hpp"

namespace attest {

/// What a run promises to try, and what it accepts; ci/profiles/*.json, as data.
struct Profile {
    std::string name;
    std::int64_t version = 1;
    std::int64_t cases_per_law = 120;  ///< budget where no time is given
    std::int64_t scores_max = 16384, len_max = 256, dim_max = 128;
    std::int64_t len_min = 1;  ///< above 1: long contexts; laws of any length draw len_kv from here
    std::vector<std::string> laws = {"*"};  ///< globs; a law outside them is not_run
    std::vector<std::string> laws_excluded;
    std::vector<std::string> fails = {"violation",
                                      "structure"};  ///< classes that make the verdict violated
    /// Shares of the cases and of the draws: a law that lost more has not been tried.
    double discard_max = 0.1, refuse_max = 0.25;
    std::int64_t undrawn_pairs_max = 4;
};

/// A case that a law is tried on before any is drawn, where it lies in the law's space and the
/// kernel takes it.
struct FixedCase {
    std::string law;
    Case subject;
};

struct CampaignOptions {
    KernelSpec kernel;
    Profile profile;
    std::vector<std::string> match;  ///< globs on law ids; empty: all
    std::uint64_t seed = 0;
    std::optional<double> seconds;      ///< total, shared among laws
    std::optional<std::int64_t> cases;  ///< a law
    int jobs = 2;
    std::int64_t shard_index = 0, shard_count = 1;
    std::string store;  ///< directory of stored failures; empty: none are kept
    std::vector<FixedCase> fixtures;
    SessionOptions session;
    const std::atomic<int>* interrupted = nullptr;  ///< 1: finish running cases; 2: stop at once
};

/// One tried case, as reports and the boundary search need it.
struct CaseRecord {
    std::int64_t number = 0;  ///< k of the campaign; negative: a stored failure or a fixture
    Case subject;
    Verdict verdict;
    Outcome outcome = Outcome::ok;
    std::optional<Fault> fault;
    double seconds = 0;
};

struct ShrinkStep {
    std::int64_t evaluation = 0;
    std::string pass, change, line;
    std::int64_t scores = 0;
};

struct Counterexample {
    std::string law;
    std::string id;  ///< SHA-256 of case and law, hex
    Case smallest;
    Verdict verdict;
    Outcome outcome = Outcome::ok;
    std::optional<Fault> fault;
    CaseRecord found;
    std::int64_t evaluations = 0, accepted = 0;
    double shrink_seconds = 0;
    bool confirmed = false;  ///< failed again in a fresh worker
    std::vector<ShrinkStep> steps;
};

/// What the cases of one law came to. cases: judged. discarded: draws outside the law's
/// precondition, or in which it found nothing to compare. refused: draws the kernel said no to;
/// refusals counts its reasons. Both are drawn again under the same number, so they are not lost
/// cases.
struct LawTotals {
    Verdict verdict;  ///< merged
    std::int64_t cases = 0, discarded = 0, refused = 0, violated = 0;
    double seconds = 0;
    std::map<std::string, std::int64_t> refusals;
};

struct LawResult : LawTotals {
    const Property* property = nullptr;
    std::vector<CaseRecord> records;  ///< the judged cases, in case order
    std::optional<Counterexample> counterexample;
};

/// Who is told while a campaign runs; called under a lock, so implementations need none.
class CampaignObserver {
public:
    virtual ~CampaignObserver() = default;
    virtual void on_case(const Property&, const CaseRecord&, double /*progress 0..1*/) {}
    virtual void on_violation(const Property&, const CaseRecord&) {}
    virtual void on_shrink(const Property&, std::int64_t /*evaluation*/, const Case&) {}
    virtual void on_waiting(const Property&, double /*seconds*/, double /*limit*/) {}
    virtual void on_law(const LawResult&) {}
};

struct CampaignResult {
    Manifest manifest;
    std::vector<LawResult> laws;  ///< catalogue order, every law of the catalogue
    double seconds = 0;
    bool interrupted = false;
    /// What the kernel was found to refuse before the first case, and so was not asked for.
    std::vector<std::string> narrowed;
};

CampaignResult run_campaign(const CampaignOptions& options, CampaignObserver& observer);

/// One case under one law in a fresh worker: what `replay`, confirmation and the tests use.
CaseRecord try_case(Subject& kernel, const Property& property, const Case& subject);

/// Stored failures: one JSON file a (case, law), written atomically, named by its id.
struct StoredFailure {
    std::string id, law, kernel;
    Case subject;
    bool shrunk = false;
};
std::string failure_id(const Case& subject, std::string_view law);
void store_failure(const std::string& directory, const StoredFailure& failure);
std::vector<StoredFailure> load_failures(
    const std::string& directory);  ///< strict; BadInput on a malformed file

}  // namespace attest
