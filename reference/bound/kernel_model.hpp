#pragma once
// What a kernel claims of its arithmetic, resolved against a problem into the numbers that the
// bounds are made of. Built from Numerics and Problem alone: a bound never looks at an output.

#include <cstdint>

#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::bound {

/// The constants of one kernel on one problem (README.md, "Symbols"): ua, up, uo are unit
/// roundoffs, oma, omp, omo the absolute errors of an operation that underflows.
struct KernelModel {
    double ua = 0;            ///< scores, softmax, both sums
    double oma = 0;           ///< underflow there: half the smallest subnormal, or the smallest
                              ///< normal number if subnormals are flushed
    double weight_floor = 0;  ///< an exp may return 0 below the smallest normal number
    double up = 0, omp = 0;   ///< rounding of P before the second product; 0: not rounded
    /// Rounding of P before the product that gives dV, and of dS before those of dQ and dK.
    double ugp = 0, omgp = 0, ugs = 0, omgs = 0;
    double gradient_max = 0;                  ///< the largest finite number of the format of dS
    double ugh = 0, omgh = 0, heads_max = 0;  ///< of dK and dV of one head of a group
    double uo = 0, omo = 0;  ///< a rounding of the output beside that to the format it is stored in
    double by_way = 0;       ///< of f64 to a narrower format than f32: that to f32 on the way
    double exp_error = 0;    ///< relative, one call
    double log_error = 0;    ///< relative, one call
    double us = 0, oms = 0;  ///< rounding of a score's steps; 0: none of its own
    double uq = 0, omq = 0;  ///< of q before the product
    double uf = 0, omf = 0;  ///< of q, k and dO as a unit that multiplies matrices is fed them
    double uv = 0, omv = 0;  ///< of v so, of P where it was rounded before, of a part's output
    double part_max = 0;     ///< the largest of a part's output where that is rounded
    double ur = 0, omr = 0;  ///< of cos, sin and the turn
    double ub = 0, omb = 0;  ///< of mask, slopes and sink
    double epsilon = 0;      ///< added to l
    double max_finite = 0;   ///< of the accumulator
    double score_max = 0, query_max = 0, bias_max = 0;  ///< the largest finite numbers there
    double fed_max = 0;                                 ///< of what a unit is fed
    /// Whether operands of these sizes, and outputs of parts, are finite for sure: q and k with the
    /// scale and log2(e), or without.
    bool feeds(double queries, double keys, double values) const noexcept;
    double centred_max = 0;  ///< of what keys and values less their mean are rounded to
    bool sums_rounded_weights = false;
    bool flushes = false;  ///< subnormal inputs count as zero too
    bool matrix_unit = false;
    bool centred_keys = false, centred_values = false;
    double value_max = 0;       ///< where values are centred or rounded: the largest |v|, of hidden
                                ///< keys too
    bool coarse_steps = false;  ///< nothing is claimed but by bound (a)
    bool may_split = false;     ///< keys may be split and the parts merged by their LSE
    std::int64_t tile = 0;      ///< 0: unknown
    std::int64_t chunk = 0;     ///< keys summed by themselves; 0: unknown
    std::int64_t dim_qk = 0, len_kv = 0;
    double scale = 1, softcap = 0, rope_log_base = 0;
    bool rope = false, rope_keys = false;
    int biases = 0;  ///< of mask tensor and ALiBi, how many are added
    /// That dropout adds to the way of a weight into O and dV, and of dP: the factor 1/(1-p) passes
    /// one of 1-p and one of the quotient, the product with it is one.
    int factor_roundings = 0;

    /// Roundings that a sum of n products counts for: of adjacent ones, and of any n among more.
    double dot_depth(double n) const noexcept { return matrix_unit ? 3 * n + 4 : n; }
    double sum_depth(double n) const noexcept { return matrix_unit ? 6 * n : n; }
};

/// Resolves `same`, and raises the accumulator to f64 for f64 inputs.
KernelModel resolve(const Problem& problem, const Numerics& numerics);

/// How far one computation's scores may be from the exact ones:
///   |computed_j - s_j| <= dot a_j + bias B_j + angle t_j + absolute.
struct ScoreError {
    double dot = 0;       ///< per a_j = |scale| sum_c |q_c k_jc|
    double bias = 0;      ///< per B_j = |mask_j| + |alibi_j|
    double angle = 0;     ///< per t_j = |scale| sum_pairs |q_pair||k_jpair| (|angle q| + |angle k|)
    double absolute = 0;  ///< soft cap and underflow
};

/// q_max, k_max: the largest |q_c| of the row and |k_jc| of its keys.
ScoreError score_error(const KernelModel& model, double q_max, double k_max) noexcept;

}  // namespace attest::bound
