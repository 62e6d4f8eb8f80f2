// Where the tensors of a call lie that a kernel's manifest has a word about.

#include "kernels/worker/call_layout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "reference/problem/inputs.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

/// Of a kernel that says this beside what all say; one row for each tensor of the role.
Shape strides_of(const char* features, const char* takes, protocol::Operation operation,
                 Role role) {
    const kernel::Manifest manifest = kernel::parse_manifest(
        std::string(
            R"({"name":"x","version":"1","formats":["f32"],"gradients":["q"],"features":)") +
            features + R"(,"takes":)" + takes + "}",
        "x");
    Problem p{.batch = 2, .heads_q = 3, .heads_kv = 3, .len_q = 4, .len_kv = 4, .dim_qk = 5};
    p.layout_q = p.layout_k = p.layout_v = p.layout_o = {AxisOrder::bthd, 0, 0};
    p.mask.tensor = {MaskKind::additive};
    p.want_grad = p.lse_grad = true;
    TensorSet inputs = make_inputs({.problem = p, .values = {}});
    for (const Role one : {Role::o, Role::lse, Role::d_o, Role::d_lse})
        inputs.put(one, Tensor(ElementType::f32, *shape_of(p, one)));  // one number everywhere
    Arena arena;
    Asked asked{operation};
    if (operation == protocol::Operation::backward) asked.outputs = {Role::d_q};
    EXPECT_FALSE(lay_out_call(arena, manifest, p, inputs, 0, variant_of(0, 1, true), asked));
    for (const TensorSlot& slot : arena.slots())
        if (slot.role == static_cast<std::uint16_t>(role)) return slot.placement.stride;
    return {};
}

constexpr const char* any_strides = R"(["layout","lse","d_lse"])";
constexpr const char* fixed = R"(["lse","d_lse"])";
constexpr auto forward = protocol::Operation::forward, backward = protocol::Operation::backward;

TEST(CallLayout, TheLseLiesAsTheOutputOrWithoutGapsWhereTheManifestSaysSo) {
    constexpr const char* in_order = R"({"orders":["bthd"],"lse_order":"bht"})";
    const Shape as_output{12, 1, 3, 1}, contiguous{12, 4, 1, 1};
    EXPECT_EQ(strides_of(fixed, R"({"orders":["bthd"]})", forward, Role::lse), as_output);
    EXPECT_EQ(strides_of(fixed, in_order, forward, Role::lse), contiguous);
    EXPECT_EQ(strides_of(fixed, in_order, forward, Role::o), (Shape{60, 5, 15, 1}));
    EXPECT_EQ(strides_of(any_strides, R"({"lse_order":"bht"})", forward, Role::lse), contiguous);
    // Read again in backward, with its gradient.
    for (const Role role : {Role::lse, Role::d_lse})
        EXPECT_EQ(strides_of(fixed, in_order, backward, role), contiguous) << name(role);
    EXPECT_EQ(strides_of(any_strides, R"({"lse_order":"bht"})", backward, Role::d_lse), contiguous);
    EXPECT_EQ(strides_of(fixed, R"({"orders":["bthd"]})", backward, Role::d_lse), as_output);
}

TEST(CallLayout, AMaskLiesAsTheQueriesOrWithoutGapsBesideOrders) {
    EXPECT_EQ(strides_of(any_strides, "{}", forward, Role::mask), (Shape{48, 4, 12, 1}));
    for (const char* features : {fixed, any_strides})
        EXPECT_EQ(strides_of(features, R"({"orders":["bthd"]})", forward, Role::mask),
                  (Shape{48, 16, 4, 1}));
}

// A dO that is one number everywhere is the gradient of a sum.
TEST(CallLayout, StridesOf0AreOfKernelsThatTakeAnyStrides) {
    EXPECT_EQ(strides_of(any_strides, "{}", backward, Role::d_o), Shape{});
    EXPECT_EQ(strides_of(any_strides, "{}", backward, Role::d_lse), Shape{});
    for (const char* features : {fixed, any_strides})
        EXPECT_EQ(strides_of(features, R"({"orders":["bthd"]})", backward, Role::d_o),
                  (Shape{60, 5, 15, 1}));
}

/// What k holds of a call by a kernel with this dialect, in memory and in order.
std::vector<float> keys_laid(const char* line, const std::string& nonfinite) {
    const kernel::Manifest manifest = kernel::parse_manifest(
        R"({"name":"x","version":"1","formats":["f32"],)"
        R"("features":["cache","paged","ring","window","lens_kv"],"dialect":{"nonfinite":")" +
            nonfinite + R"("}})",
        "x");
    const Case c = parse_case(line);
    Arena arena;
    EXPECT_FALSE(lay_out_call(arena, manifest, c.problem, make_inputs(c), 0, variant_of(0, 1, true),
                              Asked{forward}));
    std::vector<float> held;
    for (const TensorSlot& slot : arena.slots()) {
        if (slot.role != static_cast<std::uint16_t>(Role::k)) continue;
        const std::byte* data = arena.at(slot.data);
        held.resize(static_cast<std::size_t>(slot.placement.span));
        std::memcpy(held.data(), data, slot.placement.span_bytes());
    }
    return held;
}

// Contiguous, in pages and in a ring; in each some slots hold no key.
TEST(CallLayout, SlotsWithoutAKeyHoldNumbersWhereNothingIsAskedBesideNaN) {
    for (const char* line : {"b2 hq1 hkv1 tq1 tk4 d3 lens_kv 4,2 cache 3 f32",
                             "b2 hq1 hkv1 tq1 tk4 d3 lens_kv 4,2 cache 3 page 3 f32",
                             "b2 hq1 hkv1 tq1 tk4 d3 window 3 0 lens_kv 4,2 cache 3 ring f32"}) {
        const std::vector<float> poisoned = keys_laid(line, "propagate"),
                                 numbers = keys_laid(line, "unspecified");
        ASSERT_EQ(poisoned.size(), numbers.size()) << line;
        int without = 0;
        for (std::size_t n = 0; n < numbers.size(); ++n) {
            without += std::isnan(poisoned[n]);
            if (std::isnan(poisoned[n]))
                EXPECT_EQ(numbers[n], 2) << line;
            else
                EXPECT_EQ(poisoned[n], numbers[n]) << line;
        }
        EXPECT_GE(without, 6) << line;
    }
}

}  // namespace
}  // namespace attest::worker
