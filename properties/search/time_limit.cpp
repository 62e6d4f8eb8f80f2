#include "properties/search/time_limit.hpp"

#include <algorithm>
#include <cmath>

namespace attest::search {

namespace {

void raise_to(std::atomic<double>& most, double seconds) noexcept {
    double known = most;
    while (seconds > known && !most.compare_exchange_weak(known, seconds)) {
    }
}

/// "45 s", "12 m", "3 h": as --timeout takes it, rounded up.
std::string duration_text(double seconds) {
    constexpr double minute = 60, hour = 3600;
    const auto [unit, word] = seconds <= 2 * minute ? std::pair{1.0, "s"}
                              : seconds <= 2 * hour ? std::pair{minute, "m"}
                                                    : std::pair{hour, "h"};
    return std::to_string(static_cast<std::int64_t>(std::ceil(seconds / unit))) + word;
}

}  // namespace

double products_of(const Problem& problem) noexcept {
    return static_cast<double>(score_count(problem)) *
           static_cast<double>(problem.dim_qk + value_dim(problem));
}

/// By the slowest large call seen; before there is one, by a kernel that nobody tuned: a compiled
/// loop makes a thousand million products a second, an interpreter a tenth of that with arrays.
double TimeLimit::expected(double products) const noexcept {
    constexpr double untuned = 1e-8;  // seconds: the interpreter's
    const double known = slowest_product_;
    return products * (known > 0 ? known : untuned);
}

/// Four times what is expected, for a call slower than those seen; no more than thirty full limits,
/// or a kernel that hangs in a very large case would take hours to tell.
double TimeLimit::arithmetic(double products) const noexcept {
    constexpr double patience = 4, full_limits_max = 30;
    return std::min(patience * expected(products), full_limits_max * full_);
}

/// Four times the longest start seen; before there is one, up to the patient limit.
double TimeLimit::start_up() const noexcept {
    constexpr double patience = 4;
    const double known = longest_start_;
    if (known > 0) return patience * known;
    return hangs_ ? 0 : (patience_ - 1) * full_;
}

/// 20 times the longest good call, which a loaded machine has stretched already; a fifth of a
/// second where good calls are too short to measure by, and no more than one: every law of a kernel
/// that hangs waits this long. But four times the longest good call at the least, or one slow
/// moment would make all that a slow kernel does a hang.
double TimeLimit::now() const noexcept {
    if (!hangs_) return full_;
    // The numbers of the sentence above.
    constexpr double generosity = 20, floor_seconds = 0.2, most_seconds = 1, patience = 4;
    const double good = longest_good_;
    return std::min(
        std::max(std::clamp(generosity * good, floor_seconds, most_seconds), patience * good),
        full_.load());
}

TimeLimit::milliseconds TimeLimit::of(double products, bool first) const noexcept {
    return to_milliseconds(now() + arithmetic(products) + (first ? start_up() : 0));
}

TimeLimit::milliseconds TimeLimit::patient(double products) const noexcept {
    return to_milliseconds(patience_ * full_ + arithmetic(products));
}

/// A quarter of the limit, and six tenths where it decides, of compiled code; twice that where
/// calls compile, which may wait for one another; and never near what a good call has taken, nor
/// below what was stated where it decides. On top, until the kernel's speed is known, what one
/// takes that makes a million products a second: one built with every check, or in a language that
/// is interpreted.
TimeLimit::milliseconds TimeLimit::silence(double products, bool deciding) const noexcept {
    // The numbers of the sentences above.
    constexpr double share = 0.25, share_deciding = 0.6, slow_product = 1e-6, patience = 4;
    const double times = patience_ > compiled_patience ? 2 : 1;
    const double own = times * (deciding ? share_deciding : share) * full_;
    const double good = patience * std::max(longest_good_.load(), longest_start_.load());
    const double unknown = slowest_product_ > 0 ? 0 : slow_product * products;
    const double stated = deciding ? silence_ : 0;
    return to_milliseconds(std::max({own, good, stated}) + unknown + arithmetic(products));
}

TimeLimit::milliseconds TimeLimit::to_confirm() const noexcept {
    constexpr double longer = 10;
    return to_milliseconds(std::min(longer * now(), full_.load()));
}

std::string TimeLimit::too_slow(milliseconds waited, double products) const {
    const double takes = expected(products);
    constexpr double margin = 2;
    return "did not return within " + duration_text(seconds_of(waited)) +
           "; at the speed of its other calls it takes about " + duration_text(takes) +
           ": --timeout " + duration_text(margin * takes) + " waits for it";
}

void TimeLimit::saw_good(double seconds, double products, bool first) noexcept {
    // Below that the time of a call is that of calling.
    constexpr double many_products = 1e6;
    raise_to(first ? longest_start_ : longest_good_, seconds);
    if (!first && products >= many_products) raise_to(slowest_product_, seconds / products);
}

void TimeLimit::was_short(double seconds) noexcept {
    constexpr double longer = 4;
    raise_to(full_, longer * seconds);
}

}  // namespace attest::search
