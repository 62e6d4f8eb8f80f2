#pragma once
// Where the elements of one tensor lie in a call: strides from a Layout, and the copying
// between a dense logical tensor and that memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/problem/problem.hpp"

namespace attest::worker {

/// A tensor's memory, in elements from its first one. Rows are the innermost runs of memory; they
/// follow each other every row_stride elements.
struct Placement {
    ElementType type = ElementType::f32;
    int ndim = 4;
    Shape shape{};
    Shape stride{};
    std::int64_t lead = 0;  ///< elements of poison before the first
    std::int64_t span = 0;  ///< elements from the first to one past the last; 0 where empty
    std::int64_t rows = 0, row = 0, row_stride = 0;

    std::size_t lead_bytes() const { return static_cast<std::size_t>(lead) * size_of(type); }
    std::size_t span_bytes() const { return static_cast<std::size_t>(span) * size_of(type); }
    /// Whether memory is the logical order without a gap.
    bool dense() const noexcept;
};

/// The memory of a role's tensor of this shape. An axis along which a mask is shared (extent 1) has
/// stride 0. The poison of row_pad lies between rows, never after the last: the tensor ends with
/// its last element.
Placement place(Role role, ElementType type, const Shape& shape, const Layout& layout);

/// One element of memory for all of them: every stride is 0.
Placement place_expanded(Role role, ElementType type, const Shape& shape);

/// The layout a problem asks for, the plain one where it asks for none. The mask lies as the
/// queries do, the LSE as the output, their own axes in that order. Gradients lie as another tensor
/// than their own, so that strides taken from the wrong one show.
Layout layout_of(const Problem& problem, Role role);

/// Copies every element of a dense tensor into memory whose first element is at `memory`.
void scatter(const Placement& placement, std::span<const std::byte> dense, std::byte* memory);
/// The other way.
void gather(const Placement& placement, const std::byte* memory, std::span<std::byte> dense);

/// Copies keys or values, logical [batch, heads, len, dim], into a cache. Of pages [pages, heads,
/// page_size, dim]: key t of sequence b goes to page block_table[b][t / page_size]. A ring [batch,
/// heads, capacity, dim], where there is no table: the last keys, key t to slot t mod capacity.
/// Keys at or past lens_kv[b] (no tensor: none is) are left out. Throws BadInput where the table
/// names no page of the pool.
void scatter_cache(const Placement& cache, const Tensor& logical, const Tensor* block_table,
                   const Tensor* lens_kv, std::byte* memory);

}  // namespace attest::worker
