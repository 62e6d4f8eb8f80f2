#include "properties/search/limited_kernel.hpp"

namespace attest::search {

namespace {

// Kept of a process's past. What shows only after more is not repeated in reasonable time.
constexpr std::size_t past_max = 1024;

constexpr const char* not_chosen = "no shape of this run (--shapes)";

// Of limits that are sums.
constexpr std::chrono::milliseconds rounding{1};

bool process_is_lost(const worker::CallResult& result) {
    return result.outcome == worker::Outcome::crash || result.outcome == worker::Outcome::hang ||
           result.outcome == worker::Outcome::memory || result.outcome == worker::Outcome::slow ||
           result.outcome == worker::Outcome::no_memory;
}

}  // namespace

int patience_of(const kernel::KernelSpec& kernel) noexcept {
    const bool compiled = kernel.interface == kernel::KernelInterface::builtin ||
                          kernel.interface == kernel::KernelInterface::c_abi;
    return compiled ? compiled_patience : 6;
}

/// What is under way began in the old process, and in a repetition would be there too.
void LimitedKernel::is_fresh() {
    fresh_ = true;
    if (judged_.size() > 1) judged_.erase(judged_.begin(), judged_.end() - 1);
}

bool LimitedKernel::supports(const Problem& problem, std::string* reason) {
    if (shapes_ && !shapes_->has(problem)) {
        if (reason != nullptr) *reason = not_chosen;
        return false;
    }
    kernel_->set_silence(limit_.silence(0, true));
    kernel_->set_timeout(limit_.hangs() ? limit_.of(0, fresh_) : limit_.patient(0));
    try {
        return kernel_->supports(problem, reason);
    } catch (const worker::KernelDied& died) {
        if (fresh_ && died.result.outcome == worker::Outcome::hang) limit_.saw_hang();
        is_fresh();
        throw;
    }
}

worker::CallResult LimitedKernel::forward(const Problem& problem, const TensorSet& inputs) {
    return timed(problem, products_of(problem), [&] { return kernel_->forward(problem, inputs); });
}

/// It waits for one call of the other thread, too.
worker::CallResult LimitedKernel::forward_beside(const Problem& problem, const TensorSet& inputs) {
    return timed(problem, 2 * products_of(problem),
                 [&] { return kernel_->forward_beside(problem, inputs); });
}

/// Two products of forward again, and three of its own.
worker::CallResult LimitedKernel::backward(const Problem& problem, const TensorSet& inputs,
                                           const std::vector<Role>& wanted) {
    return timed(problem, 2.5 * products_of(problem),
                 [&] { return kernel_->backward(problem, inputs, wanted); });
}

worker::CallResult LimitedKernel::timed(const Problem& problem, double products,
                                        const std::function<worker::CallResult()>& call) {
    if (shapes_ && !shapes_->has(problem)) {
        worker::CallResult refused;
        refused.outcome = worker::Outcome::refused;
        refused.reason = not_chosen;
        return refused;
    }
    if (shapes_) shapes_->visit(problem);
    // A limit that decides has room for a first call.
    const bool starts = fresh_ && own_ < limit_.patient(0);
    const auto common = limit_.of(products, starts);
    const auto limit = own_.count() > 0 ? own_ + common - limit_.of(0, false) : common;
    const bool deciding = own_.count() > 0;
    kernel_->set_silence(limit_.silence(products, deciding));
    kernel_->set_timeout(limit);
    worker::CallResult result = call();
    if (result.outcome == worker::Outcome::ok) limit_.saw_good(result.seconds, products, fresh_);
    if (result.outcome == worker::Outcome::hang) {
        if (limit_.too_many(products)) {
            result.outcome = worker::Outcome::slow;
            result.reason = "a call " + limit_.too_slow(limit, products);
            result.fault.reset();
        } else if (fresh_ && deciding && limit + rounding >= limit_.patient(products)) {
            limit_.saw_hang();
        }
    }
    const bool called = result.outcome != worker::Outcome::refused;
    if (process_is_lost(result))
        is_fresh();
    else if (called)
        fresh_ = false;
    return result;
}

void LimitedKernel::restart() {
    kernel_->set_timeout(limit_.full());
    kernel_->restart();
    is_fresh();
}

void LimitedKernel::judging(const Judging& judging) {
    judged_.push_back(std::make_shared<const Judging>(judging));
    if (judged_.size() > past_max) judged_.pop_front();
}

Past LimitedKernel::past() const {
    return judged_.empty() ? Past{} : Past(judged_.begin(), judged_.end() - 1);
}

}  // namespace attest::search
