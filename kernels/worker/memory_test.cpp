// The memory that host and worker share: placements lose nothing, patterns are NaN everywhere, and
// no stray byte goes unnoticed.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <set>

#include "kernels/worker/arena.hpp"

namespace attest::worker {
namespace {

rc::Gen<std::int64_t> small(std::int64_t most) {
    return rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, most + 1));
}

Placement any_placement(bool empty_allowed = true) {
    const std::int64_t least = empty_allowed ? 0 : 1;
    const Shape shape = {*small(2) + least, *small(2) + least, *small(4) + least,
                         *small(4) + least};
    const auto order = static_cast<AxisOrder>(*small(3));
    const auto type = static_cast<ElementType>(*small(3));
    const Layout layout{order, *small(3), *small(3)};
    return place(Role::q, type, shape, layout);
}

/// A tensor of distinct bits.
Tensor numbered(const Placement& p) {
    Tensor tensor(p.type, p.shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
        tensor.set_bits(i, static_cast<std::uint64_t>(i) + 1);
    }
    return tensor;
}

RC_GTEST_PROP(Placement, GathersWhatItScattered, ()) {
    const Placement p = any_placement();
    const Tensor tensor = numbered(p);
    std::vector<std::byte> memory(p.span_bytes() + 1);
    scatter(p, tensor.bytes(), memory.data());
    Tensor back(p.type, p.shape);
    gather(p, memory.data(), back.bytes());
    RC_ASSERT(back == tensor);
}

RC_GTEST_PROP(Placement, EveryElementHasItsOwnPlaceInsideTheSpan, ()) {
    const Placement p = any_placement();
    std::set<std::int64_t> places;
    for (std::int64_t a = 0; a < p.shape[0]; ++a)
        for (std::int64_t b = 0; b < p.shape[1]; ++b)
            for (std::int64_t c = 0; c < p.shape[2]; ++c)
                for (std::int64_t d = 0; d < p.shape[3]; ++d)
                    places.insert(a * p.stride[0] + b * p.stride[1] + c * p.stride[2] +
                                  d * p.stride[3]);
    RC_ASSERT(static_cast<std::int64_t>(places.size()) ==
              p.shape[0] * p.shape[1] * p.shape[2] * p.shape[3]);
    if (!places.empty()) {
        RC_ASSERT(*places.begin() == 0);
        RC_ASSERT(*places.rbegin() == p.span - 1);
    }
}

TEST(Placement, ASharedMaskAxisHasStrideZero) {
    const Placement p = place(Role::mask, ElementType::u8, {2, 1, 3, 4}, {});
    EXPECT_EQ(p.stride, (Shape{12, 0, 4, 1}));
}

TEST(Placement, TheMaskLiesAsTheQueriesAndTheLseAsTheOutput) {
    Problem p{.heads_q = 2, .len_q = 3, .len_kv = 4, .mask = {.tensor = {MaskKind::boolean}}};
    p.layout_q = {AxisOrder::bhdt, 2, 5};
    p.layout_o = {AxisOrder::bthd, 1, 7};
    const auto placed = [&](Role role) {
        return place(role, type_of(p, role), *shape_of(p, role), layout_of(p, role));
    };
    EXPECT_EQ(placed(Role::mask).stride, (Shape{0, 20, 1, 5}));
    EXPECT_EQ(placed(Role::mask).lead, 5);
    EXPECT_EQ(placed(Role::lse).stride, (Shape{12, 2, 4, 1}));
    EXPECT_EQ(placed(Role::lse).lead, 7);
    EXPECT_EQ(layout_of(p, Role::positions), Layout{});
}

TEST(Variant, PatternsAreNanInEveryFormatAndDistinct) {
    std::set<std::uint16_t> seen;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        for (std::uint64_t call : {0, 1}) {
            const Variant v = variant_of(call, seed, false);
            EXPECT_EQ(v.flush_right, call == 0);
            EXPECT_NE(v.canary & 7, v.poison & 7);
            EXPECT_NE(v.canary & 7, v.workspace & 7);
            EXPECT_NE(v.poison & 7, v.workspace & 7);
            for (std::uint16_t pattern : {v.canary, v.poison, v.workspace}) {
                seen.insert(pattern);
                const std::uint64_t bits = pattern * 0x0001000100010001ull;
                for (Precision p :
                     {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}) {
                    EXPECT_TRUE(std::isnan(decode(bits, p))) << name(p) << " " << pattern;
                }
            }
        }
    }
    EXPECT_EQ(seen.size(), 6u);
}

/// One input and one output laid out, the input sealed.
struct LaidCall {
    LaidCall(const Placement& input, const Placement& output, std::uint64_t call,
             bool aligned = false) {
        arena.add(Role::q, protocol::Access::read, input);
        arena.add(Role::o, protocol::Access::write, output);
        arena.add_workspace(10);
        arena.lay(variant_of(call, 3, aligned));
        scatter(input, numbered(input).bytes(), arena.at(arena.slots()[0].data));
        arena.seal();
    }
    Arena arena;
};

