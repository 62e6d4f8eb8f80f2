#pragma once
// Runs an arithmetic over rows and writes what is expected of each: value, certified error, bound.

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/bound/forward_bound.hpp"
#include "reference/oracle/nonfinite.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest {

/// A row is settled where no element's own error exceeds this part of its bound: then an
/// observation is undecided only if it falls within 1/1000 of the end of its interval.
constexpr double settled = 0x1p-10;

class RowRunner {
public:
    /// `call` as it came; `clean` with finite stand-ins for NaN and infinity and with values scaled
    /// (Prepared::value_exponent), which is what the arithmetic was made over.
    RowRunner(const Prepared& call, const Prepared& clean, const KernelModel& model,
              std::unique_ptr<RowArithmetic> arithmetic);

    /// `flat` over [batch, heads_q, len_q]. Returns how well the row is known: the largest error
    /// over bound of its elements (0 where none has a finite bound; infinite where one has no
    /// certified error). The rounding of the value to double does not count: wider arithmetic
    /// would not mend it.
    double row(std::int64_t flat, Expected& out);

    /// The row just computed; empty scores where nothing was.
    const RowValues& values() const { return values_; }
    const std::vector<std::int64_t>& visible() const { return visible_; }
    const RowFacts& facts() const { return facts_; }
    const OwnError& own() const { return own_; }
    /// Whether the row saw a NaN or an infinity.
    bool tainted() const { return tainted_; }

private:
    void put_empty(const KeyRange& range, ExpectedElement* o, ExpectedElement& lse) const;
    void load(std::int64_t b, std::int64_t h_kv);
    void compute(std::int64_t b, std::int64_t h, std::int64_t i, const KeyRange& range, bool sink);
    void put_outputs(ExpectedElement* o);
    void put_lse(ExpectedElement& lse) const;

    const Prepared& call_;
    const Prepared& clean_;
    const Problem& p_;
    KernelModel model_;
    RowBound bound_;
    std::unique_ptr<RowArithmetic> arithmetic_;
    ArithmeticError error_;
    RowValues values_;
    RowFacts facts_;
    OwnError own_;
    std::vector<std::int64_t> visible_;
    std::vector<double> mask_, distance_, bias_;
    std::int64_t loaded_b_ = -1, loaded_h_ = -1, value_exponent_ = 0;
    std::int64_t stride_ = 0;
    std::vector<double> head_values_;  // [len_kv, stride]: columns padded with 0
    std::vector<double> value_total_;  // [dim_v]
    double value_max_ = 0;
    bool tainted_ = false;
    std::vector<double> centre_, spread_, plain_, mass_, low_, high_;  // [stride]
};

}  // namespace attest
