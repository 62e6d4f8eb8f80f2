#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "ci/bench.hpp"
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
constexpr double suspicion = 0x1p-40;  // of bound (b), an element: 1e-4 in 10^8 of them

class Stopwatch {
public:
    explicit Stopwatch(double seconds)
        : end_(std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds)) {}
    bool running() const { return std::chrono::steady_clock::now() < end_; }

private:
    std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_;
};

/// Among formats, which hold it.
template <typename Formats>
std::size_t index_of(Precision format, const Formats& formats) {
    return static_cast<std::size_t>(std::ranges::find(formats, format) - formats.begin());
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
        const int power = ratio > 0 ? std::clamp(std::ilogb(ratio), 1 - bins, 0) : 1 - bins;
        ++count_[power + bins - 1];
    }
    UsedError summary() const {
        constexpr double median = 0.5, p999 = 0.999;
        return {elements_, violated_, open_, quantile(median), quantile(p999), worst_};
    }

private:
    /// The power of two above the quantile.
    double quantile(double part) const {
        std::int64_t left =
            static_cast<std::int64_t>(part * static_cast<double>(elements_ - open_));
        for (int bin = 0; bin < bins; ++bin)
            if ((left -= count_[bin]) < 0) return std::ldexp(1.0, bin - bins + 2);
        return worst_;
    }

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

}  // namespace

CertifiedErrors measure_certified(double seconds, std::uint64_t number) {
    constexpr oracle::Arithmetic each[] = {oracle::Arithmetic::plain_double,
                                           oracle::Arithmetic::filtered,
                                           oracle::Arithmetic::double_double};
    std::array<Usage, certified_arithmetics.size()> usage;
    for (const Stopwatch clock(seconds); clock.running(); ++number) {
        const oracle::RandomCase c = oracle::random_case(number, len_exact, dim_max);
        const Problem& p = c.tried.problem;
        const TensorSet inputs = make_inputs(c.tried);
        const bound::Expected truth =
            oracle::attend(p, c.dialect, {}, inputs, oracle::Arithmetic::exact);
        for (std::size_t a = 0; a < usage.size(); ++a) {
            const bound::Expected seen = oracle::attend(p, c.dialect, {}, inputs, each[a]);
            compare(truth.output, seen.output, usage[a]);
            compare(truth.lse, seen.lse, usage[a]);
        }
    }
    CertifiedErrors errors;
    std::ranges::transform(usage, errors.begin(), &Usage::summary);
    return errors;
}

namespace {

void judge(const std::vector<double>& seen, const std::vector<bound::ExpectedElement>& expected,
           Precision format, BoundCount& out) {
    for (std::size_t x = 0; x < seen.size(); ++x) {
        if (!std::isfinite(expected[x].bound)) continue;
        ++out.elements;
        const bound::Agreement a = bound::judge(seen[x], expected[x], format);
        out.violated += a == bound::Agreement::disagrees ? 1 : 0;
        out.undecided += a == bound::Agreement::undecided ? 1 : 0;
    }
}

void in_double(const oracle::RandomCase& c, const Numerics& numerics, const TensorSet& inputs,
               const oracle::Observed& seen, Precision lse, Escalation& out) {
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
    BoundCount count;
    judge(seen.output, e.output, p.format_o, count);
    judge(seen.lse, e.lse, lse, count);
    out.elements += count.elements;
    out.undecided += count.undecided;
}

/// In the order of forward_bounds.
void forward_case(std::uint64_t number, ForwardReport& out) {
    oracle::RandomCase c = oracle::random_case(number, len_max, dim_max);
    Problem& p = c.tried.problem;
    auto& [worst, worst_lse, structure, structure_lse, probable] =
        out.bounds[index_of(p.format_o, bench_formats)];
    const bool wide = p.format_o == Precision::f64;
    const Precision lse = wide ? Precision::f64 : Precision::f32;
    const TensorSet inputs = make_inputs(c.tried);
    const oracle::Emulation how = oracle::random_emulation(number);
    const Numerics n = oracle::declared(how);
    const oracle::Observed seen = oracle::emulate(c.tried, c.dialect, inputs, how);
    const bound::Expected by_a = oracle::attend(p, c.dialect, n, inputs);
    judge(seen.output, by_a.output, p.format_o, worst);
    judge(seen.lse, by_a.lse, lse, worst_lse);
    auto& alone = out.alone[p.rope.style == RopeStyle::none ? 0 : 1];
    if (!wide) in_double(c, n, inputs, seen, lse, alone[index_of(p.format_o, narrow_formats)]);
    // As reference.probable: of coarser steps, and of units that truncate, (b) says nothing.
    if (!has_coarse_steps(n) && !n.matrix_unit)
        judge(seen.output, oracle::attend_probable(p, c.dialect, n, inputs, suspicion).output,
              p.format_o, probable);

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
    judge(replayed.output, by_s->output, p.format_o, structure);
    judge(replayed.lse, by_s->lse, lse, structure_lse);
}

}  // namespace

ForwardReport measure_forward(double seconds, std::uint64_t number) {
    ForwardReport report;
    for (const Stopwatch clock(seconds); clock.running(); ++number) forward_case(number, report);
    return report;
}

BackwardCounts measure_backward(double seconds, std::uint64_t number) {
    BackwardCounts counts{};
    for (const Stopwatch clock(seconds); clock.running(); ++number) {
        oracle::RandomCase c = oracle::random_gradient_case(number, len_back, dim_back);
        Problem& p = c.tried.problem;
        if (p.format_q == Precision::f64) p.format_q = p.format_kv = p.format_o = Precision::f32;
        const TensorSet inputs = make_inputs(c.tried);
        oracle::Emulation how;
        how.round_weights = number % 2 == 0;
        const oracle::Backward seen = oracle::emulate_backward(c.tried, c.dialect, inputs, how);
        const auto g = oracle::attend_gradients(p, c.dialect, oracle::declared(how), inputs);
        BoundCount& count = counts[index_of(p.format_q, narrow_formats)];
        judge(seen.d_q, g.d_q, p.format_q, count);
        judge(seen.d_k, g.d_k, p.format_kv, count);
        judge(seen.d_v, g.d_v, p.format_kv, count);
    }
    return counts;
}

}  // namespace attest::ci