RC_GTEST_PROP(Arena, TensorsAreFlushWithTheirPages, ()) {
    const Placement p = any_placement();
    const auto call = static_cast<std::uint64_t>(*small(1));
    const LaidCall laid(p, p, call);
    for (const TensorSlot& slot : laid.arena.slots()) {
        if (slot.is_workspace()) continue;
        if (call == 0) {
            RC_ASSERT(slot.end() == slot.pages + slot.pages_bytes);
        } else {
            RC_ASSERT(slot.block() == slot.pages);
        }
    }
}

RC_GTEST_PROP(Arena, AlignedTensorsBeginAt64Bytes, ()) {
    Placement p = any_placement();
    p.lead = 0;
    const LaidCall laid(p, p, static_cast<std::uint64_t>(*small(1)), true);
    for (const TensorSlot& slot : laid.arena.slots()) {
        RC_ASSERT(slot.data % 64 == 0);
        RC_ASSERT(slot.data >= slot.pages);
        RC_ASSERT(slot.end() <= slot.pages + slot.pages_bytes);
    }
}

RC_GTEST_PROP(Arena, WritingAllElementsAndTheWorkspaceIsNoBreach, ()) {
    const Placement p = any_placement();
    const LaidCall laid(p, p, static_cast<std::uint64_t>(*small(1)));
    const TensorSlot& output = laid.arena.slots()[1];
    const TensorSlot& workspace = laid.arena.slots()[2];
    const Tensor written = numbered(p);
    scatter(p, written.bytes(), laid.arena.at(output.data));
    for (std::uint64_t i = 0; i < 10; ++i) *laid.arena.at(workspace.data + i) = std::byte{9};
    RC_ASSERT(!laid.arena.find_breach().has_value());
    std::int64_t poison_at = 0;
    RC_ASSERT(laid.arena.collect(output, poison_at) == written);
    RC_ASSERT(poison_at == -1);
}

RC_GTEST_PROP(Arena, UnwrittenElementsAreFound, ()) {
    const Placement p = any_placement(false);
    const LaidCall laid(p, p, static_cast<std::uint64_t>(*small(1)));
    const TensorSlot& output = laid.arena.slots()[1];
    Tensor written = numbered(p);
    const std::int64_t left_out = *small(written.size() - 1);
    std::int64_t poison_at = -1;
    const Tensor before = laid.arena.collect(output, poison_at);
    RC_ASSERT(poison_at == 0);
    written.set_bits(left_out, before.bits(left_out));
    scatter(p, written.bytes(), laid.arena.at(output.data));
    laid.arena.collect(output, poison_at);
    RC_ASSERT(poison_at == left_out);
}

RC_GTEST_PROP(Arena, AnyStrayByteIsFound, ()) {
    const Placement p = any_placement();
    const LaidCall laid(p, p, static_cast<std::uint64_t>(*small(1)));
    const auto which = static_cast<std::size_t>(*small(2));
    const TensorSlot& slot = laid.arena.slots()[which];
    // Every byte of the pages is stray, but an output's elements and the workspace.
    std::vector<bool> free(slot.pages_bytes);
    const std::uint64_t data = slot.data - slot.pages;
    if (slot.is_workspace()) {
        for (std::uint64_t i = 0; i < slot.span_bytes; ++i) free[data + i] = true;
    } else if (slot.access == protocol::Access::write) {
        const auto size = static_cast<std::int64_t>(size_of(p.type));
        for (std::int64_t r = 0; r < p.rows && p.span != 0; ++r)
            for (std::int64_t i = 0; i < p.row * size; ++i)
                free[data + static_cast<std::uint64_t>(r * p.row_stride * size + i)] = true;
    }
    const auto at =
        static_cast<std::uint64_t>(*small(static_cast<std::int64_t>(slot.pages_bytes) - 1));
    std::byte& byte = *laid.arena.at(slot.pages + at);
    byte ^= static_cast<std::byte>(1 + *small(254));
    const std::optional<Breach> breach = laid.arena.find_breach();
    RC_ASSERT(breach.has_value() != free[at]);
    if (breach) {
        RC_ASSERT(breach->slot == which);
        RC_ASSERT(breach->offset_bytes ==
                  static_cast<std::int64_t>(at) - static_cast<std::int64_t>(data));
    }
}

/// Three rows of five f32, 2^31 elements and more apart.
Placement far_rows() {
    return place(Role::q, ElementType::f32, {1, 1, 3, 5},
                 {AxisOrder::bhtd, (std::int64_t{1} << 31) + 3, 2});
}

