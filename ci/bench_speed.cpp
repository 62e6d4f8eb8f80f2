#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <vector>

#include "ci/bench.hpp"
#include "ci/plain_attention.hpp"
#include "reference/oracle/collapsed.hpp"
#include "reference/oracle/device_oracle.hpp"
#include "reference/oracle/instruction_set.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::ci {

namespace {

constexpr int rounds = 5;              // other work on the machine hits one and not the next
constexpr double turn_seconds = 0.08;  // of one contender in one round

double seconds_of(const std::function<void()>& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The best time of each contender, who take turns.
std::vector<double> race(const std::vector<std::function<void()>>& contenders) {
    std::vector<double> best(contenders.size(), infinite);
    for (int round = 0; round < rounds; ++round)
        for (std::size_t n = 0; n < contenders.size(); ++n)
            for (double spent = 0; spent < turn_seconds;) {
                const double seconds = seconds_of(contenders[n]);
                spent += seconds;
                best[n] = std::min(best[n], seconds);
            }
    return best;
}

Case square_case(std::int64_t len, std::int64_t dim, Precision format) {
    Case c;
    c.problem.len_q = c.problem.len_kv = len;
    c.problem.dim_qk = dim;
    c.problem.format_q = c.problem.format_kv = c.problem.format_o = format;
    return c;
}

/// Seconds of a thing done once, the best of the rounds.
double best_of(const std::function<void()>& run) {
    double best = infinite;
    for (int round = 0; round < rounds; ++round) best = std::min(best, seconds_of(run));
    return best;
}

}  // namespace

SpeedRow measure_speed(std::int64_t len, std::int64_t dim) {
    const Case narrow = square_case(len, dim, Precision::f32);
    const Case wide = square_case(len, dim, Precision::f64);
    const TensorSet inputs = make_inputs(narrow), wide_inputs = make_inputs(wide);
    const std::vector<double> q = inputs[Role::q].to_doubles(), k = inputs[Role::k].to_doubles();
    const std::vector<double> v = inputs[Role::v].to_doubles();
    std::vector<double> out(q.size());
    const PlainCall call{.q = q.data(),
                         .k = k.data(),
                         .v = v.data(),
                         .len_q = len,
                         .len_kv = len,
                         .dim = dim,
                         .scale = effective_scale(narrow.problem),
                         .out = out.data()};
    const PlainAttention plain = plain_attention(oracle::instruction_set());
    const std::vector<double> best = race({
        [&] { plain(call); },
        [&] { oracle::attend(narrow.problem, {}, {}, inputs); },
        [&] { oracle::attend(wide.problem, {}, {}, wide_inputs); },
    });
    // The baseline computes what the oracle does, or the comparison says nothing.
    const bound::Expected truth = oracle::attend(narrow.problem, {}, {}, inputs);
    for (std::size_t x = 0; x < out.size(); ++x)
        require(std::abs(out[x] - truth.output[x].value) <= 0x1p-40,
                "plain attention computes attention");
    // A few rows stand for all in 50 digits: its time is the same for each.
    constexpr std::int64_t sampled = 8;
    std::vector<std::int64_t> rows(sampled);
    std::iota(rows.begin(), rows.end(), 0);
    const double exact =
        seconds_of([&] {
            oracle::attend_rows(narrow.problem, {}, {}, inputs, rows, oracle::Arithmetic::exact);
        }) *
        static_cast<double>(len) / sampled;
    return {len, best[0], best[1], best[2], exact};
}

LongSpeed measure_long(std::int64_t dim) {
    constexpr std::int64_t len = 131072, rows_sampled = 16, classes = 64;
    Case c = square_case(len, dim, Precision::f32);
    TensorSet inputs = make_inputs(c);
    std::vector<std::int64_t> rows(rows_sampled);
    for (std::int64_t r = 0; r < rows_sampled; ++r)
        rows[static_cast<std::size_t>(r)] = r * (len / rows_sampled) + r;
    const double sampled = best_of([&] {
        oracle::attend_rows(c.problem, {}, {}, inputs, rows, oracle::Arithmetic::filtered);
    });
    oracle::collapse_keys(inputs, classes, 1);
    const auto collapsed = [&] {
        require(oracle::attend_collapsed(c.problem, {}, {}, inputs).has_value(),
                "few classes of keys");
    };
    const double every = best_of(collapsed);
    c.problem.mask.causal = true;
    const double causal = best_of(collapsed);
    return {len, dim, rows_sampled, classes, sampled, every, causal};
}

DeviceSpeed measure_device(std::int64_t dim) {
    oracle::DeviceRows* device = oracle::device_in_use();
    if (device == nullptr) {
        const std::string why = oracle::device_state().why_not;
        return {.name = {}, .not_run = why.empty() ? "there is none" : why};
    }
    constexpr std::int64_t len = 16384, rows_sampled = 16;
    const Case c =
        square_case(len, dim, Precision::f64);  // where the filter begins in double-double
    const TensorSet inputs = make_inputs(c);
    std::vector<std::int64_t> rows(rows_sampled);
    std::iota(rows.begin(), rows.end(), 0);
    const double there =
        best_of([&] { oracle::attend_on_device(*device, c.problem, {}, {}, inputs, {}); });
    const double here = best_of([&] {
        oracle::attend_rows(c.problem, {}, {}, inputs, rows, oracle::Arithmetic::filtered);
    });
    return {device->name(), "", len, dim, rows_sampled, there, here};
}

}  // namespace attest::ci
