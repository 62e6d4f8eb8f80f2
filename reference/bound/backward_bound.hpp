#pragma once
// Bound (a) of the gradients (README.md, "Gradients"): how far dQ, dK, dV of a kernel of declared
// numerics may be from the exact gradients, given that it recomputes P from its own stored LSE and
// takes D from its own stored O.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/forward_bound.hpp"

namespace attest::bound {

/// What the theorem reads of one row beyond RowFacts. One entry a key (and the sink), as there.
struct BackwardFacts {
    std::span<const double> dp;       ///< dO_i . v_j; 0 for the sink
    std::span<const double> dp_size;  ///< sum_c |dO_ic v_jc|
    std::span<const double> slope;    ///< derivative of the cap; empty: no cap
    double d = 0;                     ///< sum_c dO_ic O_ic, less the gradient of the LSE
    double d_size = 0;                ///< sum_c |dO_ic O_ic|, and the size of that gradient
    double d_lse = 0;                 ///< its size, natural
    double d_output = 0;              ///< sum_c |dO_ic| times the error of the stored O_ic
    double lse_error = 0;             ///< of the stored LSE, natural
    double dim_v = 0;
    double fed = 0;  ///< sum_c |dO_ic|, and the largest sum_c |v_jc|: of what a unit is fed,
                     ///< where it rounds that
};

/// Errors of one row, as coefficients; see the .cpp for the proof.
class BackwardRow {
public:
    BackwardRow(const KernelModel& model, double queries, double keys)
        : model_(model), queries_(queries), keys_(keys) {}

    void weigh(const RowFacts& row, const BackwardFacts& facts);
    /// A weight may come out infinite, and NaN where it meets a zero: nothing is claimed of what
    /// the row touches.
    bool overflows() const noexcept { return overflows_; }
    /// Of P_ij in dV: the bound of dV_jc is sum_i |dO_ic| weight()[j] + absolute().
    std::span<const double> weight() const noexcept { return weight_; }
    /// Of P_ij itself, not rounded to the format of the product.
    std::span<const double> of_p() const noexcept { return of_p_; }
    /// Of dX_ij, summed over queries or over keys: the bound of dK_jc is
    /// |scale| sum_i |q_ic| by_queries()[j] + absolute(), that of dQ_ic likewise with by_keys().
    std::span<const double> by_queries() const noexcept { return by_queries_; }
    std::span<const double> by_keys() const noexcept { return by_keys_; }
    /// The sharper form for dQ_ic: the errors of D_i and L_i are the row's own, so that |scale|
    /// (sum_j |k_jc| alone()[j] + of_d() |sum_j P_ij slope_j k_jc|) + of_lse() |dQ_ic| does.
    std::span<const double> alone() const noexcept { return alone_; }
    double of_d() const noexcept { return of_d_; }
    double of_lse() const noexcept { return of_lse_; }
    /// Of dS_ij and of dX_ij themselves, with what underflow takes where they are rounded; and at
    /// least |dS_ij|, |dX_ij| as computed.
    std::span<const double> of_ds() const noexcept { return of_ds_; }
    std::span<const double> of_dx() const noexcept { return of_dx_; }
    std::span<const double> size_ds() const noexcept { return size_ds_; }
    std::span<const double> size_dx() const noexcept { return size_dx_; }
    /// A sum of `terms` numbers of those sizes loses this part of them.
    double of_sum(double terms) const noexcept;
    double absolute(double terms, double scale) const noexcept;

private:
    double lost_in_products(const BackwardFacts& facts) const noexcept;
    double over(double terms, double more) const noexcept;
    /// The error of a product of which so many operands were rounded besides.
    double fed(double error, double times) const noexcept;
    /// By the rounding of a dS of at most this size, beside ugs times it.
    double lost_in_rounding(double size) const noexcept;

    KernelModel model_;
    double queries_, keys_;
    std::vector<double> score_error_, weight_, of_p_, by_queries_, by_keys_, alone_;
    std::vector<double> of_ds_, of_dx_, size_ds_, size_dx_;
    double of_d_ = 0, of_lse_ = 0;
    bool overflows_ = false;
};

}  // namespace attest::bound
