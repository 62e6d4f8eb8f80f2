#pragma once
// Probes: values that make a black-box kernel show its weights. A column of V that is a power of
// two at one key and zero at all others returns that key's weight. Sizes and places are random, and
// a column of ordinary data stays among them where there is room: a kernel cannot tell that it is
// being probed.
//
// A probe is made before the kernel runs, and tells by the reference alone which weights are
// readable: whatever a kernel within its bound returns, they are told from zero. A weight that is
// readable and that the kernel does not show is a violation, never a reason to look away.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "properties/law/reading.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// Column c of kv head g in batch b shows the weight of key[at(b, g, c)], times size[at(b, g, c)];
/// key -1: ordinary data.
struct UnitColumns {
    std::int64_t heads = 1, columns = 1;
    std::vector<std::int64_t> key;
    std::vector<double> size;

    std::size_t at(std::int64_t batch, std::int64_t head_kv, std::int64_t column) const noexcept {
        return static_cast<std::size_t>((batch * heads + head_kv) * columns + column);
    }
};

/// Unit columns for a problem: key_of(batch, head_kv, column) is a key, or -1.
UnitColumns unit_columns(
    const Given& given, const Problem& problem, std::uint64_t stream,
    const std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>& key_of);

/// The V that holds them.
Tensor unit_values(const Given& given, const Problem& problem, const UnitColumns& units,
                   std::uint64_t stream);

/// A run with unit columns: the weight that a column shows to a row.
struct UnitRun {
    Run call;
    UnitColumns units;
    /// Within [0, 1]; the column must show a key.
    Interval weight(const Row& row, std::int64_t column) const;
};
UnitRun run_units(const Trial& trial, const Problem& problem, const TensorSet& inputs,
                  std::uint64_t stream, UnitColumns units);

/// The whole matrix P of every head, as a kernel showed it.
class Weights {
public:
    const Interval& at(const Row& row, std::int64_t key) const noexcept {
        const std::int64_t flat = (row.batch * heads_ + row.head) * queries_ + row.query;
        return weight_[static_cast<std::size_t>(flat * keys_ + key)];
    }
    /// One of the runs: its LSE is that of every run, which differ in V alone.
    const Run& first() const { return *first_; }

private:
    friend class WeightProbe;
    std::int64_t heads_ = 0, queries_ = 0, keys_ = 0;
    std::vector<Interval> weight_;
    std::optional<Run> first_;
};

/// The calls that show P, prepared: as few as the kernel's value dimension allows.
class WeightProbe {
public:
    WeightProbe(const Given& given, const Problem& problem, const TensorSet& inputs,
                std::uint64_t stream);

    /// Whether every weight of every row that sees a key is readable, by the reference.
    bool readable() const;
    /// Throws Stopped where the kernel returns a weight that is no number, or does not show one
    /// that is readable.
    Weights read(const Trial& trial) const;

private:
    struct Part {
        PlannedCall call;
        UnitColumns units;
    };
    std::int64_t keys_ = 0;
    std::vector<Part> parts_;
};

/// Why a law says nothing of a case of which the reference's own weights are not readable.
constexpr const char* unreadable_weights = "the weights are too small to be told from zero";

}  // namespace attest::law
