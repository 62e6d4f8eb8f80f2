#pragma once
// A campaign: one kernel against laws, case by case, until the budget is spent. Case k of a law has
// its own seed, so any shard starts anywhere and any thread may run it; the result does not depend
// on the number of threads.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/interface/kernel_spec.hpp"
#include "kernels/interface/manifest.hpp"
#include "properties/search/ledger.hpp"

namespace attest::search {

class FewShapes;

/// A case that a law is tried on before any is drawn, where it lies in the law's space and the
/// kernel takes it.
struct FixedCase {
    std::string law;
    Case tried;
};

struct CampaignOptions {
    kernel::KernelSpec kernel;
    Profile profile;
    std::vector<std::string> match;  ///< globs on law ids; empty: all
    /// Of the campaign that this one goes on with, its laws that are done included: few shapes are
    /// chosen for all of them, so that they are the same. Empty: as `match`.
    std::vector<std::string> match_of_whole;
    std::uint64_t seed = 0;
    std::optional<double> seconds;       ///< total, shared among laws
    std::optional<std::int64_t> cases;   ///< a law
    std::optional<std::int64_t> shapes;  ///< that the kernel sees, at most
    bool until_first = false;            ///< ends with the first violation that is proven
    bool all_cases = false;              ///< of each law, also once one is violated
    int jobs = 2;
    std::int64_t shard_index = 0, shard_count = 1;
    std::string store;  ///< directory of stored failures; empty: none are kept
    std::vector<FixedCase> fixtures;
    worker::SessionOptions session;
    const std::atomic<int>* interrupted = nullptr;  ///< 1: finish running cases; 2: stop at once
};

/// Who is told while a campaign runs; called under a lock, so implementations need none.
class CampaignObserver {
public:
    virtual ~CampaignObserver() = default;
    virtual void on_case(const law::Property&, const CaseRecord&, double /*progress 0..1*/) {}
    /// What came of a number, or of a case that was known: also where no case was judged.
    virtual void on_slot(const law::Property&, const CaseSlot&, const SlotResult&) {}
    virtual void on_violation(const law::Property&, const CaseRecord&) {}
    virtual void on_shrink(const law::Property&, std::int64_t /*evaluation*/, const Case&) {}
    virtual void on_waiting(const law::Property&, double /*seconds*/, double /*limit*/) {}
    virtual void on_law(const LawResult&) {}
};

struct CampaignResult {
    kernel::Manifest manifest;
    std::vector<LawResult> laws;  ///< catalogue order, every law of the catalogue
    bool interrupted = false;
    std::shared_ptr<const FewShapes> shapes;  ///< the only ones asked about; none: any
    std::vector<std::string> shapes_visited;  ///< those of them that saw a call
    /// What ended the campaign before its time, if anything did: a kernel that is gone, a law that
    /// threw. What was found before stands.
    std::exception_ptr error;
    /// What the kernel was found to refuse before the first case, and so was not asked for.
    std::vector<std::string> narrowed;
    bool narrow = false;  ///< the kernel takes certain shapes alone
    /// Stored failures that could not be read: what is wrong with each.
    std::vector<std::string> unread;
};

CampaignResult run_campaign(const CampaignOptions& options, CampaignObserver& observer);

}  // namespace attest::search
