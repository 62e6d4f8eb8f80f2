#include "reference/oracle/long_context.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "reference/oracle/collapsed.hpp"
#include "reference/oracle/device_oracle.hpp"
#include "reference/problem/counter.hpp"

namespace attest::oracle {

namespace {

constexpr std::int64_t cpu_rows = 16;
/// What a device is asked for at most: a second or two of its multiplications in double-double, and
/// half a gigabyte of elements.
constexpr double device_products = 0x1p40, device_elements = 0x1p24;

double products(const Problem& p) {
    const double rows = static_cast<double>(p.batch) * static_cast<double>(p.heads_q) *
                        static_cast<double>(p.len_q);
    return rows * static_cast<double>(p.len_kv) * static_cast<double>(p.dim_qk + value_dim(p));
}

/// At most `most` rows: the first, the last, and others drawn by the seed, in order.
std::vector<std::int64_t> sample(const Problem& p, std::int64_t most, std::uint64_t seed) {
    const std::int64_t count = p.batch * p.heads_q * p.len_q;
    std::vector<std::int64_t> rows = {0, count - 1};
    for (std::int64_t n = 2; n < std::min(most, count); ++n)
        rows.push_back(
            static_cast<std::int64_t>(counter_bits(seed, 0, static_cast<std::uint64_t>(n)) %
                                      static_cast<std::uint64_t>(count)));
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

/// Every row where the device can afford that, else as many as it can.
std::optional<bound::Expected> attend_there(DeviceRows& device, const Problem& p,
                                            const Dialect& dialect, const Numerics& numerics,
                                            const TensorSet& inputs, std::uint64_t seed) {
    const double rows = static_cast<double>(p.batch * p.heads_q * p.len_q);
    const double most = std::min(device_products / (products(p) / rows),
                                 device_elements / static_cast<double>(value_dim(p)));
    std::vector<std::int64_t> some;
    if (most < rows) some = sample(p, std::max<std::int64_t>(2, std::llround(most)), seed);
    try {
        return attend_on_device(device, p, dialect, numerics, inputs, some);
    } catch (const DeviceError& failed) {
        lose_device(failed.what());
        return std::nullopt;
    }
}

}  // namespace

bound::Expected attend_affordable(const Problem& problem, const Dialect& dialect,
                                  const Numerics& numerics, const TensorSet& inputs,
                                  double products_max, std::uint64_t seed) {
    if (products(problem) <= products_max) return attend(problem, dialect, numerics, inputs);
    if (auto every = attend_collapsed(problem, dialect, numerics, inputs)) return std::move(*every);
    if (DeviceRows* device = device_in_use())
        if (auto seen = attend_there(*device, problem, dialect, numerics, inputs, seed))
            return std::move(*seen);
    return attend_rows(problem, dialect, numerics, inputs, sample(problem, cpu_rows, seed),
                       Arithmetic::filtered);
}

}  // namespace attest::oracle
