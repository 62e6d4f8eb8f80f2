#pragma once
// Bound (a) (README.md, "Any order of operations"): how far any kernel of declared numerics may be
// from exact attention, whatever the order, row by row and element by element. It is deterministic
// and worst case; it is centred: an error common to all weights of a row cancels, so only |v - O|
// counts.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/entry_rule.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::bound {

/// A proven bound on |computed - exact|. Only the theorems below make one; where a condition of the
/// proof fails it is infinite, which says that nothing is claimed.
class Bound {
public:
    double value() const noexcept { return value_; }

private:
    explicit Bound(double value) noexcept : value_(value >= 0 ? value : infinite) {}
    double value_;
    friend class RowBound;
};

/// What the theorem reads of one row. Keys are those visible; where there is a sink it is the last
/// entry, a key of value 0. All are exact to facts_accuracy.
struct RowFacts {
    double keys_counted() const noexcept {
        if (count.empty()) return static_cast<double>(score.size());
        double n = 0;
        for (const double each : count) n += each;
        return n;
    }
    RowOutline outline() const noexcept { return {keys_counted(), max, lse, q_max, k_max, sink}; }
    std::span<const double> score;      ///< s_j, natural units, bias and cap included
    std::span<const double> weight;     ///< p_j = exp(s_j - lse)
    std::span<const double> magnitude;  ///< a_j; 0 for the sink
    std::span<const double> bias;       ///< B_j; the sink's is |sink|. Empty: none
    std::span<const double> turn;       ///< t_j. Empty: no RoPE
    std::span<const double> count;      ///< how many keys an entry stands for. Empty: one each
    double max = 0, lse = 0;            ///< natural
    bool sink = false;
    double q_max = 0, k_max = 0;
};

/// The sums over keys that an element's bound needs; see RowBound::weigh.
struct ColumnSums {
    double spread = 0;       ///< sum_j centred_j |v_jc - O_c|, or more
    double plain = 0;        ///< sum_j plain_j |v_jc|, or more
    double low = 0;          ///< min_j v_jc
    double high = 0;         ///< max_j v_jc
    double value_total = 0;  ///< sum_j |v_jc|, or more
};

/// The same of many columns, an array each. Without low and high there is no hull.
struct ColumnArrays {
    const double *spread = nullptr, *plain = nullptr, *value_total = nullptr;
    const double *low = nullptr, *high = nullptr;
};

/// The theorem for one row. Reusable: weigh() replaces what was there and allocates only to grow.
class RowBound {
public:
    explicit RowBound(const KernelModel& model)
        : model_(model), exp_exponent_(std::log1p(model.exp_error)) {}

    /// Reads a row; afterwards centred() and plain() hold one coefficient an entry of the facts.
    void weigh(const RowFacts& facts);

    /// The same where the entries are elsewhere: begin() says how each is to be weighed
    /// (weigh_entry; the sink by of_sink()), end() takes what that added up to. `rises`: how often
    /// the maximum of the scores, taken in either order, may seem to rise where two scores count
    /// as equal up to rise_slack(); asked for where wants_rises().
    EntryRule begin(const RowOutline& row, const RowMaxima& maxima, double rises);
    static EntryRule of_sink(EntryRule rule, double unit);
    void end(const EntryTotals& totals);
    bool wants_rises(const RowOutline& row) const noexcept;

    std::span<const double> centred() const noexcept { return centred_; }
    std::span<const double> plain() const noexcept { return plain_; }
    const RowMaxima& maxima() const noexcept { return maxima_; }
    double centred_sum() const noexcept { return centred_sum_; }
    /// plain_j is at least this part of the weight p_j, the sink's apart.
    double plain_share() const noexcept { return plain_share_; }

    /// Whether low and high can lower the bound; without them they may be -inf and +inf.
    bool wants_hull() const noexcept { return wants_hull_; }

    /// |computed O_c - exact O_c| before the rounding to the stored format.
    Bound output(double exact, const ColumnSums& sums) const noexcept;
    /// The same of n columns.
    void outputs(std::size_t n, const double* exact, const ColumnArrays& sums,
                 double* bounds) const noexcept;
    /// |computed L - exact L|, natural logarithm, before the rounding to the stored format.
    Bound lse() const noexcept { return Bound(lse_); }
    /// The same in base 2: one product more, with a rounded constant.
    Bound lse_base_two() const noexcept;

private:
    double shifted_values() const noexcept;
    double fed_values() const noexcept;
    KernelModel model_;
    double exp_exponent_ = 0;  ///< log(1 + exp_error)
    std::vector<double> centred_, plain_, scratch_;
    RowOutline row_;
    RowMaxima maxima_;
    double centred_sum_ = 0, plain_share_ = 0;
    double h1_ = 0;                             ///< sum p_j H_j
    double sum_error_o_ = 0, sum_error_l_ = 0;  ///< gO, gl
    double rounded_mass_ = 0;                   ///< sum of p r where l sums rounded weights
    double rescales_ = 0;
    double lse_ = 0;
    double inverse_ = 0;   ///< 1 / ((1-gl)(1-h1)(1-rounded)); infinite where the proof fails
    double leak_ = 0;      ///< of the hull, relative to the largest value
    double absolute_ = 0;  ///< of the sums
    double shifted_ = 0;   ///< of values less their mean, beyond those of the values themselves;
                           ///< or that underflow where a unit takes them
    bool valid_ = false;
    bool wants_hull_ = true;
};

}  // namespace attest::bound
