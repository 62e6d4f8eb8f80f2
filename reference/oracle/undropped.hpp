#pragma once
// A call whose weights were dropped by a known mask as one without dropout: every row of every head
// of a group gets channels of values of its own, 0 where its weight was dropped (dropped.hpp).

#include <cstdint>

#include "reference/bound/expected.hpp"
#include "reference/problem/problem.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::oracle {

class Undropped {
public:
    /// `inputs` hold dropout_keep; both have to outlive it. Throws BadInput where they do not.
    Undropped(const Problem& problem, const TensorSet& inputs);

    /// Still says what was dropped, for the roundings of the factor.
    const Problem& problem() const { return problem_; }
    const TensorSet& inputs() const { return inputs_; }

    /// The answer to the call, of the answer to this one.
    bound::Expected folded(bound::Expected wide) const;

    /// Channel of row i of query head h that stands for channel c.
    std::int64_t channel(std::int64_t h, std::int64_t i, std::int64_t c) const;
    bool keeps(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
        return keep_.bits(keep_.flat(b, h, i, j)) != 0;
    }
    /// Over each row and channel: visit(b, h, i, c).
    template <typename Visit>
    void each_row(Visit visit) const {
        for (std::int64_t b = 0; b < was_.batch; ++b)
            for (std::int64_t h = 0; h < was_.heads_q; ++h)
                for (std::int64_t i = 0; i < was_.len_q; ++i)
                    for (std::int64_t c = 0; c < value_dim(was_); ++c) visit(b, h, i, c);
    }

private:
    void spread_values();
    void spread_output_gradient();
    void divide_lse_gradient();

    const Problem& was_;
    Problem problem_;
    TensorSet inputs_;
    const Tensor& keep_;
};

/// The mask of such a call. Throws BadInput where the inputs hold none of its shape.
const Tensor& keep_of(const Problem& problem, const TensorSet& inputs);

/// What a kernel that is within e of the undropped is within of the dropped: 1/(1-p) times it.
bound::ExpectedElement times_factor(const Problem& problem, bound::ExpectedElement e);

}  // namespace attest::oracle
