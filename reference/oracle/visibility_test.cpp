// Which keys are seen, written out by hand from reference/problem/README.md.

#include "reference/oracle/visibility.hpp"

#include <gtest/gtest.h>

#include <string>

namespace attest::oracle {
namespace {

/// The keys row `query` may see, as a picture: "xx.." sees the first two of four.
std::string picture(const Problem& p, const Dialect& dialect, std::int64_t query,
                    std::int64_t batch = 0) {
    const KeyRange range = keys_of(p, dialect, batch, query);
    if (!range.is_query) return "none";
    std::string text(static_cast<std::size_t>(p.len_kv), '.');
    for (std::int64_t j = range.first; j < range.last; ++j) text[static_cast<std::size_t>(j)] = 'x';
    return text;
}

Problem sized(std::int64_t len_q, std::int64_t len_kv) {
    Problem p;
    p.len_q = len_q;
    p.len_kv = len_kv;
    return p;
}

constexpr Dialect bottom_right{};
constexpr Dialect top_left{.causal = CausalAlignment::top_left};

TEST(visibility, without_a_mask_all_keys_are_seen) {
    EXPECT_EQ(picture(sized(2, 4), bottom_right, 0), "xxxx");
}

TEST(visibility, causal_aligns_with_the_last_or_the_first_key) {
    Problem p = sized(2, 4);
    p.mask.causal = true;
    EXPECT_EQ(picture(p, bottom_right, 0), "xxx.");
    EXPECT_EQ(picture(p, bottom_right, 1), "xxxx");
    EXPECT_EQ(picture(p, top_left, 0), "x...");
    EXPECT_EQ(picture(p, top_left, 1), "xx..");
    p = sized(4, 2);
    p.mask.causal = true;
    EXPECT_EQ(picture(p, bottom_right, 0), "..");
    EXPECT_EQ(picture(p, bottom_right, 1), "..");
    EXPECT_EQ(picture(p, bottom_right, 2), "x.");
    EXPECT_EQ(picture(p, top_left, 3), "xx");
}

TEST(visibility, a_cache_stands_bottom_right_whatever_the_dialect) {
    Problem p = sized(1, 4);
    p.mask.causal = true;
    p.cache.present = true;
    p.cache.len = 3;
    EXPECT_EQ(picture(p, top_left, 0), "xxxx");
}

TEST(visibility, windows_end_where_the_dialect_says) {
    Problem p = sized(5, 5);
    p.mask.window = {2, 1};
    EXPECT_EQ(picture(p, bottom_right, 2), "xxxx.");
    constexpr Dialect exclusive{.window_ends = WindowEnds::exclusive};
    EXPECT_EQ(picture(p, exclusive, 2), ".xx..");
    p.mask.window = {0, -1};
    EXPECT_EQ(picture(p, bottom_right, 2), "..xxx");
    EXPECT_EQ(picture(p, exclusive, 2), "..xxx");
    p.mask.window = {-1, 0};
    EXPECT_EQ(picture(p, bottom_right, 2), "xxx..");
    p.mask.window = {1, 3};
    p.mask.causal = true;
    EXPECT_EQ(picture(p, bottom_right, 2), ".xx..");
}

TEST(visibility, lengths_move_the_diagonal_of_their_sequence) {
    Problem p = sized(3, 5);
    p.batch = 2;
    p.mask.causal = true;
    p.mask.lens_q = {2, 3};
    p.mask.lens_kv = {4, 3};
    EXPECT_EQ(picture(p, bottom_right, 0, 0), "xxx..");
    EXPECT_EQ(picture(p, bottom_right, 1, 0), "xxxx.");
    EXPECT_EQ(picture(p, bottom_right, 2, 0), "none");
    EXPECT_EQ(picture(p, bottom_right, 0, 1), "x....");
    EXPECT_EQ(picture(p, top_left, 1, 0), "xx...");
    EXPECT_EQ(picture(p, bottom_right, 2, 1), "xxx..");
}

TEST(visibility, documents_see_themselves_alone) {
    Problem p = sized(4, 5);
    p.mask.documents_q = {1, 0, 3};
    p.mask.documents_kv = {2, 1, 2};
    EXPECT_EQ(picture(p, bottom_right, 0), "xx...");
    EXPECT_EQ(picture(p, bottom_right, 1), "...xx");
    p.mask.causal = true;
    EXPECT_EQ(picture(p, bottom_right, 0), "xx...");
    EXPECT_EQ(picture(p, bottom_right, 1), ".....");
    EXPECT_EQ(picture(p, bottom_right, 2), "...x.");
    EXPECT_EQ(picture(p, bottom_right, 3), "...xx");
    EXPECT_EQ(picture(p, top_left, 1), "...x.");
    EXPECT_EQ(key_position(p, 4), 1);
    EXPECT_EQ(key_position(p, 1), 1);
    EXPECT_EQ(key_position(p, 2), 0);
}

TEST(visibility, positions_count_from_the_document_and_the_cache) {
    Problem p = sized(2, 5);
    EXPECT_EQ(keys_of(p, bottom_right, 0, 1).position, 4);
    EXPECT_EQ(keys_of(p, top_left, 0, 1).position, 1);
}

}  // namespace
}  // namespace attest::oracle