/// Three slots of five keys: 3, 4, 2. Of two keys: 0, 1, and one that holds none.
TEST(Cache, ARingHoldsTheLastKeysInTheirSlots) {
    Tensor keys(ElementType::f32, {2, 1, 5, 1}), lens(ElementType::i32, {2, 1, 1, 1});
    for (std::int64_t at = 0; at < keys.size(); ++at) keys.set(at, static_cast<double>(at));
    lens.set(0, 5), lens.set(1, 2);
    const Placement ring = place(Role::k, ElementType::f32, {2, 1, 3, 1}, {});
    std::vector<float> memory(6, -1);
    scatter_cache(ring, keys, nullptr, &lens, reinterpret_cast<std::byte*>(memory.data()));
    EXPECT_EQ(memory, (std::vector<float>{3, 4, 2, 5, 6, -1}));
}

TEST(Arena, RowsThatLieFarApartTakeTheirOwnPagesAlone) {
    const Placement p = far_rows();
    LaidCall laid(p, p, 0);
    for (const TensorSlot& slot : laid.arena.slots()) EXPECT_LE(slot.filled_bytes(), 6u * 4096);
    const TensorSlot& output = laid.arena.slots()[1];
    EXPECT_EQ(output.end(), output.pages + output.pages_bytes);
    scatter(p, numbered(p).bytes(), laid.arena.at(output.data));
    EXPECT_FALSE(laid.arena.find_breach().has_value());
    std::int64_t poison_at = 0;
    EXPECT_EQ(laid.arena.collect(output, poison_at), numbered(p));
    EXPECT_EQ(poison_at, -1);
    struct stat file {};
    ASSERT_EQ(::fstat(laid.arena.fd(), &file), 0);
    constexpr std::int64_t block = 512;
    EXPECT_LT(file.st_blocks * block, 1 << 20);
    EXPECT_GT(file.st_size, std::int64_t{1} << 35);
}

TEST(Arena, AStrayByteBetweenFarRowsIsFound) {
    const Placement p = far_rows();
    for (const std::size_t which : {0u, 1u})
        for (const std::int64_t at : {std::int64_t{5 * 4}, std::int64_t{1} << 32, -4l,
                                      p.row_stride * 4 - 1, std::int64_t{1} << 20}) {
            LaidCall laid(p, p, 1);
            const TensorSlot& slot = laid.arena.slots()[which];
            *laid.arena.at(slot.data + static_cast<std::uint64_t>(at)) ^= std::byte{1};
            const std::optional<Breach> breach = laid.arena.find_breach();
            ASSERT_TRUE(breach.has_value()) << which << " " << at;
            EXPECT_EQ(breach->slot, which);
            EXPECT_EQ(breach->offset_bytes, at);
        }
}

TEST(Arena, AMachineWithoutTheAddressesLosesNothing) {
    const Placement p = place(Role::q, ElementType::f32, {1, 1, 2, 2}, {});
    LaidCall laid(p, p, 0);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit few = before;
    few.rlim_cur = 1 << 30;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
    laid.arena.add(Role::k, protocol::Access::read, far_rows());
    EXPECT_THROW(laid.arena.lay(variant_of(1, 0, false)), NoAddresses);
    ::setrlimit(RLIMIT_FSIZE, &before);
    laid.arena.lay(variant_of(1, 0, false));
    laid.arena.seal();
    EXPECT_FALSE(laid.arena.find_breach().has_value());
}

/// Rows a mebibyte or two apart: a call too small for its memory to be given back.
TEST(Arena, WhatAnEarlierCallLeftInAHoleIsNoBreach) {
    const auto rows_apart = [](std::int64_t elements) {
        return place(Role::q, ElementType::f32, {1, 1, 3, 5}, {AxisOrder::bhtd, elements, 0});
    };
    const Placement before = rows_apart(1 << 19), now = rows_apart((1 << 18) + 4099);
    LaidCall laid(before, before, 0);
    laid.arena.release_large();
    laid.arena.clear();
    laid.arena.add(Role::q, protocol::Access::read, now);
    laid.arena.add(Role::o, protocol::Access::write, now);
    laid.arena.lay(variant_of(1, 0, false));
    laid.arena.seal();
    EXPECT_FALSE(laid.arena.find_breach().has_value());
}

/// Reading a hole leaves a page of zeros, which nobody wrote.
TEST(Arena, AHoleThatWasReadIsNoBreach) {
    const Placement p = far_rows();
    LaidCall laid(p, p, 0);
    const TensorSlot& output = laid.arena.slots()[1];
    const std::byte hole = *laid.arena.at(output.data + (std::uint64_t{1} << 32));
    EXPECT_EQ(hole, std::byte{0});
    EXPECT_FALSE(laid.arena.find_breach().has_value());
}

}  // namespace
}  // namespace attest::worker
