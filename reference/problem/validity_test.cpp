#include "reference/problem/validity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "reference/problem/errors.hpp"
#include "reference/problem/fields.hpp"

namespace attest {
namespace {

struct Spoiled {
    const char* field;  ///< the one to be blamed
    std::function<void(Problem&)> spoil;
};

/// A problem with lengths to play with; everything in it is valid.
Problem sound() {
    return {.batch = 2, .heads_q = 4, .heads_kv = 2, .len_q = 3, .len_kv = 5, .dim_qk = 4};
}

TEST(Validity, each_contradiction_blames_its_field) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Spoiled all[] = {
        {"batch", [](Problem& p) { p.batch = -1; }},
        {"heads_q", [](Problem& p) { p.heads_q = 0; }},
        {"heads_kv", [](Problem& p) { p.heads_kv = 3; }},
        {"len_q", [](Problem& p) { p.len_q = -1; }},
        {"len_kv", [](Problem& p) { p.len_kv = std::int64_t{1} << 31; }},
        {"dim_qk", [](Problem& p) { p.dim_qk = 0; }},
        {"dim_v", [](Problem& p) { p.dim_v = -1; }},
        {"len_q", [](Problem& p) { p.len_q = p.batch = p.dim_qk = 1 << 20; }},
        {"len_kv", [](Problem& p) { p.len_kv = p.dim_v = 1 << 30; }},
        {"window", [](Problem& p) { p.mask.window.left = -2; }},
        {"scale", [](Problem& p) { p.scale = infinite; }},
        {"softcap", [](Problem& p) { p.softcap = -1; }},
        {"softcap", [=](Problem& p) { p.softcap = nan; }},
        {"dropout", [](Problem& p) { p.dropout.p = 1; }},
        {"dropout", [=](Problem& p) { p.dropout.p = nan; }},
        {"lens_q", [](Problem& p) { p.mask.lens_q = {1}; }},
        {"lens_q",
         [](Problem& p) {
             p.mask.lens_q = {1, 4};
         }},
        {"lens_kv",
         [](Problem& p) {
             p.mask.lens_kv = {-1, 4};
         }},
        {"documents_q", [](Problem& p) { p.mask.documents_q = {3}; }},
        {"documents_q", [](Problem& p) { p.mask.documents_q = p.mask.documents_kv = {3}; }},
        {"documents_q",
         [](Problem& p) { p.batch = 1, p.mask.documents_q = {2}, p.mask.documents_kv = {5}; }},
        {"documents_kv",
         [](Problem& p) { p.batch = 1, p.mask.documents_q = {3}, p.mask.documents_kv = {6}; }},
        {"alibi", [](Problem& p) { p.alibi = true; }},
        {"alibi",
         [](Problem& p) {
             p.alibi = true, p.len_q = 5, p.mask.lens_q = {1, 2};
         }},
        {"alibi",
         [](Problem& p) {
             p.alibi = true, p.batch = 1, p.len_q = 5;
             p.mask.documents_q = {2, 3}, p.mask.documents_kv = {3, 2};
         }},
        {"rope", [](Problem& p) { p.rope.style = RopeStyle::half; }},
        {"rope",
         [](Problem& p) {
             p.len_q = 5, p.rope = {RopeStyle::half, 1e4, 3, 0};
         }},
        {"rope",
         [](Problem& p) {
             p.len_q = 5, p.rope = {RopeStyle::half, 0, 4, 0};
         }},
        {"rope",
         [](Problem& p) {
             p.len_q = 5, p.rope = {RopeStyle::half, 1e4, 4, -1};
         }},
        {"cache",
         [](Problem& p) {
             p.cache = {true, 1, 0, false, false};
         }},
        {"cache",
         [](Problem& p) {
             p.cache = {true, 2, -1, false, false};
         }},
        {"cache",
         [](Problem& p) {
             p.cache = {true, 2, 4, true, false};
         }},
        {"cache",
         [](Problem& p) {
             p.cache = {true, 2, 4, false, true};
         }},
        {"lens_kv",
         [](Problem& p) {
             p.cache = {true, 2, 4, false, false}, p.mask.lens_kv = {2, 5};
         }},
        {"splits", [](Problem& p) { p.splits = -1; }},
        {"layout_v", [](Problem& p) { p.layout_v.row_pad = -1; }},
        {"layout_o", [](Problem& p) { p.layout_o.offset = 1 << 21; }},
    };
    EXPECT_FALSE(find_contradiction(sound()));
    for (std::size_t i = 0; i < std::size(all); ++i) {
        Problem p = sound();
        all[i].spoil(p);
        const auto found = find_contradiction(p);
        ASSERT_TRUE(found) << i << ' ' << all[i].field;
        EXPECT_EQ(found->field, all[i].field) << i << ' ' << found->what;
        EXPECT_TRUE(std::any_of(fields().begin(), fields().end(),
                                [&](const Field& f) { return f.head() == found->field; }));
        EXPECT_FALSE(found->what.empty() || found->remedy.empty());
        EXPECT_THROW(require_valid(p), BadInput);
    }
}

TEST(Validity, where_positions_are_indices_queries_and_keys_count_alike) {
    Problem p = sound();
    p.alibi = true, p.len_q = 5, p.mask.lens_q = p.mask.lens_kv = {1, 3};
    EXPECT_FALSE(find_contradiction(p));
    p.mask.lens_kv[1] = 4;
    ASSERT_TRUE(find_contradiction(p));
    EXPECT_EQ(find_contradiction(p)->field, "alibi");
    p.mask.lens_kv = {};
    EXPECT_TRUE(find_contradiction(p));
}

TEST(Validity, dead_fields_and_empty_axes_are_no_contradiction) {
    Problem p = sound();
    p.rope.base = -1;
    p.cache.page_size = -7;
    EXPECT_FALSE(find_contradiction(p));
    for (std::int64_t Problem::*axis : {&Problem::batch, &Problem::len_q, &Problem::len_kv}) {
        Problem empty = sound();
        empty.*axis = 0;
        EXPECT_FALSE(find_contradiction(empty));
        EXPECT_EQ(score_count(empty), 0);
    }
}

TEST(Validity, extremes_do_not_overflow) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t Problem::*axis : {&Problem::batch, &Problem::heads_q, &Problem::len_q,
                                        &Problem::len_kv, &Problem::dim_qk, &Problem::splits}) {
        Problem p = sound();
        p.*axis = most;
        EXPECT_TRUE(find_contradiction(p));
    }
    Problem p = sound();
    p.cache = {true, most, most, false, false};
    EXPECT_TRUE(find_contradiction(p));
    p = sound();
    p.batch = p.len_q = p.len_kv = 0x7fffffff;
    EXPECT_EQ(score_count(p), most);
}

