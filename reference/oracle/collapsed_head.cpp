#include "reference/oracle/collapsed_head.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace attest::oracle {

bool CollapsedHead::load(const Prepared& call, std::int64_t b, std::int64_t h_kv,
                         std::int64_t classes_max) {
    call_ = &call;
    b_ = b;
    h_ = h_kv;
    taken_ = 0;
    stride_ = padded(call.dim_v);
    representative_.clear();
    class_of_.clear();
    key_max_ = largest_ = 0;
    const std::int64_t d = call.problem.dim_qk;
    const std::size_t columns = static_cast<std::size_t>(call.dim_v);
    unit_.assign(columns, 0.0);
    const auto less = [d](const double* x, const double* y) {
        return std::lexicographical_compare(x, x + d, y, y + d);
    };
    std::map<const double*, std::size_t, decltype(less)> known(less);
    for (std::int64_t j = 0; j < call.problem.len_kv; ++j) {
        const double* k = call.key(b, h_kv, j);
        const auto [at, fresh] = known.try_emplace(k, representative_.size());
        if (fresh) {
            if (static_cast<std::int64_t>(known.size()) > classes_max) return false;
            representative_.push_back(j);
            for (std::int64_t c = 0; c < d; ++c) key_max_ = std::max(key_max_, std::abs(k[c]));
        }
        class_of_.push_back(at->second);
        const double* v = call.value(b, h_kv, j);
        for (std::size_t c = 0; c < columns; ++c) unit_[c] = std::max(unit_[c], std::abs(v[c]));
    }
    for (double& unit : unit_) {
        largest_ = std::max(largest_, unit);
        unit = power_below(unit);
    }
    inverse_.resize(columns);
    for (std::size_t c = 0; c < columns; ++c) inverse_[c] = 1 / unit_[c];
    key_unit_ = power_below(key_max_);
    count_.assign(classes(), 0.0);
    unseen_ = classes();
    total_.assign(columns, 0.0);
    stale_.assign(classes(), 0);
    const std::size_t room = classes() * static_cast<std::size_t>(stride_);
    for (std::vector<double>* sums : {&sum_, &size_, &square_}) sums->assign(room, 0.0);
    single_size_.assign(room, 0.0f);
    single_square_.assign(room, 0.0f);
    tiled_.assign(
        static_cast<std::size_t>(d * TiledKeys::room(static_cast<std::int64_t>(classes()))), 0.0);
    key_size_.assign(tiled_.size(), 0.0f);
    for (std::size_t r = 0; r < classes(); ++r)
        for (std::int64_t c = 0; c < d; ++c) {
            const double k = call.key(b, h_kv, representative_[r])[c];
            const std::size_t at =
                static_cast<std::size_t>(TiledKeys::at(d, static_cast<std::int64_t>(r), c));
            tiled_[at] = k;
            key_size_[at] = static_cast<float>(std::abs(k) / key_unit_);
        }
    return true;
}

void CollapsedHead::take(std::int64_t last) {
    if (taken_ >= last) return;
    const std::size_t columns = static_cast<std::size_t>(call_->dim_v);
    const std::size_t stride = static_cast<std::size_t>(stride_);
    for (; taken_ < last; ++taken_) {
        const std::size_t r = class_of_[static_cast<std::size_t>(taken_)], at = r * stride;
        const double* v = call_->value(b_, h_, taken_);
        if (count_[r] == 0) --unseen_;
        count_[r] += 1;
        stale_[r] = 1;
        for (std::size_t c = 0; c < columns; ++c) {
            const double size = std::abs(v[c]) * inverse_[c];
            sum_[at + c] += v[c];
            size_[at + c] += size;
            square_[at + c] += size * size;
            total_[c] += std::abs(v[c]);
        }
    }
    for (std::size_t r = 0; r < classes(); ++r) {
        if (stale_[r] == 0) continue;
        stale_[r] = 0;
        for (std::size_t x = r * stride; x < r * stride + columns; ++x) {
            single_size_[x] = static_cast<float>(size_[x]);
            single_square_[x] = static_cast<float>(square_[x]);
        }
    }
}

}  // namespace attest::oracle
