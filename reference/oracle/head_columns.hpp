#pragma once
// The sums over keys that bound (a) needs of every column: sum centred_j |v_jc - O_c| and
// sum plain_j |v_jc|. They are the oracle's largest cost after the two products, and they need not
// be exact, only not too small: so they are taken in single precision where the kernel's own
// arithmetic is single, and rounded up.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/forward_bound.hpp"

namespace attest::oracle {

/// One row: what it sees, and where its sums go.
struct RowColumns {
    std::span<const std::int64_t> visible;
    const bound::RowBound* bound = nullptr;
    const double* centre = nullptr;             // [dim_v]
    double *spread = nullptr, *size = nullptr;  // [dim_v]
};

class HeadColumns {
public:
    /// values [keys, dim_v] of one head, which must outlive this.
    void load(const double* values, std::int64_t keys, std::int64_t dim_v, bool single);

    void sums(std::span<const RowColumns> rows);

    const std::vector<double>& total() const { return total_; }  ///< sum_j |v_jc|, every key
    double largest() const { return largest_; }                  ///< |v|

private:
    template <typename T>
    struct Lanes {
        std::vector<T> values;  // [keys, stride], over unit
        std::vector<T> centred, plain, centre;
        void take(const HeadColumns& head, std::span<const RowColumns> rows, std::int64_t first,
                  std::int64_t last);
    };
    template <typename T>
    void sum_in(Lanes<T>& lanes, std::span<const RowColumns> rows, std::int64_t first,
                std::int64_t last);

    bool single_ = false;
    std::int64_t keys_ = 0, dim_v_ = 0, stride_ = 0;
    std::vector<double> total_, unit_, inverse_;  // [dim_v]; inverse is 1 / unit
    double largest_ = 0;
    Lanes<float> single_lanes_;
    Lanes<double> double_lanes_;
    std::vector<double> spread_, size_;  // [rows, stride]
};

}  // namespace attest::oracle
