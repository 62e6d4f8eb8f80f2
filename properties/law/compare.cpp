#include "properties/law/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "reference/problem/errors.hpp"

namespace attest::law {

std::string name_of(const Problem& problem, const Row& row) {
    std::string text = fmt::format("query {}", row.query);
    if (problem.heads_q > 1) text += fmt::format(" of head {}", row.head);
    if (problem.batch > 1) text += fmt::format(" of sequence {}", row.batch);
    return text;
}

bool same_element(const Tensor& first, std::int64_t first_flat, const Tensor& second,
                  std::int64_t second_flat) {
    require(first.type() == second.type(), "only elements of one type are compared to the bit");
    if (first.bits(first_flat) == second.bits(second_flat)) return true;
    const double a = first.get(first_flat), b = second.get(second_flat);
    return (std::isnan(a) && std::isnan(b)) || (a == 0 && b == 0);
}

std::optional<std::int64_t> first_difference(const Tensor& first, const Tensor& second) {
    require(first.type() == second.type() && first.shape() == second.shape(),
            "only tensors of one type and shape are compared to the bit");
    const auto a = first.bytes(), b = second.bytes();
    if (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0) return std::nullopt;
    for (std::int64_t i = 0; i < first.size(); ++i)
        if (!same_element(first, i, second, i)) return i;
    return std::nullopt;
}

Shape index_of(const Shape& shape, std::int64_t flat) {
    Shape index{};
    for (int axis = 3; axis >= 0; --axis) {
        index[axis] = flat % shape[axis];
        flat /= shape[axis];
    }
    return index;
}

Tensor gather(const Tensor& tensor, int axis, const std::vector<std::int64_t>& from) {
    Shape shape = tensor.shape();
    std::int64_t inner = 1, outer = 1;
    for (int a = 0; a < axis; ++a) outer *= shape[a];
    for (int a = axis + 1; a < 4; ++a) inner *= shape[a];
    const std::int64_t extent = shape[axis], count = static_cast<std::int64_t>(from.size());
    for (const std::int64_t i : from)
        require(i >= 0 && i < extent, "gather takes only indices that the axis has");
    shape[axis] = count;
    Tensor result(tensor.type(), shape);
    const auto block = static_cast<std::size_t>(inner) * size_of(tensor.type());
    if (block == 0) return result;
    const std::byte* source = tensor.bytes().data();
    std::byte* target = result.bytes().data();
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(target + static_cast<std::size_t>(o * count + i) * block,
                        source + static_cast<std::size_t>(o * extent + from[i]) * block, block);
    return result;
}

Tensor gather_unless_shared(const Tensor& tensor, int axis, const std::vector<std::int64_t>& from) {
    return tensor.shape()[axis] == 1 ? tensor : gather(tensor, axis, from);
}

Tensor gather_mask_keys(const MaskTensor& how, const Tensor& mask,
                        const std::vector<std::int64_t>& from) {
    return how.shared_keys ? mask : gather(mask, 3, from);
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t count) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) indices[i] = begin + i;
    return indices;
}

std::vector<std::int64_t> permutation(const Given& given, std::uint64_t stream, std::int64_t n,
                                      std::int64_t fixed_from) {
    std::vector<std::int64_t> order = range(0, n);
    for (std::int64_t i = fixed_from - 1; i > 0; --i)
        std::swap(order[i], order[given.random_below(stream, i, i + 1)]);
    if (fixed_from > 1 && std::is_sorted(order.begin(), order.end())) std::swap(order[0], order[1]);
    return order;
}

std::vector<std::int64_t> permutation(const Given& given, std::uint64_t stream, std::int64_t n) {
    return permutation(given, stream, n, n);
}

void copy_element(Tensor& target, std::int64_t to, const Tensor& source, std::int64_t from) {
    require(target.type() == source.type(), "elements are copied between tensors of one type");
    target.set_bits(to, source.bits(from));
}

Tensor with_signs(const Tensor& tensor, const std::vector<double>& signs) {
    const auto channels = static_cast<std::size_t>(tensor.shape()[3]);
    require(signs.size() == channels, "one sign a channel");
    Tensor result = tensor;
    for (std::int64_t i = 0; i < result.size(); ++i)
        if (signs[static_cast<std::size_t>(i) % channels] < 0) result.set(i, -result.get(i));
    return result;
}

}  // namespace attest::law
