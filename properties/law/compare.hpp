#pragma once
// Tensors held side by side: to the bit, and after the edits a law makes to its inputs (permuting,
// slicing, repeating along an axis). Every edit copies bits, so it never rounds.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/law/trial.hpp"
#include "reference/problem/problem.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::law {

/// One row of the output: the query `query` of head `head` of sequence `batch`.
struct Row {
    std::int64_t batch = 0, head = 0, query = 0;
    bool operator==(const Row&) const = default;
};

/// "query 3", with its head and its sequence where the problem has more than one of them.
std::string name_of(const Problem& problem, const Row& row);

/// The same element to the bit; any NaN is the same as any other, and +0 as -0. (Hidden keys may be
/// multiplied by a weight of zero and added: 0 * x is -0 for negative x, which no sum can show but
/// the sign of an exact zero. A NaN's payload and sign are not defined by IEEE 754.)
bool same_element(const Tensor& first, std::int64_t first_flat, const Tensor& second,
                  std::int64_t second_flat);

/// Flat index of the first element in which two tensors of one type and shape differ; throws
/// InternalError where type or shape differ.
std::optional<std::int64_t> first_difference(const Tensor& first, const Tensor& second);

/// The logical index [a, b, c, d] of a flat one.
Shape index_of(const Shape& shape, std::int64_t flat);

/// result[.., i, ..] = tensor[.., from[i], ..] along `axis`: a permutation, a slice or a
/// repetition. An axis of extent 1 that is shared (broadcast) is the caller's to leave alone.
Tensor gather(const Tensor& tensor, int axis, const std::vector<std::int64_t>& from);

/// gather, but a tensor whose axis is broadcast (extent 1) is returned as it is.
Tensor gather_unless_shared(const Tensor& tensor, int axis, const std::vector<std::int64_t>& from);

/// The columns of a mask of other keys; one that keys share is theirs as it is.
Tensor gather_mask_keys(const MaskTensor& how, const Tensor& mask,
                        const std::vector<std::int64_t>& from);

/// [begin, begin + 1, .., begin + count - 1]
std::vector<std::int64_t> range(std::int64_t begin, std::int64_t count);

/// A random order of 0 .. n-1 that is not the identity where n > 1; the elements from `fixed_from`
/// on stay where they are.
std::vector<std::int64_t> permutation(const Given& given, std::uint64_t stream, std::int64_t n,
                                      std::int64_t fixed_from);
std::vector<std::int64_t> permutation(const Given& given, std::uint64_t stream, std::int64_t n);

/// The bits of element `from` of `source` written to element `to` of `target` (one type).
void copy_element(Tensor& target, std::int64_t to, const Tensor& source, std::int64_t from);

/// tensor[a, b, c, d] * signs[d], exact: only the sign bit changes.
Tensor with_signs(const Tensor& tensor, const std::vector<double>& signs);

}  // namespace attest::law
