#include "reference/bound/entry_loops.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/bound/entry_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::bound::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Whole = hn::CappedTag<double, 8>;
using One = hn::CappedTag<double, 1>;  // for what does not fill a vector

template <class D>
HWY_INLINE double most_of(D d, hn::Vec<D> x) {
    return hn::GetLane(hn::MaxOfLanes(d, x));
}

/// Entries [first, last) in steps of the tag's lanes; returns where it stopped.
template <class D>
HWY_INLINE std::size_t errors_by(D d, const RowFacts& facts, const ScoreError& error,
                                 std::size_t first, double* errors, RowMaxima& most) {
    using V = hn::Vec<D>;
    const std::size_t step = hn::Lanes(d), n = facts.score.size();
    const V dot = hn::Set(d, error.dot), of_bias = hn::Set(d, error.bias);
    const V of_turn = hn::Set(d, error.angle), absolute = hn::Set(d, error.absolute);
    V top = hn::Zero(d), size = hn::Zero(d), bias = hn::Zero(d), turn = hn::Zero(d);
    V high = hn::Set(d, -infinite);
    V low = hn::Neg(high);
    std::size_t j = first;
    for (; j + step <= n; j += step) {
        const V score = hn::LoadU(d, facts.score.data() + j);
        const V magnitude = hn::LoadU(d, facts.magnitude.data() + j);
        V e = hn::MulAdd(dot, magnitude, absolute);
        if (!facts.bias.empty()) {
            const V b = hn::LoadU(d, facts.bias.data() + j);
            e = hn::MulAdd(of_bias, b, e);
            bias = hn::Max(bias, b);
        }
        if (!facts.turn.empty()) {
            const V t = hn::LoadU(d, facts.turn.data() + j);
            e = hn::MulAdd(of_turn, t, e);
            turn = hn::Max(turn, t);
        }
        hn::StoreU(e, d, errors + j);
        top = hn::Max(top, e);
        size = hn::Max(size, magnitude);
        high = hn::Max(high, score);
        low = hn::Min(low, score);
    }
    if (j == first) return j;
    most.error = std::max(most.error, most_of(d, top));
    most.magnitude = std::max(most.magnitude, most_of(d, size));
    most.bias = std::max(most.bias, most_of(d, bias));
    most.turn = std::max(most.turn, most_of(d, turn));
    const double least = -most_of(d, hn::Neg(low));
    most.score_least = first == 0 ? least : std::min(most.score_least, least);
    most.score = std::max({most.score, std::abs(most_of(d, high)), std::abs(least)});
    return j;
}

RowMaxima errors_all(const RowFacts& facts, const ScoreError& error, double* errors) {
    RowMaxima most;
    const std::size_t done = errors_by(Whole(), facts, error, 0, errors, most);
    errors_by(One(), facts, error, done, errors, most);
    return most;
}

/// At least p expm1(r): for 0 <= r < 1, expm1(r) <= r + (e - 2) r^2 <= r (1 + r). Beyond that it is
/// p e^r, taken from the score: no infinity times 0 where p has underflowed and r is large.
template <class D>
HWY_INLINE hn::Vec<D> excess_of(D d, const EntryTask& t, std::size_t j, hn::Vec<D> p,
                                hn::Vec<D> r) {
    const auto one = hn::Set(d, 1.0);
    auto excess = hn::Mul(p, hn::Mul(r, hn::Add(one, r)));
    if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(r, one)))) return excess;
    double lanes[8], relative[8];
    hn::StoreU(excess, d, lanes);
    hn::StoreU(r, d, relative);
    for (std::size_t u = 0; u < hn::Lanes(d); ++u)
        if (!(relative[u] < 1))
            lanes[u] = std::exp(std::min(700.0, t.score[j + u] - t.lse + relative[u]));
    return hn::LoadU(d, lanes);
}

