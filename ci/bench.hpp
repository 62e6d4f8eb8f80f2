#pragma once
// `attest bench oracle`: the reference measured against itself, and beside plain attention. What
// was measured is a BenchReport; the screen, the records and the page are drawn from it alone.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ci/machine.hpp"
#include "reference/problem/precision.hpp"

namespace attest::ci {

/// |value - value of 50 digits| against both certified errors: how much of these was used.
struct UsedError {
    std::int64_t elements = 0, violated = 0, infinite = 0;
    double median = 0, p999 = 0;  ///< the power of two above the quantile
    double max = 0;
};
inline constexpr std::array<std::string_view, 3> certified_arithmetics{"plain double", "filtered",
                                                                       "double-double"};
using CertifiedErrors = std::array<UsedError, certified_arithmetics.size()>;

/// What one bound says of kernels that are correct.
struct BoundCount {
    std::int64_t elements = 0, violated = 0, undecided = 0;
};
inline constexpr std::array<Precision, 4> bench_formats{Precision::f64, Precision::f32,
                                                        Precision::f16, Precision::bf16};
inline constexpr std::array<std::string_view, 5> forward_bounds{
    "(a) worst case", "(a) log-sum-exp", "(s) declared structure", "(s) log-sum-exp",
    "(b) random rounding, 2^-40"};
inline constexpr std::size_t proven_bounds = 4;  ///< (b) is no proof: it is shown, and not counted
using ForwardCounts = std::array<std::array<BoundCount, forward_bounds.size()>, 4>;  // [format]

// Where double is the kernel's own format it is not asked alone, and gradients are not measured.
inline constexpr std::array<Precision, 3> narrow_formats{Precision::f32, Precision::f16,
                                                         Precision::bf16};
using BackwardCounts = std::array<BoundCount, narrow_formats.size()>;

/// Double alone, whatever its error: rows computed, rows that wider arithmetic would be asked for.
struct Escalation {
    std::int64_t elements = 0, undecided = 0, rows = 0, again = 0;
};
inline constexpr std::array<std::string_view, 2> escalation_kinds{"without RoPE",
                                                                  "with RoPE, positions to 100000"};
using Escalations = std::array<std::array<Escalation, narrow_formats.size()>, 2>;  // [kind][format]

struct ForwardReport {
    ForwardCounts bounds{};
    Escalations alone{};
};

/// 10^9 multiplications with an addition a second: each of two products in every pair of positions.
double giga_macs(std::int64_t rows, std::int64_t len, std::int64_t dim, double seconds);

/// Seconds of all rows of one head.
struct SpeedRow {
    std::int64_t len = 0;
    double plain = 0, filtered = 0, double_double = 0;
    double exact = 0;  ///< in 50 digits, from a few rows
};
struct SpeedTable {
    std::int64_t dim = 64;
    std::vector<SpeedRow> rows;
};

/// Seconds at a length where not every row can be computed one by one.
struct LongSpeed {
    std::int64_t len = 0, dim = 0, rows = 0, classes = 0;
    double sampled = 0;                ///< some rows
    double collapsed = 0, causal = 0;  ///< every row, with few classes of keys
};

/// Double-double on the GPU in every row, beside the CPU's in a few; or why not.
struct DeviceSpeed {
    std::string name, not_run;  ///< one of the two is empty
    std::int64_t len = 0, dim = 0, cpu_rows = 0;
    double seconds = 0, cpu_seconds = 0;
};

struct BenchReport {
    std::string attest, started, instructions;
    std::uint64_t seed = 1;
    double seconds = 0;  ///< for errors and bounds together
    Machine machine;
    CertifiedErrors certified{};
    ForwardReport forward;
    BackwardCounts backward{};
    SpeedTable speed;
    LongSpeed long_context;
    DeviceSpeed device;

    /// How often something that is proven not to happen did.
    std::int64_t violated() const;
};

CertifiedErrors measure_certified(double seconds, std::uint64_t first);
ForwardReport measure_forward(double seconds, std::uint64_t first);
BackwardCounts measure_backward(double seconds, std::uint64_t first);
inline constexpr std::array<std::int64_t, 5> bench_lengths{64, 128, 256, 512, 1024};
SpeedRow measure_speed(std::int64_t len, std::int64_t dim);
LongSpeed measure_long(std::int64_t dim);
DeviceSpeed measure_device(std::int64_t dim);

/// For the screen, a table each; of the whole report its first line, of the speeds their head.
std::string bench_text(const BenchReport& report);
std::string bench_text(const CertifiedErrors& errors);
std::string bench_text(const ForwardReport& forward);
std::string bench_text(const BackwardCounts& counts);
std::string bench_text(const SpeedTable& table);
std::string bench_text(const SpeedRow& row, std::int64_t dim);
std::string bench_text(const LongSpeed& speed);
std::string bench_text(const DeviceSpeed& speed);

/// bench.jsonl: a line a table.
std::string bench_records(BenchReport report);
/// Strictly: BadInput "PATH:LINE:COLUMN: ...".
BenchReport read_bench(const std::string& path);

}  // namespace attest::ci
