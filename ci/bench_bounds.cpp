#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "ci/bench.hpp"
#include "ci/commands.hpp"
#include "reference/oracle/emulated_backward.hpp"
#include "reference/oracle/emulated_kernel.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/other_bounds.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/oracle/row_runner.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::ci {

namespace {

constexpr std::int64_t len_max = 300, dim_max = 128;
constexpr std::int64_t len_exact = 80;                // 50 digits are slow
constexpr std::int64_t len_back = 60, dim_back = 32;  // so is their gradient's bound
constexpr Precision formats[] = {Precision::f64, Precision::f32, Precision::f16, Precision::bf16};
constexpr double suspicion = 0x1p-40;  // of bound (b), an element: 1e-4 in 10^8 of them

class Stopwatch {
public:
    explicit Stopwatch(double seconds)
        : end_(std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds)) {}
    bool running() const { return std::chrono::steady_clock::now() < end_; }

private:
    std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_;
};

std::size_t index_of(Precision format) {
    return static_cast<std::size_t>(std::find(formats, formats + 4, format) - formats);
}

/// How much of an allowance is used: quantiles from a histogram, so that a soak needs no memory.
class Usage {
public:
    void add(double used, double allowed) {
        ++elements_;
        if (!std::isfinite(allowed)) {
            ++open_;
            return;
        }
        if (!(used <= allowed)) ++violated_;
        const double ratio = allowed > 0 ? used / allowed : 0;
        worst_ = std::max(worst_, ratio);
        const int power = ratio > 0 ? std::max(1 - bins, std::ilogb(ratio)) : 1 - bins;
        ++count_[std::min(bins - 1, power + bins - 1)];
    }
    std::int64_t elements() const { return elements_; }
    std::int64_t violated() const { return violated_; }
    std::int64_t open() const { return open_; }
    double worst() const { return worst_; }
    /// The power of two above the quantile.
    double quantile(double part) const {
        std::int64_t left =
            static_cast<std::int64_t>(part * static_cast<double>(elements_ - open_));
        for (int bin = 0; bin < bins; ++bin)
            if ((left -= count_[bin]) < 0) return std::ldexp(1.0, bin - bins + 2);
        return worst_;
    }

private:
    static constexpr int bins = 64;
    std::int64_t elements_ = 0, violated_ = 0, open_ = 0, count_[bins] = {};
    double worst_ = 0;
};

void compare(const std::vector<bound::ExpectedElement>& truth,
             const std::vector<bound::ExpectedElement>& seen, Usage& out) {
    for (std::size_t x = 0; x < truth.size(); ++x) {
        if (!std::isfinite(truth[x].value) || !std::isfinite(truth[x].bound)) continue;
        out.add(std::abs(truth[x].value - seen[x].value), truth[x].error + seen[x].error);
    }
}

/// |value - value of 50 digits| against both certified errors.
std::int64_t certified_errors(double seconds, std::uint64_t number) {
    constexpr oracle::Arithmetic each[] = {oracle::Arithmetic::plain_double,
                                           oracle::Arithmetic::filtered,
                                           oracle::Arithmetic::double_double};
    constexpr const char* names[] = {"plain double", "filtered", "double-double"};
    Usage usage[3];
    for (const Stopwatch clock(seconds); clock.running(); ++number) {
        const oracle::RandomCase c = oracle::random_case(number, len_exact, dim_max);
        const Problem& p = c.tried.problem;
        const TensorSet inputs = make_inputs(c.tried);
        const bound::Expected truth =
            oracle::attend(p, c.dialect, {}, inputs, oracle::Arithmetic::exact);
        for (std::size_t a = 0; a < 3; ++a) {
            const bound::Expected seen = oracle::attend(p, c.dialect, {}, inputs, each[a]);
            compare(truth.output, seen.output, usage[a]);
            compare(truth.lse, seen.lse, usage[a]);
        }
    }
    std::string text =
        "\ncertified error against 50 digits     elements  violated  infinite  median<"
        "  p99.9<      max\n";
    std::int64_t violated = 0;
    for (std::size_t a = 0; a < 3; ++a) {
        const Usage& u = usage[a];
        violated += u.violated();
        text += fmt::format("  {:<32}{:>12}{:>10}{:>10}{:>9.2g}{:>9.2g}{:>9.2g}\n", names[a],
                            u.elements(), u.violated(), u.open(), u.quantile(0.5),
                            u.quantile(0.999), u.worst());
    }
    write_out(text);
    return violated;
}

