#include "properties/search/runner.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "properties/search/clock.hpp"
#include "properties/search/limited_kernel.hpp"
#include "properties/search/run_state.hpp"
#include "properties/search/workbench.hpp"

namespace attest::search {

namespace {

using Clock = std::chrono::steady_clock;

// A case that takes longer than this is worth a word to whoever waits.
constexpr double waiting_from_seconds = 2;
constexpr std::chrono::milliseconds look_every{250};

class Runner {
public:
    Runner(std::span<const law::Property> laws, const KernelFactory& factory,
           const CampaignOptions& options, CampaignObserver& observer)
        : factory_(factory),
          options_(options),
          observer_(observer),
          limit_(options.session, patience_of(options.kernel)),
          bench_(options, capability_, limit_),
          state_(laws, options),
          workers_(static_cast<std::size_t>(std::max(options.jobs, 1))) {}

    CampaignResult run();

private:
    struct Worker {
        std::size_t law = 0;
        Clock::time_point since;
        bool busy = false;
    };

    void work(std::size_t index);
    std::unique_ptr<Kernel> start(std::size_t index);
    Capability capability_of(Kernel& kernel);
    void prepare(LimitedKernel& kernel);
    void try_one(Kernel& kernel, const CaseTask& task, std::unique_lock<std::mutex>& lock);
    bool do_next(Kernel& kernel, std::size_t index);
    void report(const CaseTask& task, const SlotResult& result);
    void shrink_one(Kernel& kernel, const ShrinkTask& task);
    void tell_concluded();
    void watch();
    void confirm_rest(LawResult& law, const CaseRecord& found, Clock::time_point deadline);
    void complete();
    bool interrupted() const { return options_.interrupted && *options_.interrupted > 0; }

    const KernelFactory& factory_;
    const CampaignOptions& options_;
    CampaignObserver& observer_;
    TimeLimit limit_;
    Capability capability_;
    Workbench bench_;
    CampaignResult result_;
    std::unique_ptr<Kernel> rest_;  ///< once all threads have ended

    std::mutex mutex_;  ///< guards everything below
    std::condition_variable changed_;
    RunState state_;
    std::vector<Worker> workers_;
    std::size_t running_ = 0;
    bool ready_ = false;
    std::exception_ptr error_;
};

/// What the kernel takes; what it declares, where it dies of being asked: the cases will tell.
Capability Runner::capability_of(Kernel& kernel) {
    try {
        return probed_capability(kernel, result_.narrowed);
    } catch (const worker::KernelDied&) {
        result_.narrowed.clear();
        return declared_capability(kernel.manifest());
    }
}

void Runner::prepare(LimitedKernel& kernel) {
    Capability capability = capability_of(kernel);
    std::vector<StoredFailure> stored;
    if (!options_.store.empty()) stored = load_failures(options_.store, &result_.unread);
    capability.shapes = shapes_for(state_.laws_of_whole(), kernel, capability, options_, stored);
    const std::lock_guard lock(mutex_);
    result_.manifest = kernel.manifest();
    result_.narrow = capability.narrow();
    capability_ = std::move(capability);
    kernel.keep_to(capability_.shapes);
    state_.prepare(capability_, stored);
    ready_ = true;
    changed_.notify_all();
    tell_concluded();
}

/// The kernel lives and dies on this thread: a worker process may be bound to the thread that
/// started it. What is thrown ends the campaign for all threads; what was found stays.
void Runner::work(std::size_t index) {
    try {
        if (index > 0) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return ready_ || error_; });
            if (error_) return;
        }
        std::unique_ptr<Kernel> own = start(index);
        if (own == nullptr) return;
        LimitedKernel kernel(std::move(own), limit_);
        index == 0 ? prepare(kernel) : kernel.keep_to(capability_.shapes);
        while (do_next(kernel, index)) {
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        if (ready_) state_.stop();
        changed_.notify_all();
    }
}

/// What stands in the way may be gone in a moment. But a device may be one process's alone: then
/// the first thread does all the work.
std::unique_ptr<Kernel> Runner::start(std::size_t index) {
    constexpr int attempts = 3;
    for (int attempt = 1;; ++attempt) {
        try {
            return factory_();
        } catch (const std::exception&) {
            if (index > 0) return nullptr;
            if (attempt == attempts) throw;
        }
        std::this_thread::sleep_for(attempt * look_every);
    }
}

/// A slot that was handed out comes back, whatever happens to it.
void Runner::try_one(Kernel& kernel, const CaseTask& task, std::unique_lock<std::mutex>& lock) {
    SlotResult result;
    lock.unlock();
    try {
        result = bench_.try_slot(kernel, state_.property(task.law), task.slot);
    } catch (...) {
        lock.lock();
        state_.put(task, {});
        throw;
    }
    lock.lock();
    report(task, result);
    state_.put(task, std::move(result));
}

