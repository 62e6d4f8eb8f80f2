#pragma once
// The state threads of a campaign share, and the order in which they find work: what failed is
// shrunk as soon as its law is done, by one thread while the others go on with the cases, law by
// law. Everything here is called under one lock.

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "properties/search/campaign.hpp"
#include "properties/search/capability.hpp"
#include "properties/search/ledger.hpp"
#include "properties/search/store.hpp"

namespace attest::search {

/// Work for one thread.
struct CaseTask {
    std::size_t law = 0;
    CaseSlot slot;
};
struct ShrinkTask {
    std::size_t law = 0;
    CaseRecord found;
    /// The smallest case of an earlier law that died alike: tried first.
    std::optional<Case> likely;
    std::vector<Case> others;  ///< of the same law, judged before
    std::int64_t evaluations = 0;
    double seconds = 0;  ///< allowance of wall time
};

class RunState {
public:
    using Clock = std::chrono::steady_clock;

    RunState(std::span<const law::Property> laws, const CampaignOptions& options);

    /// Sets up the ledgers, now that it is known what the kernel can be asked for.
    void prepare(const Capability& capability, const std::vector<StoredFailure>& stored);

    std::optional<CaseTask> next_case();
    void put(const CaseTask& task, SlotResult result);
    /// No case is out and none is left.
    bool cases_done() const;

    std::optional<ShrinkTask> next_shrink();
    void put(const ShrinkTask& task, Counterexample counterexample);
    bool shrinks_done() const;
    /// A hang that was none: the law is left without that violation.
    void withdraw(const ShrinkTask& task);

    void stop();  ///< hands out nothing more
    double progress() const;
    const law::Property& property(std::size_t law) const { return laws_[law]; }
    std::vector<law::Property> laws_of_whole() const;

    /// Laws whose verdict is final and that were not taken yet, in the order they became so.
    std::vector<std::size_t> take_concluded();
    const LawResult& result(std::size_t law) const { return results_[law]; }
    std::vector<LawResult> take_results() { return std::move(results_); }

private:
    std::vector<Case> known_cases(const law::Property& property,
                                  const std::vector<StoredFailure>& stored) const;
    struct Failing {
        std::size_t law;
        FailureKind kind;
        CaseRecord found;
        bool handed_out = false, done = false;
        bool withdrawn = false;  ///< it was none
    };

    void skip(std::size_t law, law::Verdict verdict);
    void commit_in_order();
    void commit(std::size_t law);
    double seconds_left() const;
    const Failing* first_of_kind(const Failing& failing) const;

    std::span<const law::Property> laws_;
    const CampaignOptions& options_;
    const Capability* capability_ = nullptr;
    Clock::time_point begin_ = Clock::now();
    Clock::time_point law_deadline_ = Clock::now();
    std::vector<std::optional<Ledger>> ledgers_;
    std::vector<Effort> efforts_;  ///< of the laws committed so far
    std::vector<LawResult> results_;
    std::vector<Failing> failing_;
    std::vector<std::size_t> concluded_;
    Lessons lessons_;  ///< of the laws committed so far
    std::size_t current_ = 0, committed_ = 0;
    bool stopped_ = false;
    bool found_first_ = false;  ///< the violation that it was to end with
};

}  // namespace attest::search
