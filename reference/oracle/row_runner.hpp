#pragma once
// Runs an arithmetic over rows and writes what is expected of each: value, certified error, bound.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/bound/forward_bound.hpp"
#include "reference/oracle/head_columns.hpp"
#include "reference/oracle/nonfinite.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest::oracle {

/// A row is settled where no element's own error exceeds this part of its bound: then an
/// observation is undecided only if it falls within 1/1000 of the end of its interval.
constexpr double settled = 0x1p-10;

/// A row of the call, flat over [batch, heads_q, len_q], and which row of an Expected it becomes.
struct RowSlot {
    std::int64_t flat = 0, slot = 0;
};

class RowRunner {
public:
    /// `call` as it came; `clean` with finite stand-ins for NaN and infinity and with values scaled
    /// (Prepared::value_exponent), which is what the arithmetic was made over.
    RowRunner(const Prepared& call, const Prepared& clean, const bound::KernelModel& model,
              std::unique_ptr<RowArithmetic> arithmetic);

    /// Row `flat` of the call into row `flat` of the result. Returns how well the row is known: the
    /// largest error over bound of its elements (0 where none has a finite bound; infinite where
    /// one has no certified error). The rounding of the value to double does not count: wider
    /// arithmetic would not mend it.
    double row(std::int64_t flat, bound::Expected& out);

    /// As row() for each, several at a time where they share keys: in worst, what row() returns.
    void rows(std::span<const RowSlot> places, bound::Expected& out, std::vector<double>& worst);

    /// The row() just computed; empty scores where nothing was.
    const RowValues& values() const { return values_.front(); }
    const std::vector<std::int64_t>& visible() const { return work_.front().visible; }
    const bound::RowFacts& facts() const { return work_.front().facts; }
    const OwnError& own() const { return work_.front().own; }
    /// Whether the row saw a NaN or an infinity.
    bool tainted() const { return work_.front().claims.seen; }

private:
    /// One row of a block on its way.
    struct Work {
        explicit Work(const bound::KernelModel& model) : bound(model) {}
        std::int64_t slot = 0;
        std::vector<std::int64_t> visible;
        std::vector<double> mask, distance, bias;
        std::vector<double> spread, size, error, limit;  // [dim_v]
        std::vector<double> value, total, low, high;     // [dim_v], where they are wanted
        RowClaims claims;
        bound::RowFacts facts;
        bound::RowBound bound;
        OwnError own;
    };
    struct Place {
        std::int64_t b, h, i;
    };
    Place place(std::int64_t flat) const;

    void block(std::span<const RowSlot> places, bound::Expected& out, double* worst);
    bool open(const RowSlot& at, Work& work, RowQuery& query, bound::Expected& out) const;
    void load(std::int64_t b, std::int64_t h_kv);
    void weigh(const RowQuery& query, const RowValues& values, Work& work) const;
    double finish(const RowValues& values, Work& work, bound::Expected& out) const;
    void keep_in_hull(const RowValues& values, Work& work) const;
    double put_outputs(const RowValues& values, Work& work, bound::ExpectedElement* o) const;
    const double* unscaled(const RowValues& values, Work& work, bound::ColumnArrays& sums) const;

    const Prepared& call_;
    const Prepared& clean_;
    const Problem& p_;
    bound::KernelModel model_;
    std::unique_ptr<RowArithmetic> arithmetic_;
    ArithmeticError error_;
    std::vector<Work> work_;         // [block_rows]
    std::vector<RowQuery> queries_;  // of the rows of work_ that are computed, in order
    std::vector<RowValues> values_;
    std::vector<RowColumns> columns_;
    HeadColumns head_;
    std::int64_t loaded_b_ = -1, loaded_h_ = -1, value_exponent_ = 0;
    const double* head_values_ = nullptr;  // [len_kv, dim_v]
};

}  // namespace attest::oracle