/// Takes and does one piece of work; false where there will be none.
bool Runner::do_next(Kernel& kernel, std::size_t index) {
    std::unique_lock lock(mutex_);
    Worker& worker = workers_[index];
    for (;;) {
        if (error_) return false;
        if (interrupted()) state_.stop();
        if (auto task = state_.next_shrink()) {
            worker = {task->law, Clock::now(), true};
            lock.unlock();
            shrink_one(kernel, *task);
            lock.lock();
            worker.busy = false;
            break;
        }
        if (auto task = state_.next_case()) {
            worker = {task->law, Clock::now(), true};
            try_one(kernel, *task, lock);
            worker.busy = false;
            break;
        }
        if (state_.cases_done() && state_.shrinks_done()) return false;
        tell_concluded();
        changed_.wait_for(lock, look_every);
    }
    tell_concluded();
    changed_.notify_all();
    return true;
}

void Runner::report(const CaseTask& task, const SlotResult& result) {
    const law::Property& property = state_.property(task.law);
    observer_.on_slot(property, task.slot, result);
    if (!result.record) return;
    observer_.on_case(property, *result.record, state_.progress());
    if (failure_kind(*result.record)) observer_.on_violation(property, *result.record);
}

void Runner::shrink_one(Kernel& kernel, const ShrinkTask& task) {
    const law::Property& property = state_.property(task.law);
    auto smallest = bench_.shrink(kernel, property, task, [&](std::int64_t n, const Case& c) {
        const std::lock_guard lock(mutex_);
        observer_.on_shrink(property, n, c);
    });
    const std::lock_guard lock(mutex_);
    if (smallest)
        state_.put(task, std::move(*smallest));
    else
        state_.withdraw(task);
}

void Runner::tell_concluded() {
    for (const std::size_t law : state_.take_concluded()) observer_.on_law(state_.result(law));
}

/// Tells whoever waits that a case is slow, once a second.
void Runner::watch() {
    std::unique_lock lock(mutex_);
    auto told = Clock::now();
    while (running_ > 0) {
        changed_.wait_for(lock, look_every);
        if (seconds_since(told) < 1) continue;
        told = Clock::now();
        const double limit = std::chrono::duration<double>(limit_.of(0, false)).count();
        for (const Worker& worker : workers_)
            if (worker.busy && seconds_since(worker.since) > waiting_from_seconds)
                observer_.on_waiting(state_.property(worker.law), seconds_since(worker.since),
                                     limit);
    }
}

/// What the campaign was cut before it could try again is tried once, in a fresh process, for as
/// long as a person waits: a failure that was seen twice is told even then.
void Runner::confirm_rest(LawResult& law, const CaseRecord& found, Clock::time_point deadline) {
    Counterexample c = counterexample_of(*law.property, found);
    if (found.again || (!is_slow_death(found) && Clock::now() < deadline)) {
        c.confirmed = bench_.once_more(rest_, factory_, *law.property, found);
    } else if (is_slow_death(found)) {
        // It would cost its limit once more. Where another law's was proven, this one is alike.
        const auto same = [&](const LawResult& other) {
            return other.counterexample && is_proven(other.counterexample->confirmed.how) &&
                   other.counterexample->outcome == found.outcome;
        };
        if (std::any_of(result_.laws.begin(), result_.laws.end(), same))
            c.confirmed.how = Confirmation::alike;
    }
    if (!is_proven(c.confirmed.how))
        law.verdict = law::inconclusive({law::Reason::Kind::interrupted,
                                         "failed " + std::to_string(law.violated) + " of " +
                                             std::to_string(law.cases) +
                                             " cases; the run was cut before one was tried again"});
    law.counterexample = std::move(c);
}

/// Every violated law has a counterexample.
void Runner::complete() {
    result_.error = error_;
    result_.interrupted = interrupted() || error_ != nullptr;
    result_.laws = state_.take_results();
    if ((result_.shapes = capability_.shapes)) result_.shapes->tell(result_);
    const bool insists = options_.interrupted && *options_.interrupted > 1;
    const auto deadline = Clock::now() + std::chrono::seconds(insists ? 0 : 5);
    for (LawResult& law : result_.laws) {
        if (law.verdict.decision != law::Decision::violated || law.counterexample) continue;
        const auto found = std::find_if(law.records.begin(), law.records.end(),
                                        [](const CaseRecord& r) { return failure_kind(r); });
        if (found == law.records.end()) continue;
        confirm_rest(law, *found, deadline);
        observer_.on_law(law);
    }
    rest_.reset();
}

CampaignResult Runner::run() {
    std::vector<std::thread> threads;
    running_ = workers_.size();
    for (std::size_t i = 0; i < workers_.size(); ++i)
        threads.emplace_back([this, i] {
            work(i);
            const std::lock_guard lock(mutex_);
            --running_;
            changed_.notify_all();
        });
    watch();
    for (std::thread& thread : threads) thread.join();
    if (error_ && !ready_) std::rethrow_exception(error_);
    tell_concluded();
    complete();
    return std::move(result_);
}

}  // namespace

CampaignResult run_laws(std::span<const law::Property> laws, const KernelFactory& factory,
                        const CampaignOptions& options, CampaignObserver& observer) {
    return Runner(laws, factory, options, observer).run();
}

}  // namespace attest::search
