#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <vector>

#include "ci/bench.hpp"
#include "ci/commands.hpp"
#include "ci/plain_attention.hpp"
#include "reference/oracle/collapsed.hpp"
#include "reference/oracle/device_oracle.hpp"
#include "reference/oracle/instruction_set.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::ci {

namespace {

constexpr std::int64_t dim = 64;
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

Case square_case(std::int64_t len, Precision format) {
    Case c;
    c.problem.len_q = c.problem.len_kv = len;
    c.problem.dim_qk = dim;
    c.problem.format_q = c.problem.format_kv = c.problem.format_o = format;
    return c;
}

std::string speed_line(std::int64_t len) {
    const Case narrow = square_case(len, Precision::f32), wide = square_case(len, Precision::f64);
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
    constexpr double giga = 1'000'000'000;
    const double macs = 2 * static_cast<double>(len * len * dim) / giga;
    return fmt::format("  {:<8}{:>9.2f}{:>10.2f}{:>8.2f}{:>10.2f}{:>8.2f}{:>11.5f}{:>13.0f}\n", len,
                       macs / best[0], macs / best[1], best[1] / best[0], macs / best[2],
                       best[2] / best[0], macs / exact, exact / best[1]);
}

/// Seconds of a thing done once, the best of the rounds.
double best_of(const std::function<void()>& run) {
    double best = infinite;
    for (int round = 0; round < rounds; ++round) best = std::min(best, seconds_of(run));
    return best;
}

std::string long_lines() {
    constexpr std::int64_t len = 131072, rows_sampled = 16, classes = 64;
    Case c = square_case(len, Precision::f32);
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
    return fmt::format(
        "\nlength {}, d {}, seconds\n  {} sampled rows {:>24.3f}\n  every row, {} classes of keys"
        "{:>11.3f}\n  the same, causal {:>24.3f}\n",
        len, dim, rows_sampled, sampled, classes, every, causal);
}

/// Double-double on the GPU in every row, beside the CPU's in a few.
std::string device_lines() {
    oracle::DeviceRows* device = oracle::device_in_use();
    if (device == nullptr)
        return fmt::format("\nevery row on a GPU: not run: {}\n", oracle::device_state().why_not);
    constexpr std::int64_t len = 16384, rows_sampled = 16;
    const Case c = square_case(len, Precision::f64);  // where the filter begins in double-double
    const TensorSet inputs = make_inputs(c);
    std::vector<std::int64_t> rows(rows_sampled);
    std::iota(rows.begin(), rows.end(), 0);
    const double there =
        best_of([&] { oracle::attend_on_device(*device, c.problem, {}, {}, inputs, {}); });
    const double here = best_of([&] {
        oracle::attend_rows(c.problem, {}, {}, inputs, rows, oracle::Arithmetic::filtered);
    });
    constexpr double giga = 1'000'000'000;
    const double row_macs = 2.0 * static_cast<double>(len * dim) / giga;
    const double gpu = row_macs * static_cast<double>(len) / there;
    const double cpu = row_macs * static_cast<double>(rows_sampled) / here;
    return fmt::format(
        "\nevery row on {}, length {}: {:.3f} s, {:.2f} GMAC/s, {:.0f} times one core of this "
        "CPU\n",
        device->name(), len, there, gpu, gpu / cpu);
}

}  // namespace

void bench_speed() {
    write_out(fmt::format(
        "\nspeed, d {}, GMAC/s; x is the time over plain attention's (Eigen, double, no bound)\n"
        "  length      plain  filtered       x   dbl-dbl       x  50 digits  over filtered\n",
        dim));
    for (const std::int64_t len : {64, 128, 256, 512, 1024}) write_out(speed_line(len));
    write_out(long_lines());
    write_out(device_lines());
}

}  // namespace attest::ci
