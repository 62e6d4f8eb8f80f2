#include "ci/explanations.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "properties/diagnosis/cross_examination.hpp"

namespace attest::ci {

namespace {

diagnosis::CounterexampleReport unexplained(const search::LawResult& law, std::string why) {
    diagnosis::CounterexampleReport report = diagnosis::counterexample_report(law, nullptr);
    if (!report.died()) report.diagnosis.skipped = std::move(why);
    return report;
}

/// Whatever becomes of its explanation, a violation is told.
diagnosis::CounterexampleReport explained(const search::LawResult& law, search::Kernel& kernel,
                                          bool races, const diagnosis::NamedDeviations& named) {
    try {
        return diagnosis::counterexample_report(law, &kernel, races, named);
    } catch (const worker::KernelDied&) {
    } catch (const worker::KernelGone&) {
    } catch (const std::exception& thrown) {
        return unexplained(law, std::string("attest's own error: ") + thrown.what());
    }
    return unexplained(law, "the kernel can no longer be asked");
}

/// The laws are taken in rounds, and within one by whoever is free. What the rounds before have
/// named is tried first: one defect breaks many laws, and is sought in a few of them.
class Explaining {
public:
    Explaining(const std::vector<const search::LawResult*>& laws,
               const std::atomic<int>& interrupts)
        : laws_(laws),
          interrupts_(interrupts),
          races_(std::ranges::any_of(laws,
                                     [](const search::LawResult* law) {
                                         return law->counterexample->confirmed.how ==
                                                search::Confirmation::schedule;
                                     })),
          reports_(laws.size()) {}

    /// The laws before `end` that are left, by all of the kernels at once.
    void round(std::size_t end, const std::vector<search::Kernel*>& kernels) {
        end_ = std::min(end, laws_.size());
        named_ = diagnosis::named_in(reports_);
        std::vector<std::thread> others;
        for (std::size_t n = 1; n < kernels.size(); ++n)
            others.emplace_back([this, kernel = kernels[n]] { work(*kernel); });
        work(*kernels.front());
        for (std::thread& other : others) other.join();
        next_ = end_;
        if (error_) std::rethrow_exception(error_);
    }

    std::vector<diagnosis::CounterexampleReport> take() { return std::move(reports_); }

private:
    void work(search::Kernel& kernel) noexcept {
        try {
            for (std::size_t i = next_++; i < end_; i = next_++)
                reports_[i] = is_over() ? unexplained(*laws_[i], "the run was interrupted")
                                        : explained(*laws_[i], kernel, races_, named_);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!error_) error_ = std::current_exception();
        }
    }

    bool is_over() {
        constexpr std::chrono::seconds more{10};
        const int interrupts = interrupts_;
        if (interrupts != 1) return interrupts > 1;
        const std::lock_guard lock(mutex_);
        const auto now = std::chrono::steady_clock::now();
        if (!interrupted_) interrupted_ = now;
        return now - *interrupted_ > more;
    }

    const std::vector<const search::LawResult*>& laws_;
    const std::atomic<int>& interrupts_;
    const bool races_;
    std::optional<std::chrono::steady_clock::time_point> interrupted_;
    std::vector<diagnosis::CounterexampleReport> reports_;
    diagnosis::NamedDeviations named_;  ///< of the rounds before
    std::size_t end_ = 0;               ///< of this round
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace

std::vector<diagnosis::CounterexampleReport> explanations(
    const std::vector<const search::LawResult*>& laws, search::Kernel& kernel,
    const search::KernelFactory& another, int jobs, const std::atomic<int>& interrupts) {
    const auto wanted = std::min(static_cast<std::size_t>(std::max(jobs, 1)), laws.size());
    std::vector<std::unique_ptr<search::Kernel>> more;
    std::vector<search::Kernel*> kernels{&kernel};
    try {
        while (kernels.size() < wanted) kernels.push_back(more.emplace_back(another()).get());
    } catch (const std::exception&) {
        // A kernel that cannot be had a second time leaves all the work to the first.
    }
    Explaining explaining(laws, interrupts);
    constexpr std::size_t first_round = 2;  // each later one has as many as all before, and two
    for (std::size_t done = 0, end = first_round; done < laws.size(); done = end, end += end + 2)
        explaining.round(end, kernels);
    return explaining.take();
}

}  // namespace attest::ci
