#include "reference/oracle/collapsed_head.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace attest {

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
        for (std::int64_t c = 0; c < call.dim_v; ++c) largest_ = std::max(largest_, std::abs(v[c]));
    }
    unit_ = largest_ > 0 ? std::ldexp(1.0, std::clamp(std::ilogb(largest_), -1000, 1000)) : 1;
    count_.assign(classes(), 0.0);
    for (std::vector<double>* sums : {&sum_, &size_, &square_})
        sums->assign(classes() * static_cast<std::size_t>(stride_), 0.0);
    const std::size_t columns = static_cast<std::size_t>(keys().stride);
    transposed_.assign(static_cast<std::size_t>(d) * columns, 0.0);
    for (std::size_t r = 0; r < classes(); ++r)
        for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c)
            transposed_[c * columns + r] = call.key(b, h_kv, representative_[r])[c];
    return true;
}

void CollapsedHead::take(std::int64_t last) {
    for (; taken_ < last; ++taken_) {
        const std::size_t r = class_of_[static_cast<std::size_t>(taken_)],
                          at = r * static_cast<std::size_t>(stride_);
        const double* v = call_->value(b_, h_, taken_);
        count_[r] += 1;
        for (std::size_t c = 0; c < static_cast<std::size_t>(call_->dim_v); ++c) {
            const double scaled = v[c] / unit_;
            sum_[at + c] += v[c];
            size_[at + c] += std::abs(v[c]);
            square_[at + c] += scaled * scaled;
        }
    }
}

}  // namespace attest
