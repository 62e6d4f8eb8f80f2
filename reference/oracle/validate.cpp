// Measures the oracle against itself and prints one table: how far the certified errors are from
// what 50 digits say, how often a row needs wider arithmetic, whether any correct kernel violates a
// bound, and what each arithmetic costs. `validate_oracle [seconds]`; exit 1 on any violation.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "reference/oracle/emulated_kernel.hpp"
#include "reference/oracle/other_bounds.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest {
namespace {

constexpr std::int64_t len_max = 300, dim_max = 128;

double now() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Ratios {
    std::int64_t elements = 0, violated = 0, open = 0;
    std::vector<double> ratio;
    void add(double value, double limit) {
        ++elements;
        if (!std::isfinite(limit)) {
            ++open;
            return;
        }
        if (!(value <= limit)) ++violated;
        ratio.push_back(limit > 0 ? value / limit : 0);
    }
    double quantile(double part) {
        if (ratio.empty()) return 0;
        std::sort(ratio.begin(), ratio.end());
        return ratio[static_cast<std::size_t>(part * static_cast<double>(ratio.size() - 1))];
    }
};

void print_ratios(const char* what, Ratios& r) {
    fmt::print("  {:<34}{:>11}{:>10}{:>11}  {:>9.2g}{:>9.2g}{:>9.2g}\n", what, r.elements,
               r.violated, r.open, r.quantile(0.5), r.quantile(0.999), r.quantile(1));
}

void compare(const std::vector<ExpectedElement>& truth, const std::vector<ExpectedElement>& seen,
             Ratios& out) {
    for (std::size_t x = 0; x < truth.size(); ++x) {
        if (!std::isfinite(truth[x].value) || !std::isfinite(truth[x].bound)) continue;
        const double both = truth[x].error + seen[x].error;
        out.add(std::abs(truth[x].value - seen[x].value), both);
    }
}

/// |value - value of 50 digits| against both certified errors.
std::int64_t certified_errors(double seconds) {
    Ratios plain, filtered, wide;
    std::uint64_t number = 100000;
    for (const double end = now() + seconds; now() < end; ++number) {
        const RandomCase c = random_case(number, 80, dim_max);
        const Problem& p = c.subject.problem;
        const TensorSet inputs = make_inputs(c.subject);
        const Expected truth = attend(p, c.dialect, {}, inputs, Arithmetic::exact);
        const auto against = [&](Arithmetic arithmetic, Ratios& out) {
            const Expected seen = attend(p, c.dialect, {}, inputs, arithmetic);
            compare(truth.output, seen.output, out);
            compare(truth.lse, seen.lse, out);
        };
        against(Arithmetic::plain_double, plain);
        against(Arithmetic::filtered, filtered);
        against(Arithmetic::double_double, wide);
    }
    fmt::print(
        "certified error against 50 digits    elements  violated  infinite     median"
        "    p99.9      max\n");
    print_ratios("plain double", plain);
    print_ratios("filtered", filtered);
    print_ratios("double-double", wide);
    return plain.violated + filtered.violated + wide.violated;
}

struct Judged {
    std::int64_t elements = 0, violated = 0, undecided = 0;
    void add(const std::vector<double>& seen, const std::vector<ExpectedElement>& expected,
             Precision format) {
        for (std::size_t x = 0; x < seen.size(); ++x) {
            if (!std::isfinite(expected[x].bound)) continue;
            ++elements;
            const Agreement a = judge(seen[x], expected[x], format);
            violated += a == Agreement::disagrees ? 1 : 0;
            undecided += a == Agreement::undecided ? 1 : 0;
        }
    }
};

/// Correct kernels against bounds (a), (s) and (b): what is violated is a false positive.
std::int64_t false_positives(double seconds) {
    constexpr Precision formats[] = {Precision::f64, Precision::f32, Precision::f16,
                                     Precision::bf16};
    Judged a[4], s[4], b[4];
    std::uint64_t number = 200000;
    for (const double end = now() + seconds; now() < end; ++number) {
        RandomCase c = random_case(number, len_max, dim_max);
        Problem& p = c.subject.problem;
        p.splits = 1;
        const std::size_t at =
            static_cast<std::size_t>(std::find(formats, formats + 4, p.format_o) - formats);
        Emulation how;
        how.tile = std::int64_t{4} << (number % 4 * 2);
        how.aligned_tiles = true;
        how.round_weights = at >= 2;
        how.sum_rounded = how.round_weights && number % 3 == 0;
        how.base_two = number % 5 == 0;
        how.lanes = number % 7 == 0;
        const TensorSet inputs = make_inputs(c.subject);
        const Observed seen = emulate(c.subject, c.dialect, inputs, how);
        const Numerics n = declared(how);
        const Precision lse = at == 0 ? Precision::f64 : Precision::f32;
        const Expected by_a = attend(p, c.dialect, n, inputs);
        a[at].add(seen.output, by_a.output, p.format_o);
        a[at].add(seen.lse, by_a.lse, lse);
        // 1e-12 an element: a chance of 1e-5 in 10^7 elements.
        const double delta = std::pow(10.0, -12);
        b[at].add(seen.output, attend_probable(p, c.dialect, n, inputs, delta).output, p.format_o);
        if (const auto by_s = attend_structure(p, c.dialect, n, inputs, TileOrder::ascending)) {
            s[at].add(seen.output, by_s->output, p.format_o);
            s[at].add(seen.lse, by_s->lse, lse);
        }
    }
    fmt::print("\nbounds against correct kernels      format    elements  violated  undecided\n");
    std::int64_t violated = 0;
    const auto row = [&](const char* what, const Judged& j, Precision format) {
        if (j.elements == 0) return;
        violated += j.violated;
        fmt::print("  {:<34}{:<8}{:>10}{:>10}{:>11}\n", what, name(format), j.elements, j.violated,
                   j.undecided);
    };
    for (std::size_t at = 0; at < 4; ++at) {
        row("(a) worst case", a[at], formats[at]);
        row("(s) declared structure", s[at], formats[at]);
        row("(b) random rounding, 1e-12", b[at], formats[at]);
    }
    return violated;
}

/// Rows that double alone does not settle.
void escalation(double seconds) {
    std::int64_t rows = 0, open = 0;
    std::uint64_t number = 300000;
    for (const double end = now() + seconds; now() < end; ++number) {
        RandomCase c = random_case(number, len_max, dim_max);
        Problem& p = c.subject.problem;
        if (p.format_q == Precision::f64) continue;
        const Prepared call = prepare(p, c.dialect, make_inputs(c.subject));
        RowRunner runner(call, call, resolve(p, Numerics{}), lanes_in_double(call));
        Expected out;
        out.lse.resize(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q));
        out.row_empty.resize(out.lse.size());
        out.output.resize(out.lse.size() * static_cast<std::size_t>(call.dim_v));
        for (std::size_t row = 0; row < out.lse.size(); ++row, ++rows)
            open += runner.row(static_cast<std::int64_t>(row), out) <= settled ? 0 : 1;
    }
    fmt::print("\nrows of f32, f16 and bf16 problems {:>10}, left open by double {:>8} ({:.2g})\n",
               rows, open, rows == 0 ? 0 : static_cast<double>(open) / static_cast<double>(rows));
}

