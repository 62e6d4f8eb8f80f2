#pragma once
// What of the oracle's rows a GPU computes: all that is keys x dimension, in double-double, and the
// sums that bound (a) needs. The host asks in two steps, so that every decision stays where the
// proofs are; see device_oracle.cpp. Nothing here needs CUDA.

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "reference/bound/entry_rule.hpp"
#include "reference/oracle/double_double.hpp"

namespace attest::oracle {

/// One head.
struct DeviceHead {
    std::int64_t len_kv = 0, dim_qk = 0, dim_v = 0;
    const double* keys = nullptr;    ///< [dim_qk, len_kv]
    const double* values = nullptr;  ///< [len_kv, dim_v]
};

/// What the rows of a call share.
struct DeviceCall {
    double scale = 1, softcap = 0;
    bool cap_after_bias = false, alibi = false;
    double unit = 0;           ///< of the kernel's arithmetic, for rise_slack()
    bool count_rises = false;  ///< see RowBound::begin
};

/// A row that sees the keys [first, last), at least one. The four errors are ScoreError's.
struct DeviceRow {
    std::int64_t first = 0, last = 0;
    double origin = 0, slope = 0;  ///< ALiBi adds -slope |origin - j|
    double sink = 0;
    bool has_sink = false;
    double error_dot = 0, error_bias = 0, error_absolute = 0;
};

struct DeviceRowSums {
    bound::RowMaxima maxima;  ///< of the keys; the sink is the host's business
    DoubleDouble max, sum;  ///< m and l, sink included
    double rises = 0;
};

/// The device, or the way to it, failed.
class DeviceError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A GPU. Every function throws DeviceError where it fails.
class DeviceRows {
public:
    virtual ~DeviceRows() = default;
    virtual std::string name() const = 0;
    /// The head that the calls below are about. Its arrays may be gone afterwards.
    virtual void load(const DeviceHead& head) = 0;
    /// How many rows of it may be asked for at a time.
    virtual std::int64_t rows_max() const = 0;
    /// queries [rows, dim_qk]; sums [rows]; output [rows, dim_v], rounded to double.
    virtual void attend(const DeviceCall& call, std::span<const DeviceRow> rows,
                        std::span<const double> queries, std::span<DeviceRowSums> sums,
                        std::span<double> output) = 0;
    /// For the rows last attended to, weigh_entry() of every key: totals [rows], and for each
    /// column sum centred_j |v_jc - O_c| and sum plain_j |v_jc|, [rows, dim_v].
    virtual void weigh(std::span<const bound::EntryRule> rules,
                       std::span<bound::EntryTotals> totals, std::span<double> spread,
                       std::span<double> size) = 0;
};

struct DoubleDoubleConstants;
/// What the library that holds one exports, as `attest_device_rows`. Null: no GPU, which `why`
/// then says.
using MakeDeviceRows = DeviceRows*(const DoubleDoubleConstants& constants, std::string& why);

}  // namespace attest::oracle
