#include "kernels/worker/placement.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

/// The axes from the outermost to the innermost of memory.
std::array<std::size_t, 4> memory_order(AxisOrder order) {
    switch (order) {
        case AxisOrder::bhtd:
            return {0, 1, 2, 3};
        case AxisOrder::bthd:
            return {0, 2, 1, 3};
        case AxisOrder::tbhd:
            return {2, 0, 1, 3};
        case AxisOrder::bhdt:
            return {0, 1, 3, 2};
    }
    return {0, 1, 2, 3};
}

int axes_of(Role role) {
    switch (role) {
        case Role::lse:
        case Role::d_lse:
            return 3;
        case Role::block_table:
        case Role::positions:
            return 2;
        case Role::lens_q:
        case Role::lens_kv:
        case Role::cu_seqlens_q:
        case Role::cu_seqlens_kv:
        case Role::alibi_slopes:
        case Role::sinks:
        case Role::d_sinks:
        case Role::d_slopes:
            return 1;
        default:
            return 4;
    }
}

/// Calls visit(offset, flat, count) for every logical row: `count` elements that are contiguous in
/// the dense tensor from `flat`, the first of them at `offset` in memory.
template <typename Visit>
void for_each_row(const Placement& p, Visit visit) {
    std::int64_t flat = 0;
    for (std::int64_t a = 0; a < p.shape[0]; ++a) {
        for (std::int64_t b = 0; b < p.shape[1]; ++b) {
            std::int64_t offset = a * p.stride[0] + b * p.stride[1];
            for (std::int64_t c = 0; c < p.shape[2]; ++c, offset += p.stride[2]) {
                visit(offset, flat, p.shape[3]);
                flat += p.shape[3];
            }
        }
    }
}

/// `count` elements of `size` bytes, `stride` elements apart on one side and contiguous on the
/// other.
template <bool to_memory, std::size_t size>
void copy_strided(std::byte* memory, std::byte* dense, std::int64_t count, std::int64_t stride) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::byte* there = memory + i * stride * static_cast<std::int64_t>(size);
        std::byte* here = dense + i * static_cast<std::int64_t>(size);
        std::memcpy(to_memory ? there : here, to_memory ? here : there, size);
    }
}

template <bool to_memory>
void copy_row(std::byte* memory, std::byte* dense, std::int64_t count, std::int64_t stride,
              std::size_t size) {
    if (count == 0) return;
    if (stride == 1) {
        std::memcpy(to_memory ? memory : dense, to_memory ? dense : memory,
                    static_cast<std::size_t>(count) * size);
        return;
    }
    switch (size) {
        case 1:
            return copy_strided<to_memory, 1>(memory, dense, count, stride);
        case 2:
            return copy_strided<to_memory, 2>(memory, dense, count, stride);
        case 4:
            return copy_strided<to_memory, 4>(memory, dense, count, stride);
        default:
            return copy_strided<to_memory, 8>(memory, dense, count, stride);
    }
}

template <bool to_memory>
void copy_all(const Placement& p, std::byte* memory, std::byte* dense) {
    const std::size_t size = size_of(p.type);
    if (p.dense()) {
        if (p.span != 0) {
            std::memcpy(to_memory ? memory : dense, to_memory ? dense : memory, p.span_bytes());
        }
        return;
    }
    for_each_row(p, [&](std::int64_t offset, std::int64_t flat, std::int64_t count) {
        copy_row<to_memory>(memory + offset * static_cast<std::int64_t>(size),
                            dense + flat * static_cast<std::int64_t>(size), count, p.stride[3],
                            size);
    });
}

std::int64_t page_of(const Placement& pool, const Tensor& block_table, std::int64_t b,
                     std::int64_t t) {
    const auto page = static_cast<std::int64_t>(block_table.at(b, t / pool.shape[2], 0, 0));
    if (page < 0 || page >= pool.shape[0])
        throw BadInput(
            fmt::format("block_table: sequence {} keeps key {} on page {}, but there are {} pages",
                        b, t, page, pool.shape[0]));
    return page;
}

