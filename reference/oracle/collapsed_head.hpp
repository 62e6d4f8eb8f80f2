#pragma once
// The keys of one head in classes of equal keys, and the sums over the values of each class.

#include <cstdint>
#include <vector>

#include "reference/oracle/lanes.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::oracle {

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
    std::size_t unseen() const { return unseen_; }  ///< classes no key of is taken
    double largest() const { return largest_; }     ///< |v| of the head

    /// [classes, stride]: sums over a class of v.
    std::int64_t stride() const { return stride_; }
    const std::vector<double>& sum() const { return sum_; }
    /// The same of |v| / unit and (v / unit)^2, in single precision, with the unit of each column;
    /// what is taken from them is rounded up afterwards.
    const std::vector<float>& size() const { return single_size_; }
    const std::vector<float>& square() const { return single_square_; }
    const std::vector<double>& unit() const { return unit_; }
    const std::vector<double>& total() const { return total_; }  ///< of |v|, a column
    /// Distinct keys, and |k| / key_unit(), in tiles.
    TiledKeys keys() const { return {tiled_.data(), nullptr, call_->problem.dim_qk}; }
    const std::vector<float>& key_size() const { return key_size_; }
    double key_unit() const { return key_unit_; }

private:
    const Prepared* call_ = nullptr;
    std::int64_t b_ = 0, h_ = 0, taken_ = 0;
    std::int64_t stride_ = 0;
    std::vector<std::int64_t> representative_;  ///< first key of each class
    std::vector<std::size_t> class_of_;
    std::size_t unseen_ = 0;
    std::vector<std::uint8_t> stale_;  ///< classes whose single sums are out of date
    std::vector<double> count_, sum_, size_, square_, tiled_, unit_, inverse_, total_;
    std::vector<float> single_size_, single_square_, key_size_;
    double key_max_ = 0, key_unit_ = 1, largest_ = 0;
};

}  // namespace attest::oracle