template <class D>
HWY_INLINE std::size_t coefficients_by(D d, const EntryTask& t, std::size_t first, std::size_t last,
                                       EntryTotals& totals) {
    using V = hn::Vec<D>;
    const std::size_t step = hn::Lanes(d);
    const V max = hn::Set(d, t.max), per_distance = hn::Set(d, t.per_distance);
    const V common = hn::Set(d, t.common), up = hn::Set(d, t.up), omp = hn::Set(d, t.omp);
    const V of_most = hn::Set(d, t.of_most);
    const V to_centred = hn::Set(d, t.lost_centred), to_plain = hn::Set(d, t.lost_plain);
    V top = hn::Zero(d), h1 = hn::Zero(d), all_lost = hn::Zero(d);
    V centred_sum = hn::Zero(d);
    std::size_t j = first;
    for (; j + step <= last; j += step) {
        const V distance = hn::Sub(max, hn::LoadU(d, t.score + j));
        const V r =
            hn::Add(hn::MulAdd(per_distance, distance, hn::LoadU(d, t.exponent + j)), common);
        hn::StoreU(r, d, t.exponent + j);
        top = hn::Max(top, r);
        const V p = hn::LoadU(d, t.weight + j);
        const V excess = excess_of(d, t, j, p, r);
        const V most = hn::Add(p, excess);
        // P may be rounded after it was divided by l: the least it can be is p itself.
        const V lost = hn::Min(most, hn::Max(hn::Mul(up, most), omp));
        const V n = t.count == nullptr ? hn::Set(d, 1.0) : hn::LoadU(d, t.count + j);
        const V centred = hn::MulAdd(to_centred, lost, excess);
        h1 = hn::MulAdd(n, excess, h1);
        all_lost = hn::MulAdd(n, lost, all_lost);
        hn::StoreU(centred, d, t.centred + j);
        hn::StoreU(hn::MulAdd(of_most, most, hn::Mul(to_plain, lost)), d, t.plain + j);
        centred_sum = hn::MulAdd(n, centred, centred_sum);
    }
    if (j == first) return j;
    const auto sum = [&](V x) { return hn::GetLane(hn::SumOfLanes(d, x)); };
    totals.relative_max = std::max(totals.relative_max, most_of(d, top));
    totals.h1 += sum(h1);
    totals.lost += sum(all_lost);
    totals.centred_sum += sum(centred_sum);
    return j;
}

void coefficients_all(const EntryTask& task, std::size_t first, std::size_t last,
                      EntryTotals& totals) {
    const std::size_t done = coefficients_by(Whole(), task, first, last, totals);
    coefficients_by(One(), task, done, last, totals);
}

template <class D>
HWY_INLINE std::size_t outputs_by(D d, const OutputTask& t, std::size_t first, std::size_t n,
                                  double* bounds) {
    const std::size_t step = hn::Lanes(d);
    const auto no_end = hn::Set(d, infinite);
    const auto of_size = hn::Set(d, t.of_size), inverse = hn::Set(d, t.inverse);
    const auto of_ua = hn::Set(d, 2.5 * t.ua), of_total = hn::Set(d, t.of_total);
    const auto absolute = hn::Set(d, t.absolute), total_max = hn::Set(d, t.total_max);
    const auto uo = hn::Set(d, t.uo), omo = hn::Set(d, t.omo);
    std::size_t c = first;
    for (; c + step <= n; c += step) {
        const auto size = hn::Abs(hn::LoadU(d, t.exact + c));
        const auto total = hn::LoadU(d, t.total + c);
        auto e = hn::Add(hn::LoadU(d, t.spread + c), hn::LoadU(d, t.plain + c));
        e = hn::Mul(hn::MulAdd(of_size, size, e), inverse);
        const auto least = hn::LoadU(d, bounds + c);
        e = hn::IfThenElse(hn::Lt(e, least), e, least);
        e = hn::Add(e, hn::Mul(of_ua, hn::Add(size, e)));
        e = hn::Add(e, hn::MulAdd(of_total, total, absolute));
        e = hn::Add(e, hn::MulAdd(uo, hn::Add(size, e), omo));
        // Infinity times a unit of zero is no number: it claims as little.
        const auto claimed = hn::And(hn::Lt(total, total_max), hn::Lt(e, no_end));
        hn::StoreU(hn::IfThenElse(claimed, e, no_end), d, bounds + c);
    }
    return c;
}

void outputs_all(const OutputTask& task, std::size_t n, double* bounds) {
    const std::size_t done = outputs_by(Whole(), task, 0, n, bounds);
    outputs_by(One(), task, done, n, bounds);
}

}  // namespace
}  // namespace attest::bound::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::bound {

HWY_EXPORT(errors_all);
HWY_EXPORT(coefficients_all);
HWY_EXPORT(outputs_all);

RowMaxima score_errors(const RowFacts& facts, const ScoreError& error, double* errors) {
    return HWY_DYNAMIC_DISPATCH(errors_all)(facts, error, errors);
}

void coefficients(const EntryTask& task, std::size_t first, std::size_t last, EntryTotals& totals) {
    HWY_DYNAMIC_DISPATCH(coefficients_all)(task, first, last, totals);
}

void output_bounds(const OutputTask& task, std::size_t n, double* bounds) {
    HWY_DYNAMIC_DISPATCH(outputs_all)(task, n, bounds);
}

}  // namespace attest::bound
#endif