void require_size(const Placement& p, std::size_t bytes) {
    std::int64_t count = 1;
    for (std::int64_t extent : p.shape) count *= extent;
    require(bytes == static_cast<std::size_t>(count) * size_of(p.type),
            "a tensor has the shape and the type that its problem says");
}

}  // namespace

bool Placement::dense() const noexcept {
    std::int64_t expected = 1;
    for (std::size_t axis = 4; axis-- > 0;) {
        if (shape[axis] != 1 && stride[axis] != expected) return false;
        expected *= shape[axis];
    }
    return true;
}

Placement place(Role role, ElementType type, const Shape& shape, const Layout& layout) {
    Placement p;
    p.type = type;
    p.ndim = axes_of(role);
    p.shape = shape;
    p.lead = layout.offset;
    const std::array<std::size_t, 4> order = memory_order(layout.order);
    p.row = shape[order[3]];
    p.row_stride = p.row + layout.row_pad;
    std::int64_t step = p.row_stride;
    p.stride[order[3]] = 1;
    for (std::size_t i = 3; i-- > 0;) {
        p.stride[order[i]] = step;
        step *= shape[order[i]];
    }
    p.rows = shape[order[0]] * shape[order[1]] * shape[order[2]];
    p.span = p.rows == 0 || p.row == 0 ? 0 : (p.rows - 1) * p.row_stride + p.row;
    if (role == Role::mask) {
        for (std::size_t axis = 0; axis < 4; ++axis) {
            if (shape[axis] == 1) p.stride[axis] = 0;
        }
    }
    return p;
}

Placement place_expanded(Role role, ElementType type, const Shape& shape) {
    Placement p;
    p.type = type;
    p.ndim = axes_of(role);
    p.shape = shape;
    p.rows = p.row = p.row_stride = p.span = 1;
    return p;
}

Layout layout_of(const Problem& problem, Role role) {
    switch (role) {
        case Role::q:
        case Role::mask:  // a row a query
        case Role::d_lse:
        case Role::d_k:
            return problem.layout_q;
        case Role::k:
        case Role::d_v:
            return problem.layout_k;
        case Role::v:
        case Role::d_o:
            return problem.layout_v;
        case Role::o:
        case Role::d_q:
        case Role::lse:  // a number an output row
            return problem.layout_o;
        default:
            return {};
    }
}

void scatter(const Placement& p, std::span<const std::byte> dense, std::byte* memory) {
    require_size(p, dense.size());
    // One template serves both directions; this one only reads `dense`.
    copy_all<true>(p, memory, const_cast<std::byte*>(dense.data()));
}

void gather(const Placement& p, const std::byte* memory, std::span<std::byte> dense) {
    require_size(p, dense.size());
    copy_all<false>(p, const_cast<std::byte*>(memory), dense.data());  // only reads `memory`
}

void scatter_cache(const Placement& cache, const Tensor& logical, const Tensor* block_table,
                   const Tensor* lens_kv, std::byte* memory) {
    const auto size = static_cast<std::int64_t>(size_of(cache.type));
    const Shape& shape = logical.shape();
    const std::int64_t slots = cache.shape[2];
    require(
        logical.type() == cache.type && shape[1] == cache.shape[1] && shape[3] == cache.shape[3],
        "keys and values have the shape and the type of their cache");
    auto* dense = const_cast<std::byte*>(logical.bytes().data());  // only read
    for (std::int64_t b = 0; b < shape[0]; ++b) {
        const std::int64_t valid =
            lens_kv == nullptr ? shape[2]
                               : std::min(static_cast<std::int64_t>(lens_kv->get(b)), shape[2]);
        const std::int64_t first = block_table == nullptr ? valid - slots : 0;
        for (std::int64_t t = std::max<std::int64_t>(first, 0); t < valid; ++t) {
            const std::int64_t page =
                block_table == nullptr ? b : page_of(cache, *block_table, b, t);
            for (std::int64_t h = 0; h < shape[1]; ++h) {
                const std::int64_t offset =
                    page * cache.stride[0] + h * cache.stride[1] + t % slots * cache.stride[2];
                copy_row<true>(memory + offset * size, dense + logical.flat(b, h, t, 0) * size,
                               shape[3], cache.stride[3], static_cast<std::size_t>(size));
            }
        }
    }
}

}  // namespace attest::worker
