#pragma once
// The keys of one head in classes of equal keys, and the sums over the values of each class.

#include <cstdint>
#include <vector>

#include "reference/oracle/lanes.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest {

class CollapsedHead {
public:
    /// False where there are more than classes_max distinct keys.
    bool load(const Prepared& call, std::int64_t b, std::int64_t h_kv, std::int64_t classes_max);

    std::size_t classes() const { return representative_.size(); }
    const double* key(std::size_t r) const;  ///< [dim_qk]
    double key_max() const { return key_max_; }

    /// Takes keys [0, last) into the sums; last never falls until the next load.
    void take(std::int64_t last);
    const std::vector<double>& count() const { return count_; }
    double largest() const { return largest_; }  ///< |v| of the head

    /// [classes, stride]: sums over a class of v, |v|, and (v / unit())^2.
    std::int64_t stride() const { return stride_; }
    double unit() const { return unit_; }
    const std::vector<double>& sum() const { return sum_; }
    const std::vector<double>& size() const { return size_; }
    const std::vector<double>& square() const { return square_; }
    /// Distinct keys, and their sizes, transposed for lanes: [dim_qk, padded(classes)].
    TransposedKeys keys() const {
        return {transposed_.data(), nullptr, call_->problem.dim_qk,
                padded(static_cast<std::int64_t>(classes()))};
    }

private:
    const Prepared* call_ = nullptr;
    std::int64_t b_ = 0, h_ = 0, taken_ = 0;
    std::int64_t stride_ = 0;
    std::vector<std::int64_t> representative_;  ///< first key of each class
    std::vector<std::size_t> class_of_;
    std::vector<double> count_, sum_, size_, square_, transposed_;
    double key_max_ = 0, largest_ = 0, unit_ = 1;
};

}  // namespace attest
