#include "reference/oracle/column_loops.hpp"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/oracle/column_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::oracle::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Whole = hn::CappedTag<double, 8>;
using One = hn::CappedTag<double, 1>;  // for what does not fill a vector

template <class Step>
HWY_INLINE void over(std::size_t n, Step step) {
    std::size_t c = 0;
    for (; c + hn::Lanes(Whole()) <= n; c += hn::Lanes(Whole())) step(Whole(), c);
    for (; c < n; ++c) step(One(), c);
}

template <class D>
HWY_INLINE hn::Vec<D> rounding_of(D d, hn::Vec<D> value) {
    const auto least = hn::Set(d, std::numeric_limits<double>::denorm_min());
    return hn::Add(hn::Mul(hn::Set(d, 0x1p-53), hn::Abs(value)), least);
}

void upward_all(const UpwardTask& t, std::size_t n, double* out) {
    over(n, [&](auto d, std::size_t c) {
        const auto sum =
            hn::Add(hn::Mul(hn::LoadU(d, t.sum + c), hn::Set(d, t.upward)), hn::Set(d, t.least));
        const auto unit = hn::LoadU(d, t.unit_of + c);
        const auto centre = hn::Mul(hn::Abs(hn::LoadU(d, t.centre + c)), hn::Set(d, t.of_centre));
        hn::StoreU(hn::Add(hn::Mul(unit, sum), centre), d, out + c);
    });
}

// The theorem of own_error.cpp: 1.01 > 1.0001 / ((1-g)(1-H)).
void errors_all(const OwnError& own, const OwnTask& t, std::size_t n, double* error) {
    const double relative = 1.01 * (2 * own.weight + 2 * own.sum + 2 * own.unit);
    over(n, [&](auto d, std::size_t c) {
        const auto value = hn::LoadU(d, t.value + c), most = hn::Set(d, t.value_max);
        auto mass = hn::Mul(hn::LoadU(d, t.size + c), hn::Set(d, t.share));
        mass = hn::IfThenElse(hn::Lt(mass, most), mass, most);  // where it is not a number, too
        auto e = hn::Mul(hn::Set(d, relative), hn::Max(mass, hn::Abs(value)));
        e = hn::Add(e, hn::Mul(hn::Set(d, own.absolute), hn::LoadU(d, t.total + c)));
        e = hn::Add(e, hn::Set(d, own.once));
        hn::StoreU(hn::Add(e, rounding_of(d, value)), d, error + c);
    });
}

double squares_all(const double* count, const double* centred, const double* weight,
                   std::size_t n) {
    double total = 0;
    over(n, [&](auto d, std::size_t r) {
        const auto p = hn::LoadU(d, weight + r), x = hn::LoadU(d, centred + r);
        const auto term = hn::Div(hn::Mul(hn::LoadU(d, count + r), hn::Mul(x, x)), p);
        const auto seen = hn::IfThenElseZero(hn::Gt(p, hn::Zero(d)), term);
        total += hn::GetLane(hn::SumOfLanes(d, seen));
    });
    return total;
}

void deviations_all(const DeviationTask& t, std::size_t n, double* spread, double* size) {
    over(n, [&](auto d, std::size_t c) {
        const hn::Rebind<float, decltype(d)> single;
        const auto upward = hn::Set(d, t.upward), least = hn::Set(d, t.least);
        const auto unit = hn::LoadU(d, t.unit + c);
        const auto plain = hn::PromoteTo(d, hn::LoadU(single, t.plain + c));
        hn::StoreU(hn::Mul(unit, hn::Add(hn::Mul(plain, upward), least)), d, size + c);
        auto square = hn::PromoteTo(d, hn::LoadU(single, t.square + c));
        square = hn::Add(hn::Mul(square, upward), least);
        const auto value = hn::Div(hn::LoadU(d, t.value + c), unit);
        auto around = hn::Max(hn::Zero(d), hn::Sub(square, hn::Mul(value, value)));
        around = hn::Add(around, hn::Mul(hn::Set(d, t.lost), square));
        const auto width = hn::Mul(hn::Mul(hn::Set(d, t.factor), hn::Sqrt(around)), unit);
        const auto lost = hn::Mul(hn::Set(d, t.floor), hn::LoadU(d, t.total + c));
        hn::StoreU(hn::Add(width, lost), d, spread + c);
    });
}

double elements_all(const double* value, const double* error, const double* bound, std::size_t n,
                    bound::ExpectedElement* out) {
    static_assert(sizeof(bound::ExpectedElement) == 3 * sizeof(double));
    double worst = 0;
    over(n, [&](auto d, std::size_t c) {
        const auto zero = hn::Zero(d);
        const auto no_end = hn::Set(d, infinite);
        const auto raw = hn::LoadU(d, value + c), b = hn::LoadU(d, bound + c);
        const auto number = hn::Lt(hn::Abs(raw), no_end);
        const auto v = hn::IfThenElse(number, raw, zero);
        const auto e = hn::IfThenElse(number, hn::LoadU(d, error + c), no_end);
        hn::StoreInterleaved3(v, e, b, d, &out[c].value);
        const auto beyond = hn::Sub(e, rounding_of(d, v));
        const auto counts = hn::And(hn::Gt(beyond, zero), hn::Lt(b, no_end));
        const auto ratio = hn::IfThenElse(counts, hn::Div(beyond, b), zero);
        worst = std::max(worst, hn::GetLane(hn::MaxOfLanes(d, ratio)));
    });
    return worst;
}

}  // namespace
}  // namespace attest::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::oracle {

HWY_EXPORT(upward_all);
HWY_EXPORT(errors_all);
HWY_EXPORT(squares_all);
HWY_EXPORT(deviations_all);
HWY_EXPORT(elements_all);

void upward_sums(const UpwardTask& task, std::size_t n, double* out) {
    HWY_DYNAMIC_DISPATCH(upward_all)(task, n, out);
}

void output_errors(const OwnError& own, const OwnTask& task, std::size_t n, double* error) {
    if (own.weight < 1) return HWY_DYNAMIC_DISPATCH(errors_all)(own, task, n, error);
    std::fill(error, error + n, infinite);
}

double weighted_squares(const double* count, const double* centred, const double* weight,
                        std::size_t n) {
    return HWY_DYNAMIC_DISPATCH(squares_all)(count, centred, weight, n);
}

void deviations(const DeviationTask& task, std::size_t n, double* spread, double* size) {
    HWY_DYNAMIC_DISPATCH(deviations_all)(task, n, spread, size);
}

double put_elements(const double* value, const double* error, const double* bound, std::size_t n,
                    bound::ExpectedElement* out) {
    return HWY_DYNAMIC_DISPATCH(elements_all)(value, error, bound, n, out);
}

}  // namespace attest::oracle
#endif
