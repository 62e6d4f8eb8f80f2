#pragma once
// Bound (s) (README.md, "Declared structure"): where a kernel declares the tile its softmax runs
// over, the rounding of P is no error but part of what it computes. It is replayed exactly, and
// only weights that straddle a rounding boundary are paid for. Rigorous against the declared
// structure; a violation says that the kernel does not do what it declares.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/forward_bound.hpp"

namespace attest::bound {

/// Tiles are [t tile, (t+1) tile) of the keys. Kernels take them from the first or from the last.
enum class TileOrder : std::uint8_t { ascending, descending };

/// Whether the declared numerics fix the structure for this problem: P is rounded, the tile is
/// declared, and the keys are not split (or all lie in one tile).
bool structure_declared(const KernelModel& model, std::int64_t splits) noexcept;

/// One row. Reusable, like RowBound.
class StructureRow {
public:
    StructureRow(const KernelModel& model, Precision weights, TileOrder order)
        : model_(model), weights_(weights), order_(order) {}

    /// `visible`: the keys of facts' entries (the sink, if any, is last and has none).
    /// `own_weight`: relative error of the facts' weights.
    void weigh(const RowFacts& facts, std::span<const std::int64_t> visible, double own_weight);

    /// The structure computes O_c = sum_j share()[j] v_jc. Where its sum is of rounded weights, its
    /// LSE is lse(); where it is not, there is nothing to replay and bound (a) is the sharper one.
    std::span<const double> share() const noexcept { return share_; }
    double lse() const noexcept { return lse_; }
    /// An element's bound is output(O_c, sum_j slack()[j] |v_jc|, sum_j |v_jc|).
    std::span<const double> slack() const noexcept { return slack_; }
    double output(double value, double slack_sum, double value_total) const noexcept;
    double lse_bound() const noexcept { return lse_bound_; }

private:
    void replay_maxima(const RowFacts& facts, std::span<const std::int64_t> visible);
    void round_weights(const RowFacts& facts, double own_weight);

    KernelModel model_;
    Precision weights_;
    TileOrder order_;
    std::vector<double> share_, slack_;
    std::vector<double> score_error_;
    std::vector<double> frame_;  ///< running maximum each entry's weight is taken against
    std::vector<double> rises_;  ///< how often that maximum may still rise afterwards
    double error_max_ = 0, sum_error_ = 0, sum_error_l_ = 0, inverse_ = 0, of_sum_ = 0;
    double lse_ = 0, lse_bound_ = 0, entries_ = 0;
    bool valid_ = false;
};

}  // namespace attest::bound
