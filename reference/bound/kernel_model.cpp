#include "reference/bound/kernel_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/rounding.hpp"

namespace attest::bound {

namespace {

double smallest_normal(const FormatTraits& t) {
    return std::ldexp(1.0, t.exponent_min);
}

/// Rounding x below the smallest normal number moves it by at most half the smallest subnormal,
/// cutting it off by less than all of it, flushing it by less than the smallest normal number. (In
/// f64 half the smallest subnormal is no double: the whole one stands for it.)
double underflow(const FormatTraits& t, bool flushes) {
    if (flushes) return smallest_normal(t);
    return std::max(t.unit_roundoff * smallest_normal(t),
                    std::numeric_limits<double>::denorm_min());
}

constexpr double single = 0x1p-24;  ///< f32's unit roundoff

/// C, C++ and GPUs make a 16-bit number of a double by way of f32, and so do most libraries.
double by_way_of_single(const FormatTraits& t, const FormatTraits& a) {
    return a.unit_roundoff < single && t.unit_roundoff > single ? single : 0;
}

/// (1 + u)(1 + by way) - 1 <= u + 1.01 by way.
double unit_of(const FormatTraits& t, const FormatTraits& a) {
    return t.unit_roundoff + 1.01 * by_way_of_single(t, a);
}

/// A step that is rounded coarser than to `a`; what it may not exceed.
double rounded_to(const FormatTraits& t, const FormatTraits& a, bool flushes, double& unit,
                  double& under) {
    if (!(t.unit_roundoff > a.unit_roundoff)) return a.max_finite;
    unit = unit_of(t, a);
    under = underflow(t, flushes);
    return std::min(t.max_finite, a.max_finite);
}

/// The steps that a kernel declares apart.
void resolve_steps(const Problem& problem, const Numerics& n, const FormatTraits& a,
                   KernelModel& m) {
    const auto step = [&](NumberFormat format, double& unit, double& under) {
        return rounded_to(traits(resolved(format, problem.format_q)), a, n.flush_subnormals, unit,
                          under);
    };
    m.score_max = step(n.scores, m.us, m.oms);
    m.query_max = step(n.query, m.uq, m.omq);
    step(n.rotation, m.ur, m.omr);
    m.bias_max = step(n.bias, m.ub, m.omb);
    if (group_size(problem) > 1) m.heads_max = step(n.gradient_heads, m.ugh, m.omgh);
    m.epsilon = std::max(0.0, n.epsilon);
    m.centred_keys = n.centred_keys;
    m.centred_values = n.centred_values;
    m.centred_max =
        std::min(a.max_finite, traits(resolved(n.weights, problem.format_q)).max_finite);
    m.coarse_steps = has_coarse_steps(n);
}

/// Whether every number of `from` is one of `to`.
bool holds(const FormatTraits& to, const FormatTraits& from) {
    return from.significand_bits <= to.significand_bits && from.exponent_min >= to.exponent_min &&
           from.max_finite <= to.max_finite;
}

/// What is rounded a second time, as an operand; `first` is what it was rounded to.
void round_again(const KernelModel& m, const FormatTraits& fed, const FormatTraits& first,
                 double& unit, double& under) {
    if (unit > 0 && holds(fed, first)) return;
    unit += m.uf * (1 + unit);
    under += m.omf;
}

/// Two products of the forward pass, and those of the backward pass, take rounded operands. q may
/// have been multiplied by the scale before, and k been turned.
void resolve_operands(const Problem& problem, const Numerics& n, const FormatTraits& a,
                      KernelModel& m) {
    const FormatTraits fed = traits(n.operands);
    m.fed_max = rounded_to(fed, a, n.flush_subnormals, m.uf, m.omf);
    if (m.uf == 0) return;
    const FormatTraits weights = traits(resolved(n.weights, problem.format_q));
    if (!holds(fed, traits(problem.format_kv))) m.uv = m.uf;
    // The sum of the weights may be of P as it was rounded first, or of what the unit was fed.
    if (m.up == 0) {
        m.up = m.uf;
        m.omp = m.omf;
    } else if (!holds(fed, weights)) {
        m.uv += m.uf * (1 + m.uv);
        m.omp += m.omf;
    }
    const auto own = [&](NumberFormat f) {
        return traits(resolved(f == NumberFormat::same ? n.weights : f, problem.format_q));
    };
    round_again(m, fed, own(n.gradient_weights), m.ugp, m.omgp);
    round_again(m, fed, own(n.gradient_scores), m.ugs, m.omgs);
    m.gradient_max = std::min(m.gradient_max, m.fed_max);
}

/// Each value passes the rounding of its part's output: one factor more of whichever sum that is
/// merged into, as where a unit rounds v. What underflows is weighed by the part's share of all
/// weights where the output was divided by its sum, by the weight of its maximum where it was not:
/// at most one a key. f16 is of outputs that were divided.
void resolve_partials(const Problem& problem, const Numerics& n, const FormatTraits& a,
                      KernelModel& m) {
    double unit = 0, under = 0;
    m.omv = m.omf;
    const double most = rounded_to(traits(resolved(n.partials, problem.format_q)), a,
                                   n.flush_subnormals, unit, under);
    if (unit == 0) return;
    m.uv += unit * (1 + m.uv);
    const bool divided = most < 0x1p100;
    m.omv += under * (divided ? 1 : static_cast<double>(std::max<std::int64_t>(1, problem.len_kv)));
    m.part_max = most;
}

}  // namespace

bool KernelModel::feeds(double queries, double keys, double values) const noexcept {
    if (part_max > 0 && !(2 * values < part_max)) return false;
    if (uf == 0) return true;
    constexpr double log2e = 1.45;  // and a little more
    const double most = std::max(1.0, log2e * scale) * std::max(queries, keys);
    return std::max(most, values) < fed_max;
}

KernelModel resolve(const Problem& problem, const Numerics& numerics) {
    const bool wide = problem.format_q == Precision::f64 || problem.format_kv == Precision::f64;
    Precision accumulate = resolved(numerics.accumulate, problem.format_q);
    if (wide) accumulate = Precision::f64;
    const FormatTraits a = traits(accumulate);

    KernelModel m;
    m.ua = a.unit_roundoff;
    m.oma = underflow(a, numerics.flush_subnormals);
    // A library's exp of f32 may flush; one of half precision is worth having only where it does
    // not: it is off by its ulps of the smallest number there.
    const bool half = a.unit_roundoff > 0x1p-24;
    m.weight_floor = half && !numerics.flush_subnormals
                         ? 2 * m.oma * (1 + std::max(0.0, numerics.exp_ulp))
                         : smallest_normal(a);
    m.max_finite = a.max_finite;
    const FormatTraits w = traits(resolved(numerics.weights, problem.format_q));
    if (w.unit_roundoff > a.unit_roundoff) {
        m.up = unit_of(w, a);
        m.omp = underflow(w, numerics.flush_subnormals);
    }
    const auto rounding = [&](NumberFormat declared, double& u, double& om) {
        if (declared == NumberFormat::same) declared = numerics.weights;
        const FormatTraits g = traits(resolved(declared, problem.format_q));
        if (!(g.unit_roundoff > a.unit_roundoff)) return a.max_finite;
        u = unit_of(g, a);
        om = underflow(g, numerics.flush_subnormals);
        return g.max_finite;
    };
    rounding(numerics.gradient_weights, m.ugp, m.omgp);
    m.gradient_max = rounding(numerics.gradient_scores, m.ugs, m.omgs);
    const FormatTraits stored = traits(problem.format_o);
    const FormatTraits o = traits(resolved(numerics.output, problem.format_o));
    m.by_way = by_way_of_single(traits(problem.format_q), a);
    m.uo = by_way_of_single(stored, a);
    if (o.unit_roundoff > stored.unit_roundoff) {
        m.uo += unit_of(o, a);
        m.omo = underflow(o, numerics.flush_subnormals);
    }
    if (numerics.flush_subnormals) m.omo = std::max(m.omo, smallest_normal(stored));
    // An ulp is at most 2u of the number it belongs to. The logarithm is allowed 2 ulp.
    m.exp_error = 2 * a.unit_roundoff * std::max(0.0, numerics.exp_ulp);
    m.log_error = 4 * a.unit_roundoff;
    m.sums_rounded_weights = numerics.sum_weights == SumWeights::rounded && m.up > 0;
    m.flushes = numerics.flush_subnormals;
    m.matrix_unit = numerics.matrix_unit;
    // Who declares how sums are composed splits the keys only where it is asked to; who declares
    // its tiles, unless it is asked not to. Lanes and warps of all others may merge parts whatever
    // is asked for.
    m.may_split = problem.splits > 1 ||
                  (numerics.sum_chunk == 0 && (problem.splits == 0 || numerics.tile <= 0));
    m.tile = std::max<std::int64_t>(0, numerics.tile);
    m.chunk = std::max<std::int64_t>(0, numerics.sum_chunk);
    m.dim_qk = problem.dim_qk;
    m.len_kv = problem.len_kv;
    m.scale = std::abs(effective_scale(problem));
    m.softcap = problem.softcap;
    m.rope = problem.rope.style != RopeStyle::none;
    m.rope_keys = m.rope && !(problem.cache.present && problem.cache.keys_rotated);
    m.rope_log_base = m.rope ? std::abs(std::log(problem.rope.base)) : 0;
    resolve_steps(problem, numerics, a, m);
    resolve_operands(problem, numerics, a, m);
    resolve_partials(problem, numerics, a, m);
    m.biases = (problem.mask.tensor.kind == MaskKind::additive ? 1 : 0) + (problem.alibi ? 1 : 0);
    m.factor_roundings = problem.dropout.p > 0 ? 3 : 0;
    return m;
}

// Dot: each product q_c k_c passes at most d roundings (its own and the sum's) and four more: the
// scale or its product with log2(e), log2(e) itself, the multiplication, and a conversion; one more
// for every bias added, two for the division by the cap and its reciprocal. In any order the error
// is chain_error(d + those) a_j. (README.md, "Error of a score")
//
// Matrix unit: it takes products in blocks of at least four, aligns them and what was summed before
// to the largest of them, M, cuts each off below 2u M (u = 2^-24: no fewer bits than f32 has), adds
// exactly, and truncates the result. Products are exact; what is zero loses nothing. A block with z
// products that are not zero so loses at most 2u (z + 2) S, S >= M the sum of all sizes. n products
// in B such blocks: 2 (n + 2 B) u S. Adjacent, B <= n/4 + 1: 3n + 4 roundings. Any n keys that a
// row sees: B <= n, 6n roundings. (Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA
// tensor cores, PeerJ Computer Science 7, 2021: blocks of 4 on V100, 8 on A100; 16 on H100.)
//
// Bias: log2(e), the product with it, slope times distance, and the additions: 4 + number of
// biases.
//
// Cap: tanh computed as (e - 1)/(e + 1), e = exp(2y): an error r of e moves it by 2e/(e+1)^2 r <=
// r/2, the three operations by 3u (|tanh| <= 1), the rounding of 2y by 2u |y| / cosh(y)^2 < u; a
// library's tanh, 2 ulp, is within 4u. With the product by c: c (r/2 + 7u). tanh is a contraction,
// so what came before passes with a factor of at most 1.
//
// RoPE: frequency = base^(-2c/dims) in u: the exponent's rounding and its product with log(base)
// cost 2u log(base), pow and division 6u, times the position u more: the angle t is off by
// |t| (2 log(base) + 7) u. Wrong by dt a pair of length r moves by r dt; sin and cos are within 4u
// each (a vector of at most 5.7u r), the rotation's three operations within 2.1u r a coordinate (3u
// r): 9u r. If the rotated operands are rounded to the format of P, as operands of a matrix unit
// are, up r more. The product of two pairs moves by at most r_q r_k times the sum of both, where
// sum r_q r_k >= sum |q_c k_c| is what a_j is made of here; 1.01 covers the products of two errors
// where they are below 1/100.
//
// Steps that are declared apart (us, uq, ur, ub; 0 where not): q is rounded before the product, or
// before and after its turn; a score after the product, the scale, the cap and each bias, no step
// larger than a_j + B_j, where the cap's tanh may be a library's, 2 ulp, of that format: c 4 us;
// mask, slopes and sink once. cos and sin rounded to ur turn a pair of length r wrong by at most
// sqrt(2) ur r and, where they underflow, 2 omr r; the three operations of the turn cost 3 ur r
// more: 4.5 ur. Angles are computed in f32 at least. All relative errors multiply.
//
// Operands (uf; cut off at TF32 counts as one of 2^-10): q, with its scale or without, and k are
// rounded once each before the product: 2 uf of a_j, and omf times the other operand, or omf, a
// coordinate, before the scale or after it.
//
// Centred keys: softmax is invariant to one number c added to all scores of a row, here -q.mean(k):
// the same key vector is taken off, whatever it is worth. k - mean(k) is at most 2 k_max and so its
// magnitude a_j at most a_j + A, A = |scale| d q_max k_max; it is rounded once to ua, and to the
// format of P as an operand.
//
// Underflow: d products lose oma each, times scale; if q (or k) was scaled first, oma d k_max (or
// d q_max). Flushed inputs lose the smallest normal number times the other factor.
ScoreError score_error(const KernelModel& model, double q_max, double k_max) noexcept {
    const double d = static_cast<double>(model.dim_qk);
    const double u = model.ua;
    ScoreError e;
    e.dot = chain_error(model.dot_depth(d) + 4 + model.biases + (model.softcap > 0 ? 2 : 0), u);
    const double under = model.scale * d;  // times what each operand is off by, times the other
    if (model.rope) {
        const double one = 9 * u + model.up + 4.5 * model.ur + 2 * model.omr;
        e.dot += std::max(1.01, 1 + one) * (model.rope_keys ? 2 : 1) * one * (1 + e.dot);
        e.angle = 1.01 * (2 * model.rope_log_base + 7) * std::max(u, std::min(model.ur, 0x1p-24));
    }
    e.bias = chain_error(4 + model.biases, u);
    e.absolute = model.softcap > 0 ? model.softcap * (model.exp_error / 2 + 7 * u) : 0;
    e.absolute += 2 * d * model.oma * (model.scale + q_max + k_max) + 4 * model.oma;
    if (model.flushes) e.absolute += model.scale * model.weight_floor * d * (q_max + k_max);
    if (!model.coarse_steps) return e;
    const double steps = 2 + model.biases + (model.softcap > 0 ? 1 : 0);
    const double of_q = chain_error(2, model.uq), of_s = chain_error(steps, model.us);
    const double more = (1 + of_q) * (1 + of_s) * (1 + chain_error(2, model.uf)) - 1;
    e.dot += (1 + e.dot) * more;
    e.angle *= 1 + more;
    e.bias += (1 + e.bias) * (model.ub + of_s + model.ub * of_s);
    e.absolute = (1 + more) *
                 (e.absolute + 4 * model.softcap * model.us +
                  5 * under * std::max(model.oma, model.omr) * (model.rope ? q_max + k_max : 0) +
                  1.01 * d * k_max * model.omq * (1 + model.scale) +
                  1.01 * d * (q_max + k_max + model.omf) * model.omf * (1 + model.scale) +
                  model.oms * (model.scale + steps) + 2 * model.omb);
    // Keys less their mean are at most twice as large as the largest; the difference is rounded
    // twice, the second time to the format of P.
    if (model.centred_keys) {
        const double of_k = 2 * u + model.up;
        e.dot += of_k * (1 + e.dot);
        e.absolute += 1.01 * (e.dot + of_k) * under * q_max * k_max + under * q_max * model.omp;
    }
    return e;
}

}  // namespace attest::bound
