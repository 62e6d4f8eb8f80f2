// The share of weights that a kernel drops, where it is not the one that was asked for.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/dropped_forward.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/law/kept_count.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::diagnosis {

namespace {

constexpr const char *in_bytes = "dropout_rate_8_bits",
                     *says_in_bytes = "rates of dropout in steps of 1/256",
                     *for_bytes = "any rate; by design? declare numerics: dropout_levels 256";

constexpr OtherRate rates[] = {
    {"dropout_keeps_p", "1-p of the weights dropped, p kept", [](double p) { return 1 - p; }},
    {in_bytes, says_in_bytes, [](double p) { return std::floor(p * 256) / 256; }, for_bytes},
    {in_bytes, says_in_bytes, [](double p) { return std::round(p * 256) / 256; }, for_bytes},
    {in_bytes, says_in_bytes, [](double p) { return std::ceil(p * 256) / 256; }, for_bytes},
    // A byte is drawn, and kept up to 255 (1-p).
    {in_bytes, says_in_bytes, [](double p) { return 1 - (std::floor((1 - p) * 255) + 1) / 256; },
     for_bytes},
    {"dropout_nothing", "no weight dropped", [](double) { return 0.0; }},
    {"dropout_everything", "every weight dropped", [](double) { return 1.0; }},
    {"dropout_twice", "weights dropped twice over: 1-(1-p)^2 of them",
     [](double p) { return p * (2 - p); }},
    {"dropout_of_both", "weights dropped at the rate p^2", [](double p) { return p * p; }},
    {"dropout_half_rate", "weights dropped at half the rate", [](double p) { return p / 2; }},
    {"dropout_double_rate", "weights dropped at twice the rate",
     [](double p) { return std::min(2 * p, 1.0); }},
};

/// What a count that agrees is left to chance with, all rates tried together: 1 %.
double agreeing() {
    return std::log(2 * 100.0 * static_cast<double>(std::size(rates)));
}

double surprise(const DroppedCount& count, double chance) {
    return law::KeptCount{"", chance, count.of, count.dropped}.surprise();
}

/// Masks of one seed after another, of a shape in which a call says much, where the kernel takes
/// it.
std::optional<DroppedCount> count_dropped(search::Kernel& kernel, const Case& tried) try {
    constexpr std::int64_t calls_max = 160;
    Case c{tried.problem, {}};
    Problem& p = c.problem;
    p.want_grad = p.lse_grad = false;
    const auto taken = [&kernel](const Problem& more) {
        return !find_contradiction(more) && kernel.supports(more, nullptr);
    };
    p = law::with_more_keys(p, taken).value_or(canonical(p));
    require_valid(p);
    if (p.dropout.p == 0 || law::reading_calls(p) > calls_max) return std::nullopt;
    const search::KernelTrial trial(kernel, c);
    const TensorSet inputs = make_inputs(c);
    DroppedCount count{p.dropout.p};
    // That none of so many is dropped, or none kept, has a chance of exp(-40).
    const auto cells_enough =
        static_cast<std::int64_t>(2048 + 40 / std::min(p.dropout.p, 1 - p.dropout.p));
    const std::int64_t masks = calls_max / law::reading_calls(p);
    for (std::int64_t n = 0; n < masks && count.of < cells_enough; ++n) {
        const law::KeptMask mask =
            law::read_mask(trial, law::reseeded(p, static_cast<std::uint64_t>(n)), inputs);
        count.of += mask.cells;
        count.dropped += mask.dropped();
    }
    return count;
} catch (const search::NoAnswer&) {
    return std::nullopt;
} catch (const BadInput&) {
    return std::nullopt;
}

}  // namespace

std::span<const OtherRate> other_rates() {
    return rates;
}

std::optional<Explanation> dropout_at_another_rate(const std::vector<DroppedCount>& counts) {
    const double refuting = std::log(2 * static_cast<double>(counts.size()) / law::kept_rate);
    const bool wrong = std::ranges::any_of(
        counts, [&](const DroppedCount& c) { return !(surprise(c, c.rate) <= refuting); });
    if (!wrong) return std::nullopt;
    std::optional<Explanation> found;
    double least = infinite;
    for (const OtherRate& rate : other_rates()) {
        double sum = 0;
        for (const DroppedCount& c : counts) sum = std::max(sum, surprise(c, rate.of(c.rate)));
        if (!(sum <= agreeing()) || !(sum < least)) continue;
        least = sum;
        found = Explanation{rate.id, rate.says, rate.declared};
    }
    if (!found) return found;
    std::int64_t weights = 0;
    for (const DroppedCount& c : counts) weights += c.of;
    found->says += fmt::format(" (the share of {} weights)", weights);
    return found;
}

std::optional<Explanation> dropout_at_another_rate(search::Kernel& kernel,
                                                   const search::Counterexample& counterexample,
                                                   const std::vector<search::CaseRecord>& records) {
    constexpr std::size_t rates_max = 6;
    std::vector<Case> cases{counterexample.smallest, counterexample.found.tried};
    for (const search::CaseRecord& record : records) cases.push_back(record.tried);
    std::vector<DroppedCount> counts;
    for (const Case& c : cases) {
        if (counts.size() == rates_max) break;
        const double p = c.problem.dropout.p;
        if (std::ranges::find(counts, p, &DroppedCount::rate) != counts.end()) continue;
        if (const auto count = count_dropped(kernel, c)) counts.push_back(*count);
    }
    return dropout_at_another_rate(counts);
}

}  // namespace attest::diagnosis
