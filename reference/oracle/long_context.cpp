#include "reference/oracle/long_context.hpp"

#include <algorithm>

#include "reference/oracle/collapsed.hpp"

namespace attest {

namespace {

constexpr std::int64_t rows_sampled = 16;

double products(const Problem& p) {
    const double rows = static_cast<double>(p.batch) * static_cast<double>(p.heads_q) *
                        static_cast<double>(p.len_q);
    return rows * static_cast<double>(p.len_kv) * static_cast<double>(p.dim_qk + value_dim(p));
}

}  // namespace

Expected attend_affordable(const Problem& problem, const Dialect& dialect, const Numerics& numerics,
                           const TensorSet& inputs, double products_max, std::uint64_t seed) {
    if (products(problem) <= products_max) return attend(problem, dialect, numerics, inputs);
    if (auto every = attend_collapsed(problem, dialect, numerics, inputs)) return std::move(*every);
    const std::int64_t count = problem.batch * problem.heads_q * problem.len_q;
    std::vector<std::int64_t> rows = {0, count - 1};
    for (std::int64_t n = 2; n < std::min(rows_sampled, count); ++n)
        rows.push_back(
            static_cast<std::int64_t>(counter_bits(seed, 0, static_cast<std::uint64_t>(n)) %
                                      static_cast<std::uint64_t>(count)));
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return attend_rows(problem, dialect, numerics, inputs, rows, Arithmetic::filtered);
}

}  // namespace attest