/// What one bound says of kernels that are correct.
struct BoundCount {
    std::int64_t elements = 0, violated = 0, undecided = 0;
    void add(const std::vector<double>& seen, const std::vector<bound::ExpectedElement>& expected,
             Precision format) {
        for (std::size_t x = 0; x < seen.size(); ++x) {
            if (!std::isfinite(expected[x].bound)) continue;
            ++elements;
            const bound::Agreement a = bound::judge(seen[x], expected[x], format);
            violated += a == bound::Agreement::disagrees ? 1 : 0;
            undecided += a == bound::Agreement::undecided ? 1 : 0;
        }
    }
};

/// Double alone, whatever its error: rows computed, rows that wider arithmetic would be asked for.
struct Alone {
    BoundCount judged;
    std::int64_t rows = 0, again = 0;
};

struct Forward {
    BoundCount a[4], lse[4], s[4], s_lse[4], b[4];
    Alone plain[4], turned[4];  ///< without RoPE and with it
};

void in_double(const oracle::RandomCase& c, const Numerics& numerics, const TensorSet& inputs,
               const oracle::Observed& seen, Precision lse, Alone& out) {
    const Problem& p = c.tried.problem;
    const oracle::Prepared call = oracle::prepare(p, c.dialect, inputs);
    oracle::RowRunner runner(call, call, bound::resolve(p, numerics),
                             oracle::lanes_in_double(call));
    bound::Expected e;
    e.lse.resize(seen.lse.size());
    e.row_empty.resize(seen.lse.size());
    e.output.resize(seen.output.size());
    for (std::size_t row = 0; row < e.lse.size(); ++row, ++out.rows)
        out.again += runner.row(static_cast<std::int64_t>(row), e) <= oracle::settled ? 0 : 1;
    out.judged.add(seen.output, e.output, p.format_o);
    out.judged.add(seen.lse, e.lse, lse);
}

void forward_case(std::uint64_t number, Forward& out) {
    oracle::RandomCase c = oracle::random_case(number, len_max, dim_max);
    Problem& p = c.tried.problem;
    const std::size_t at = index_of(p.format_o);
    const Precision lse = at == 0 ? Precision::f64 : Precision::f32;
    const TensorSet inputs = make_inputs(c.tried);
    const oracle::Emulation how = oracle::random_emulation(number);
    const Numerics n = oracle::declared(how);
    const oracle::Observed seen = oracle::emulate(c.tried, c.dialect, inputs, how);
    const bound::Expected by_a = oracle::attend(p, c.dialect, n, inputs);
    out.a[at].add(seen.output, by_a.output, p.format_o);
    out.lse[at].add(seen.lse, by_a.lse, lse);
    Alone& alone = (p.rope.style == RopeStyle::none ? out.plain : out.turned)[at];
    if (at != 0) in_double(c, n, inputs, seen, lse, alone);
    out.b[at].add(seen.output, oracle::attend_probable(p, c.dialect, n, inputs, suspicion).output,
                  p.format_o);

    // A declared structure: aligned tiles, weights rounded before they are summed or after.
    p.splits = 1;
    oracle::Emulation tiled = how;
    tiled.tile = std::int64_t{4} << (number % 4 * 2);
    tiled.splits = 1;
    tiled.backwards = tiled.normalise_first = tiled.sink_afterwards = false;
    tiled.aligned_tiles = tiled.round_weights = true;
    const Numerics d = oracle::declared(tiled);
    const auto by_s =
        oracle::attend_structure(p, c.dialect, d, inputs, bound::TileOrder::ascending);
    if (!by_s) return;
    const oracle::Observed replayed = oracle::emulate(c.tried, c.dialect, inputs, tiled);
    out.s[at].add(replayed.output, by_s->output, p.format_o);
    out.s_lse[at].add(replayed.lse, by_s->lse, lse);
}

