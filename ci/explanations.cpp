#include "ci/explanations.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace attest::ci {

namespace {

diagnosis::CounterexampleReport unexplained(const search::LawResult& law, const char* why) {
    diagnosis::CounterexampleReport report = diagnosis::counterexample_report(law, nullptr);
    if (!report.died()) report.diagnosis.skipped = why;
    return report;
}

diagnosis::CounterexampleReport explained(const search::LawResult& law, search::Kernel& kernel,
                                          bool races) {
    try {
        return diagnosis::counterexample_report(law, &kernel, races);
    } catch (const worker::KernelDied&) {
    } catch (const worker::KernelGone&) {
    }
    return unexplained(law, "the kernel can no longer be asked");
}

/// The laws are taken one after the other by whoever is free.
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

    void work(search::Kernel& kernel) noexcept {
        try {
            for (std::size_t i = next_++; i < laws_.size(); i = next_++)
                reports_[i] = is_over() ? unexplained(*laws_[i], "the run was interrupted")
                                        : explained(*laws_[i], kernel, races_);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!error_) error_ = std::current_exception();
        }
    }

    /// A kernel that cannot be had a second time leaves all the work to the first.
    void work(const search::KernelFactory& another) noexcept {
        std::unique_ptr<search::Kernel> kernel;
        try {
            kernel = another();
        } catch (const std::exception&) {
            return;
        }
        work(*kernel);
    }

    std::vector<diagnosis::CounterexampleReport> take() {
        if (error_) std::rethrow_exception(error_);
        return std::move(reports_);
    }

private:
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
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace

std::vector<diagnosis::CounterexampleReport> explanations(
    const std::vector<const search::LawResult*>& laws, search::Kernel& kernel,
    const search::KernelFactory& another, int jobs, const std::atomic<int>& interrupts) {
    Explaining explaining(laws, interrupts);
    std::vector<std::thread> others;
    const auto wanted = std::min(static_cast<std::size_t>(std::max(jobs, 1)), laws.size());
    for (std::size_t i = 1; i < wanted; ++i) others.emplace_back([&] { explaining.work(another); });
    explaining.work(kernel);
    for (std::thread& other : others) other.join();
    return explaining.take();
}

}  // namespace attest::ci
