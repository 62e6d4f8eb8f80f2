#pragma once
// A call's inputs as the oracle reads them: checked against the problem, widened to double.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/kernel_model.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::oracle {

struct Prepared {
    Problem problem;
    Dialect dialect;
    std::int64_t dim_v = 0, group = 1;
    double scale = 1;
    std::vector<double> q, k, v;  ///< [batch, heads, length, dim]
    std::vector<double> mask;     ///< empty: no mask tensor
    Shape mask_shape{};
    std::vector<double> sinks, slopes;  ///< [heads_q]; empty: none
    bool any_nonfinite = false;         ///< anywhere in the above, -inf in the mask excepted

    /// [batch, heads_kv]: v of that head is stored times 2^this. Empty: as it came.
    std::vector<std::int64_t> value_exponent;

    const double* query(std::int64_t b, std::int64_t h, std::int64_t i) const;
    const double* key(std::int64_t b, std::int64_t h_kv, std::int64_t j) const;
    const double* value(std::int64_t b, std::int64_t h_kv, std::int64_t j) const;
    /// The mask tensor's element; call only where there is one.
    double mask_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
        return mask[mask_index(b, h, i, j)];
    }
    std::size_t mask_index(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
};

/// Where the mask of dropout is: nobody's to know, or in the values already (dropped.hpp).
enum class DropoutIn : std::uint8_t { call, values };

/// Throws BadInput where the problem is invalid, asks for what has no definition (dropout by a mask
/// of the kernel's own), or a tensor is absent or of another shape.
Prepared prepare(const Problem& problem, const Dialect& dialect, const TensorSet& inputs,
                 DropoutIn dropout = DropoutIn::call);

/// What the kernel declares, resolved; with the largest value where that matters.
bound::KernelModel model_of(const Prepared& call, const Numerics& numerics);

/// Scales up the values of heads whose largest is below 2^-400, by a power of two and so exactly:
/// the low words of what is computed from them then do not underflow.
void scale_values(Prepared& call);
/// Whether scale_values() would do anything.
bool has_small_values(const Prepared& call);

/// The keys query i of head h sees, in order. `keys` holds ascending keys already, or nothing.
void visible_keys(const Prepared& call, std::int64_t b, std::int64_t h, std::int64_t i,
                  std::vector<std::int64_t>& keys);

}  // namespace attest::oracle