/// (b) is no proof: it is shown, and not counted.
std::int64_t forward_bounds(double seconds, std::uint64_t number) {
    Forward f;
    for (const Stopwatch clock(seconds); clock.running(); ++number) forward_case(number, f);
    std::string text =
        "\ncorrect forward kernels: naive, flash, split and merged; every kind of values\n"
        "  bound                           format    elements  violated  undecided\n";
    std::int64_t violated = 0;
    const auto line = [&](const char* what, const BoundCount& j, std::size_t at) {
        if (j.elements == 0) return;
        text += fmt::format("  {:<32}{:<8}{:>10}{:>10}{:>11}\n", what, name(formats[at]),
                            j.elements, j.violated, j.undecided);
    };
    for (std::size_t at = 0; at < 4; ++at) {
        line("(a) worst case", f.a[at], at);
        line("(a) log-sum-exp", f.lse[at], at);
        line("(s) declared structure", f.s[at], at);
        line("(s) log-sum-exp", f.s_lse[at], at);
        line("(b) random rounding, 2^-40", f.b[at], at);
        for (const BoundCount* j : {&f.a[at], &f.lse[at], &f.s[at], &f.s_lse[at]})
            violated += j->violated;
    }
    text +=
        "\nescalation                        format    elements  undecided in double"
        "      rows  computed again\n";
    for (const bool turned : {false, true})
        for (std::size_t at = 1; at < 4; ++at) {
            const Alone& x = turned ? f.turned[at] : f.plain[at];
            text += fmt::format("  {:<32}{:<8}{:>10}{:>21}{:>10}{:>16}\n",
                                turned ? "with RoPE, positions to 100000" : "without RoPE",
                                name(formats[at]), x.judged.elements, x.judged.undecided, x.rows,
                                x.again);
        }
    write_out(text);
    return violated;
}

std::int64_t backward_bounds(double seconds, std::uint64_t number) {
    BoundCount by[4];
    for (const Stopwatch clock(seconds); clock.running(); ++number) {
        oracle::RandomCase c = oracle::random_gradient_case(number, len_back, dim_back);
        Problem& p = c.tried.problem;
        if (p.format_q == Precision::f64) p.format_q = p.format_kv = p.format_o = Precision::f32;
        const TensorSet inputs = make_inputs(c.tried);
        oracle::Emulation how;
        how.round_weights = number % 2 == 0;
        const oracle::Backward seen = oracle::emulate_backward(c.tried, c.dialect, inputs, how);
        const auto g = oracle::attend_gradients(p, c.dialect, oracle::declared(how), inputs);
        BoundCount& judged = by[index_of(p.format_q)];
        judged.add(seen.d_q, g.d_q, p.format_q);
        judged.add(seen.d_k, g.d_k, p.format_kv);
        judged.add(seen.d_v, g.d_v, p.format_kv);
    }
    std::string text =
        "\ncorrect backward kernels            format    elements  violated  undecided\n";
    std::int64_t violated = 0;
    for (std::size_t at = 1; at < 4; ++at) {
        text += fmt::format("  {:<32}{:<8}{:>10}{:>10}{:>11}\n", "dQ, dK, dV", name(formats[at]),
                            by[at].elements, by[at].violated, by[at].undecided);
        violated += by[at].violated;
    }
    write_out(text);
    return violated;
}

}  // namespace

std::int64_t bench_bounds(double seconds, std::uint64_t seed) {
    // Each draws its own sequence of cases.
    const std::uint64_t first = seed << 34;
    return certified_errors(0.3 * seconds, first) +
           forward_bounds(0.4 * seconds, first + (std::uint64_t{1} << 32)) +
           backward_bounds(0.3 * seconds, first + (std::uint64_t{2} << 32));
}

}  // namespace attest::ci
