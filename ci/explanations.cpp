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
    Explaining(const std::vector<const search::LawResult*>& laws, const ExplanationLimits& limits)
        : laws_(laws),
          limits_(limits),
          races_(std::ranges::any_of(laws,
                                     [](const search::LawResult* law) {
                                         return law->counterexample->confirmed.how ==
                                                search::Confirmation::schedule;
                                     })),
          reports_(laws.size()) {}

    void work(search::Kernel& kernel) noexcept {
        try {
            for (std::size_t i = next_++; i < laws_.size(); i = next_++) {
                const char* over = why_over();
                reports_[i] = over != nullptr ? unexplained(*laws_[i], over)
                                              : explained(*laws_[i], kernel, races_);
            }
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
    /// nullptr: it is not.
    const char* why_over() {
        constexpr std::chrono::seconds more{10};
        constexpr double share = 0.5;
        const auto now = std::chrono::steady_clock::now();
        if (const int interrupts = limits_.interrupts; interrupts > 0) {
            const std::lock_guard lock(mutex_);
            if (!interrupted_) interrupted_ = now;
            if (interrupts > 1 || now - *interrupted_ > more) return "the run was interrupted";
        }
        const std::chrono::duration<double> spent = now - begin_;
        const bool late = limits_.run_seconds && spent.count() > share * *limits_.run_seconds;
        return late ? "the run's time was over" : nullptr;
    }

    const std::vector<const search::LawResult*>& laws_;
    const ExplanationLimits& limits_;
    const bool races_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::optional<std::chrono::steady_clock::time_point> interrupted_;
    std::vector<diagnosis::CounterexampleReport> reports_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace

std::vector<diagnosis::CounterexampleReport> explanations(
    const std::vector<const search::LawResult*>& laws, search::Kernel& kernel,
    const search::KernelFactory& another, const ExplanationLimits& limits) {
    Explaining explaining(laws, limits);
    std::vector<std::thread> others;
    const auto wanted = std::min(static_cast<std::size_t>(std::max(limits.jobs, 1)), laws.size());
    for (std::size_t i = 1; i < wanted; ++i) others.emplace_back([&] { explaining.work(another); });
    explaining.work(kernel);
    for (std::thread& other : others) other.join();
    return explaining.take();
}

}  // namespace attest::ci
