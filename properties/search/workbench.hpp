#pragma once
// What a thread of a campaign does with one piece of work, outside any lock: judging the case of a
// slot, and shrinking a failure. Failures are on the disk before anything else happens to them.

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "properties/search/run_state.hpp"
#include "properties/search/shrinker.hpp"
#include "properties/search/time_limit.hpp"

namespace attest::search {

/// The stored failures of this run. Any thread.
class FailureKeeper {
public:
    /// An empty directory keeps nothing.
    FailureKeeper(std::string directory, std::string kernel)
        : directory_(std::move(directory)), kernel_(std::move(kernel)) {}

    void found(const std::string& law, const Case& tried);  ///< the first of a law is written
    void shrunk(const Counterexample& smallest);            ///< written; stands for the first
    void withdrawn(const std::string& law);

private:
    void forget(const std::string& law, const Case* but);

    std::string directory_, kernel_;
    std::mutex mutex_;
    std::map<std::string, Case> first_;
};

class Workbench {
public:
    Workbench(const CampaignOptions& options, const Capability& capability, TimeLimit& limit);

    SlotResult try_slot(Kernel& kernel, const law::Property& property, const CaseSlot& slot);

    /// None where the failure was a hang that a longer wait shows to be none.
    std::optional<Counterexample> shrink(Kernel& kernel, const law::Property& property,
                                         const ShrinkTask& task, const Shrinker::Tell& tell);

    /// One more try in a fresh process of a kernel that is made for it, where there is none.
    Confirmed once_more(std::unique_ptr<Kernel>& kernel, const KernelFactory& factory,
                        const law::Property& property, const CaseRecord& found);

private:
    Judged judge_slot(Kernel& kernel, const law::Property& property, const Case& tried,
                      std::int64_t number);
    std::optional<Counterexample> likely(Kernel& kernel, const law::Property& property,
                                         const ShrinkTask& task);
    std::optional<Counterexample> settle_hang(Kernel& kernel, const law::Property& property,
                                              const ShrinkTask& task);
    Counterexample settle(Kernel& kernel, const law::Property& property, const ShrinkTask& task,
                          Counterexample smallest);
    Counterexample settle_anew(Kernel& kernel, const law::Property& property,
                               const ShrinkTask& task, Counterexample smallest);
    std::optional<Counterexample> fails_otherwise(Kernel& kernel, const law::Property& property,
                                                  const ShrinkTask& task);

    const CampaignOptions& options_;
    const Capability& capability_;
    TimeLimit& limit_;
    FailureKeeper keeper_;
    std::mutex hangs_;  ///< held while it is decided whether the kernel hangs
    /// What the failure of an earlier law was proven to depend on: the next one is tried for that
    /// first, with fewer fresh processes.
    std::atomic<bool> remembers_ = false, races_ = false;
};

}  // namespace attest::search
