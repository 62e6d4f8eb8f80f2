#pragma once
// Bound (s) of the gradients (README.md, "Declared structure of gradients"): where a kernel
// declares that P and dS are rounded once each, these roundings are no error but part of what it
// computes. They are replayed, and only numbers that straddle a rounding boundary are paid for.
// There is no tile to declare: P is taken against the LSE that was handed over.

#include <span>
#include <vector>

#include "reference/bound/backward_bound.hpp"

namespace attest::bound {

/// Whether the declared numerics fix the structure for this problem: declared, something is
/// rounded, and no step is coarser, turned or dropped.
bool gradient_structure_declared(const Problem& problem, const Numerics& numerics);

/// Numbers as they are rounded, and how far what a kernel rounds may lie from each: infinite where
/// nothing is claimed.
struct RoundedEntries {
    std::vector<double> value, reach;
};

/// What the reference itself is off by, of every entry of a row.
struct OwnEntries {
    double weight = 0;              ///< of P, relative
    std::span<const double> score;  ///< of dX
};

/// One row. Reusable, like BackwardRow.
class GradientStructureRow {
public:
    GradientStructureRow(const Problem& problem, const Numerics& numerics);

    /// `row.weight` and `row.lse` are of the LSE handed over, `facts` of the O handed over.
    void weigh(const RowFacts& row, const BackwardFacts& facts, const OwnEntries& own);

    /// P as dV sums it, and dX as dQ and dK do.
    const RoundedEntries& weights() const noexcept { return weights_; }
    const RoundedEntries& scores() const noexcept { return scores_; }
    /// What a sum over queries (dK, dV) or over keys (dQ) loses of the sizes it adds.
    double of_queries() const noexcept { return of_queries_; }
    double of_keys() const noexcept { return of_keys_; }
    double absolute(double terms, double scale) const noexcept {
        return row_.absolute(terms, scale);
    }

private:
    struct Rounding {
        Precision format;
        double unit = 0, underflow = 0;  ///< 0: not rounded
    };
    void put(RoundedEntries& to, const Rounding& how, std::size_t j, double exact,
             double error) const;

    KernelModel model_;
    BackwardRow row_;
    Rounding weight_, score_;
    double of_queries_ = 0, of_keys_ = 0;
    RoundedEntries weights_, scores_;
};

}  // namespace attest::bound