TEST(Shapes, exist_where_the_problem_has_the_tensor) {
    Problem p = sound();
    p.mask.lens_q = {1, 2};
    EXPECT_FALSE(shape_of(p, Role::positions)) << "no cache: positions are indices";
    EXPECT_FALSE(shape_of(p, Role::d_q));
    EXPECT_FALSE(shape_of(p, Role::k_scale));
    EXPECT_FALSE(cache_shape_of(p, Role::k));
    p.cache = {true, 2, 4, false, false};
    EXPECT_EQ(shape_of(p, Role::positions), (Shape{2, 3, 1, 1}));
    EXPECT_EQ(shape_of(p, Role::k), (Shape{2, 2, 5, 4}));
    EXPECT_EQ(cache_shape_of(p, Role::k), (Shape{2 * 2 + 2, 2, 4, 4}));
    EXPECT_EQ(shape_of(p, Role::block_table), (Shape{2, 2, 1, 1}));
    p.cache = {true, 2, 0, true, false};
    EXPECT_EQ(cache_shape_of(p, Role::k), (Shape{2, 2, 5, 4})) << "no window: every key";
    p.mask.window.left = 1;  // of the last two queries and the key before them, and of one more
    EXPECT_EQ(cache_shape_of(p, Role::v), (Shape{2, 2, 4, value_dim(p)}));
    EXPECT_EQ(shape_of(p, Role::k), (Shape{2, 2, 5, 4}));
    EXPECT_EQ(features_of(p), features_of(p).with(Feature::ring).with(Feature::window));
    p.mask.window = {};
    p.cache = {true, 2, 4, false, false};
    EXPECT_EQ(shape_of(p, Role::k_new), (Shape{2, 2, 3, 4}));
    p.lse_grad = true;
    EXPECT_FALSE(shape_of(p, Role::d_lse)) << "no gradients are asked for";
    EXPECT_FALSE(features_of(p).has(Feature::d_lse));
    EXPECT_FALSE(canonical(p).lse_grad);
    p.want_grad = true;
    EXPECT_EQ(shape_of(p, Role::d_lse), shape_of(p, Role::lse));
    EXPECT_EQ(type_of(p, Role::d_lse), type_of(p, Role::lse));
    p.mask.tensor.kind = MaskKind::boolean;
    EXPECT_EQ(shape_of(p, Role::d_q), shape_of(p, Role::q));
    EXPECT_FALSE(shape_of(p, Role::d_mask)) << "a boolean mask has no gradient";
    p.mask.tensor = {MaskKind::additive, true, true, false};
    EXPECT_EQ(shape_of(p, Role::d_mask), (Shape{1, 1, 3, 5}));
    p.mask.tensor = {MaskKind::additive, false, true, false, true};
    EXPECT_EQ(shape_of(p, Role::mask), (Shape{2, 1, 3, 1}));
    EXPECT_EQ(shape_of(p, Role::d_mask), shape_of(p, Role::mask));
}

TEST(Scale, is_the_nearest_f32_unless_the_inputs_are_f64) {
    Problem p = sound();
    p.dim_qk = 80;
    EXPECT_EQ(effective_scale(p), static_cast<double>(static_cast<float>(1 / std::sqrt(80.0))));
    p.format_q = Precision::f64;
    EXPECT_EQ(effective_scale(p), 1 / std::sqrt(80.0));
    p.scale = -0.25;
    EXPECT_EQ(effective_scale(p), -0.25);
}

}  // namespace
}  // namespace attest