double seconds_of(const Problem& p, const TensorSet& inputs, Arithmetic arithmetic) {
    int runs = 0;
    const double start = now();
    do {
        attend(p, {}, {}, inputs, arithmetic);
        ++runs;
    } while (now() - start < 0.25);
    return (now() - start) / runs;
}

/// GMAC/s with bound (a) included; a MAC is one of 2 len_q len_kv dim.
void throughput() {
    fmt::print("\nGMAC/s, causal off, f32      filtered   lanes in   definition in     exact\n");
    fmt::print("                                          dbl-dbl  double  dbl-dbl\n");
    for (const auto& [len, dim] : {std::pair{16, 16}, {64, 64}, {128, 64}, {512, 64}}) {
        Case c;
        Problem& p = c.problem;
        p.len_q = p.len_kv = len;
        p.dim_qk = dim;
        const TensorSet inputs = make_inputs(c);
        Case f64 = c;
        f64.problem.format_q = f64.problem.format_kv = f64.problem.format_o = Precision::f64;
        const TensorSet wide = make_inputs(f64);
        const double macs = 2.0 * len * len * dim / std::pow(10.0, 9);
        const auto rate = [&](Arithmetic a) { return macs / seconds_of(p, inputs, a); };
        const double exact = len > 64 ? 0 : rate(Arithmetic::exact);
        fmt::print("  T{:<5} d{:<18}{:>8.2f}{:>11.2f}{:>8.2f}{:>9.2f}{:>10.4f}\n", len, dim,
                   rate(Arithmetic::filtered),
                   macs / seconds_of(f64.problem, wide, Arithmetic::filtered),
                   rate(Arithmetic::plain_double), rate(Arithmetic::double_double), exact);
    }
}

}  // namespace
}  // namespace attest

int main(int count, char** arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 20;
    const std::int64_t wrong = attest::certified_errors(seconds / 2);
    const std::int64_t false_alarms = attest::false_positives(seconds / 2);
    attest::escalation(seconds / 8);
    attest::throughput();
    return wrong + false_alarms == 0 ? 0 : 1;
}
