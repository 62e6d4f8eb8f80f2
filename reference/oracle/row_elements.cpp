#include "reference/oracle/row_elements.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/rounding.hpp"
#include "reference/oracle/nonfinite.hpp"

namespace attest::oracle {

namespace {

/// The mean of all the sequence's values: where a finite number is put in the place of every hidden
/// score, n weights exp(0) = 1 are left, each off by exp_error: a sum of n products over a sum of n
/// such ones, each within chain_error(depth + 5) (the product, the rescaling, the quotient); parts
/// merged, P's rounding, epsilon and underflow as in forward_bound.cpp. Centred values are up to
/// value_max larger. What is no plain mask, or adds to the score, claims nothing.
void put_mean(const Prepared& call, const bound::KernelModel& model, HeadPlace place,
              bound::ExpectedElement* o) {
    const Problem& p = call.problem;
    const std::int64_t keys = keys_valid(p, place.batch);
    const double n = static_cast<double>(keys), ua = model.ua;
    const bool told = keys > 0 && !call.any_nonfinite && p.mask.documents_kv.empty() &&
                      p.mask.tensor.kind != MaskKind::additive;
    const double sums = bound::chain_error(model.sum_depth(n) + 5, ua);
    const double merge =
        model.may_split ? std::expm1(8 * ua * (std::log(n + 1) + 2) + 6 * model.exp_error + 4 * ua)
                        : 0;
    const double most = model.centred_values ? model.value_max : 0;
    const double off = (1 + sums) * (1 + model.exp_error) / (1 - sums) / (1 - model.exp_error);
    const double relative =
        (1 + model.up) * (1 + model.uv) * (1 + merge) * off * (1 + model.epsilon) * (1 + model.uo) -
        1;
    for (std::int64_t c = 0; c < call.dim_v; ++c) {
        if (!told || !(sums < 0.5)) {
            o[c] = claimed(Claim::nothing);
            continue;
        }
        double sum = 0, size = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
            const double v = call.value(place.batch, place.head_kv, j)[c];
            sum += v;
            size += std::abs(v);
        }
        const double own = (n + 2) * 0x1p-53 * size / n;
        const double under = 2 * model.oma * (n + 4) + 2 * model.omv +
                             2 * (model.oma + model.weight_floor + model.omp) * (size + n * most);
        o[c] = {
            .value = sum / n,
            .error = own,
            .bound = bound::evaluation * (relative * (size / n + 3 * most) + under + model.omo)};
        const bool fed = model.feeds(0, 0, model.value_max);
        if (!fed || !(size + n * most < model.max_finite / 8)) o[c] = claimed(Claim::nothing);
    }
}

}  // namespace

void put_empty(const Prepared& call, const bound::KernelModel& model, const KeyRange& range,
               HeadPlace place, bound::ExpectedElement* o, bound::ExpectedElement& lse) {
    const bool sink = call.problem.sink;
    const EmptyRow rule = call.dialect.empty_row;
    bound::ExpectedElement zero;
    const bool no_key = range.is_query && !sink;
    lse = {.value = no_key ? call.dialect.lse_of_no_key() : -infinite, .error = 0, .bound = 0};
    if (no_key && rule == EmptyRow::nan) {
        zero = claimed(Claim::nan);
        lse = claimed(Claim::nothing);
    }
    if (no_key && rule == EmptyRow::mean) {
        lse = claimed(Claim::nothing);
        return put_mean(call, model, place, o);
    }
    // refuse, of rows past lens_q too; or a sink that is no number, and nothing else.
    if ((range.is_query && sink) || rule == EmptyRow::refuse) zero = lse = claimed(Claim::nothing);
    std::fill(o, o + call.dim_v, zero);
}

bound::ExpectedElement lse_element(LseBase base, double lse, double lse_two,
                                   const bound::RowBound& bound, const OwnError& own,
                                   const ArithmeticError& arithmetic) {
    if (base == LseBase::e)
        return {
            .value = lse, .error = own.lse + double_rounding(lse), .bound = bound.lse().value()};
    constexpr double log2e = 1.4426950408889634;
    // 1.01 covers the products of two errors.
    return {.value = lse_two,
            .error = 1.01 * log2e * own.lse +
                     2 * (own.unit + arithmetic.function) * std::abs(lse_two) +
                     double_rounding(lse_two),
            .bound = bound.lse_base_two().value()};
}

void find_hull(const double* values, std::span<const std::int64_t> visible,
               std::vector<double>& low, std::vector<double>& high) {
    const std::int64_t dim_v = std::ssize(low);
    std::fill(low.begin(), low.end(), infinite);
    std::fill(high.begin(), high.end(), -infinite);
    for (const std::int64_t j : visible)
        for (std::size_t c = 0; c < low.size(); ++c) {
            const double v = values[j * dim_v + static_cast<std::int64_t>(c)];
            low[c] = std::min(low[c], v);
            high[c] = std::max(high[c], v);
        }
}

}  // namespace attest::oracle
