#pragma once
// Tensors as attest holds them: dense, logical, row-major, four axes. Memory layouts (strides,
// pages, padding) exist only in a call, where a tensor is laid into a kernel's guarded memory;
// see kernels/worker.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/interface/attest_kernel.h"
#include "reference/problem/precision.hpp"

namespace attest {

using Shape = std::array<std::int64_t, 4>;  ///< unused trailing axes are 1

/// An owning dense tensor. Real elements are read and written as doubles; writing rounds to nearest
/// even.
class Tensor {
public:
    Tensor() = default;
    Tensor(ElementType type, Shape shape);  ///< zero-filled

    ElementType type() const noexcept { return type_; }
    const Shape& shape() const noexcept { return shape_; }
    std::int64_t size() const noexcept { return size_; }  ///< elements
    std::span<std::byte> bytes() noexcept { return storage_; }
    std::span<const std::byte> bytes() const noexcept { return storage_; }

    double get(std::int64_t flat) const;  ///< flat row-major index
    void set(std::int64_t flat, double value);
    std::uint64_t bits(std::int64_t flat) const;  ///< the element's raw bits
    void set_bits(std::int64_t flat, std::uint64_t bits);
    std::int64_t flat(std::int64_t a, std::int64_t b, std::int64_t c,
                      std::int64_t d) const noexcept {
        return ((a * shape_[1] + b) * shape_[2] + c) * shape_[3] + d;
    }
    double at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
        return get(flat(a, b, c, d));
    }
    /// Of a tensor that is broadcast: an axis of extent 1 has one element for every index.
    double broadcast_at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
        const auto place = [this](std::size_t axis, std::int64_t index) {
            return shape_[axis] == 1 ? 0 : index;
        };
        return at(place(0, a), place(1, b), place(2, c), place(3, d));
    }
    void put(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d, double v) {
        set(flat(a, b, c, d), v);
    }

    /// All elements widened to double, row-major: what the oracle reads.
    std::vector<double> to_doubles() const;
    /// Elements [first, first + out.size()) of it.
    void widen(std::int64_t first, std::span<double> out) const;
    /// Writes them; as set(), one by one.
    void narrow(std::int64_t first, std::span<const double> values);

    bool operator==(const Tensor& other) const noexcept;  ///< same type, shape and bits

private:
    ElementType type_ = ElementType::f32;
    Shape shape_{0, 0, 0, 0};
    std::int64_t size_ = 0;
    std::vector<std::byte> storage_;
};

/// The roles a tensor can play in a call: the ABI's, by name.
enum class Role : std::uint8_t {
    q = ATTEST_ROLE_Q,
    k = ATTEST_ROLE_K,
    v = ATTEST_ROLE_V,
    o = ATTEST_ROLE_O,
    lse = ATTEST_ROLE_LSE,
    mask = ATTEST_ROLE_MASK,
    lens_q = ATTEST_ROLE_LENS_Q,
    lens_kv = ATTEST_ROLE_LENS_KV,
    cu_seqlens_q = ATTEST_ROLE_CU_SEQLENS_Q,
    cu_seqlens_kv = ATTEST_ROLE_CU_SEQLENS_KV,
    block_table = ATTEST_ROLE_BLOCK_TABLE,
    positions = ATTEST_ROLE_POSITIONS,
    alibi_slopes = ATTEST_ROLE_ALIBI_SLOPES,
    sinks = ATTEST_ROLE_SINKS,
    k_scale = ATTEST_ROLE_K_SCALE,
    v_scale = ATTEST_ROLE_V_SCALE,
    k_new = ATTEST_ROLE_K_NEW,
    v_new = ATTEST_ROLE_V_NEW,
    d_o = ATTEST_ROLE_D_O,
    d_q = ATTEST_ROLE_D_Q,
    d_k = ATTEST_ROLE_D_K,
    d_v = ATTEST_ROLE_D_V,
    d_mask = ATTEST_ROLE_D_MASK,
    d_sinks = ATTEST_ROLE_D_SINKS,
    dropout_keep = ATTEST_ROLE_DROPOUT_KEEP,
    d_slopes = ATTEST_ROLE_D_SLOPES,
    d_lse = ATTEST_ROLE_D_LSE,
};
inline constexpr std::size_t role_count = ATTEST_ROLE_COUNT;
/// What backward may return, in the manual's order.
inline constexpr Role gradient_roles[] = {Role::d_q,    Role::d_k,     Role::d_v,
                                          Role::d_mask, Role::d_sinks, Role::d_slopes};
std::string_view name(Role role) noexcept;  ///< "q", "lens_kv", ...

/// The tensors of one call, by role: the inputs drawn for a case, or the outputs a kernel returned.
class TensorSet {
public:
    bool has(Role role) const noexcept { return slots_[index(role)].has_value(); }
    const Tensor& operator[](Role role) const { return slots_[index(role)].value(); }
    Tensor& operator[](Role role) { return slots_[index(role)].value(); }
    Tensor& put(Role role, Tensor tensor) { return slots_[index(role)].emplace(std::move(tensor)); }
    void erase(Role role) { slots_[index(role)].reset(); }
    bool operator==(const TensorSet&) const = default;

private:
    static constexpr std::size_t index(Role role) noexcept {
        return static_cast<std::size_t>(role);
    }
    std::array<std::optional<Tensor>, role_count> slots_;
};

}  // namespace attest
