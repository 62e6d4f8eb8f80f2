#include "reference/oracle/head_columns.hpp"

#include <algorithm>
#include <cmath>

#include "reference/oracle/column_loops.hpp"
#include "reference/oracle/lanes.hpp"

namespace attest::oracle {

namespace {

/// Keys summed in one go: a chain short enough for single precision, values that stay in the cache.
constexpr std::int64_t chunk = 64;

void convert(const double* x, std::size_t n, float* out) {
    narrow(x, 1, static_cast<std::int64_t>(n), out);
}
void convert(const double* x, std::size_t n, double* out) {
    std::copy(x, x + n, out);
}

/// Coefficients of one row over the keys [first, last), 0 where it does not see one.
template <typename T>
void spread_out(std::span<const double> from, std::span<const std::int64_t> visible,
                std::int64_t first, std::int64_t last, T* to) {
    const std::size_t n = visible.size();
    if (n > 0 && visible.back() - visible.front() + 1 == static_cast<std::int64_t>(n)) {
        T* begin = to + (visible.front() - first);
        std::fill(to, begin, T(0));
        convert(from.data(), n, begin);
        std::fill(begin + n, to + (last - first), T(0));
        return;
    }
    std::fill(to, to + (last - first), T(0));
    for (std::size_t j = 0; j < n; ++j) to[visible[j] - first] = static_cast<T>(from[j]);
}

}  // namespace

void HeadColumns::load(const double* values, std::int64_t keys, std::int64_t dim_v, bool single) {
    single_ = single;
    keys_ = keys;
    dim_v_ = dim_v;
    stride_ = padded(dim_v);
    const std::size_t columns = static_cast<std::size_t>(dim_v);
    total_.assign(columns, 0.0);
    unit_.assign(columns, 0.0);
    for (std::int64_t j = 0; j < keys; ++j)
        for (std::size_t c = 0; c < columns; ++c) {
            const double size = std::abs(values[j * dim_v + static_cast<std::int64_t>(c)]);
            total_[c] += size;
            unit_[c] = std::max(unit_[c], size);
        }
    largest_ = unit_.empty() ? 0 : *std::max_element(unit_.begin(), unit_.end());
    inverse_.resize(columns);
    for (std::size_t c = 0; c < columns; ++c) {
        unit_[c] = single ? power_below(unit_[c]) : 1;
        inverse_[c] = 1 / unit_[c];
    }
    const auto fill = [&](auto& out) {
        using T = typename std::decay_t<decltype(out)>::value_type;
        out.assign(static_cast<std::size_t>(keys * stride_), T(0));
        for (std::int64_t j = 0; j < keys; ++j)
            for (std::size_t c = 0; c < columns; ++c)
                out[static_cast<std::size_t>(j * stride_) + c] =
                    static_cast<T>(values[j * dim_v + static_cast<std::int64_t>(c)] * inverse_[c]);
    };
    if (single)
        fill(single_lanes_.values);
    else
        fill(double_lanes_.values);
}

template <typename T>
void HeadColumns::Lanes<T>::take(const HeadColumns& head, std::span<const RowColumns> rows,
                                 std::int64_t first, std::int64_t last) {
    const std::size_t width = static_cast<std::size_t>(last - first);
    const std::size_t stride = static_cast<std::size_t>(head.stride_);
    centred.resize(rows.size() * width);
    plain.resize(rows.size() * width);
    centre.assign(rows.size() * stride, T(0));
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const RowColumns& row = rows[r];
        spread_out(row.bound->centred(), row.visible, first, last, centred.data() + r * width);
        spread_out(row.bound->plain(), row.visible, first, last, plain.data() + r * width);
        for (std::size_t c = 0; c < head.unit_.size(); ++c)
            centre[r * stride + c] = static_cast<T>(row.centre[c] * head.inverse_[c]);
    }
}

template <typename T>
void HeadColumns::sum_in(Lanes<T>& lanes, std::span<const RowColumns> rows, std::int64_t first,
                         std::int64_t last) {
    lanes.take(*this, rows, first, last);
    for (std::int64_t j = first; j < last; j += chunk)
        add_spread(Spread<T>{.rows = static_cast<std::int64_t>(rows.size()),
                             .keys = std::min(chunk, last - j),
                             .stride = stride_,
                             .values = lanes.values.data() + j * stride_,
                             .centred = lanes.centred.data() + (j - first),
                             .plain = lanes.plain.data() + (j - first),
                             .weight_stride = last - first,
                             .centre = lanes.centre.data(),
                             .spread = spread_.data(),
                             .size = size_.data(),
                             .fresh = j == first});
}

// In double the loss is below 2^-22 (fewer than 2^30 keys), which the theorem allows for.
//
// In single: x = v / unit_c and o = O_c / unit_c are below 2, and where the row's proof holds at
// all w_j = centred_j is below 2 and k_j = plain_j below 8. Rounding one to single moves it by
// 2^-24 of itself or, below 2^-126, by 2^-150. From the rounded ones the difference d_j is rounded
// once, so
//   |x - o| <= d_j (1 + 2^-23) + 2^-24 (|x| + |o|) + 2^-148 <= d_j (1 + 2^-21) + 2^-22 |o| +
//   2^-147.
// A sum over a chunk has 64 products and additions: S (1 + chain_error(66)) and 2^-150 a product
// where it is subnormal. Together, with d_j < 4, n keys, W = sum w_j:
//   sum w_j |x_j - o| <= S (1 + 2^-17) + 2^-21 |o| W + n 2^-143,   and the same for k_j |x_j|
// without the middle term. To 2^17 keys the last is at most half of 2 weight_floor sum |v_jc|,
// which the bound holds besides, where weight_floor is 2^-126.
void HeadColumns::sums(std::span<const RowColumns> rows) {
    std::int64_t first = keys_, last = 0;
    for (const RowColumns& row : rows) {
        if (row.visible.empty()) continue;
        first = std::min(first, row.visible.front());
        last = std::max(last, row.visible.back() + 1);
    }
    spread_.resize(rows.size() * static_cast<std::size_t>(stride_));
    size_.resize(spread_.size());
    if (first >= last) {
        std::fill(spread_.begin(), spread_.end(), 0.0);
        std::fill(size_.begin(), size_.end(), 0.0);
    } else if (single_) {
        sum_in(single_lanes_, rows, first, last);
    } else {
        sum_in(double_lanes_, rows, first, last);
    }
    const double upward = single_ ? 1 + 0x1p-17 : 1, least = single_ ? 0x1p-143 : 0;
    const double of_centre = single_ ? 0x1p-21 : 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const RowColumns& row = rows[r];
        const double n = static_cast<double>(row.visible.size());
        UpwardTask task{.sum = spread_.data() + r * static_cast<std::size_t>(stride_),
                        .unit_of = unit_.data(),
                        .centre = row.centre,
                        .upward = upward,
                        .least = n * least,
                        .of_centre = of_centre * row.bound->centred_sum()};
        upward_sums(task, unit_.size(), row.spread);
        task.sum = size_.data() + r * static_cast<std::size_t>(stride_);
        task.of_centre = 0;
        upward_sums(task, unit_.size(), row.size);
    }
}

}  // namespace attest::oracle
