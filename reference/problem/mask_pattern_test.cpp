// Masks as people make them: what each pattern hides, told by its own words and not by its code.

#include "reference/problem/mask_pattern.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reference/problem/generators_test.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/names.hpp"

namespace attest {
namespace {

using Rows = std::vector<std::vector<bool>>;

/// Rows of the mask of one head; a key counts as hidden by 0, by -inf, and by the floor.
Rows rows_of(const Case& c, std::int64_t b = 0, std::int64_t h = 0) {
    const TensorSet inputs = make_inputs(c);
    const Tensor& mask = inputs[Role::mask];
    const MaskTensor& how = c.problem.mask.tensor;
    Rows rows(static_cast<std::size_t>(mask.shape()[2]));
    for (std::int64_t i = 0; i < mask.shape()[2]; ++i)
        for (std::int64_t j = 0; j < mask.shape()[3]; ++j) {
            const double x = mask.at(b, h, i, j);
            rows[static_cast<std::size_t>(i)].push_back(how.kind == MaskKind::boolean ? x != 0
                                                        : how.floor < 0 ? x != how.floor
                                                                        : std::isfinite(x));
        }
    return rows;
}

Case patterned(const std::string& shape, const std::string& pattern, int seed) {
    return parse_case(shape + " mask bool pattern " + pattern + " seed " + std::to_string(seed));
}

/// "0001111": one row for people.
std::string text_of(const std::vector<bool>& row) {
    std::string text;
    for (const bool visible : row) text += visible ? '1' : '0';
    return text;
}

/// True of every row over some seeds.
void every_row(const std::string& shape, const std::string& pattern,
               const std::function<bool(const std::vector<bool>&, std::size_t row)>& holds) {
    for (int seed = 0; seed < 40; ++seed) {
        const Rows rows = rows_of(patterned(shape, pattern, seed));
        for (std::size_t i = 0; i < rows.size(); ++i)
            EXPECT_TRUE(holds(rows[i], i))
                << pattern << " seed " << seed << " row " << i << ": " << text_of(rows[i]);
    }
}

std::size_t visible_count(const std::vector<bool>& row) {
    return static_cast<std::size_t>(std::count(row.begin(), row.end(), true));
}

/// Hidden keys in one piece at the start, or at the end.
bool one_step(const std::vector<bool>& row, bool hidden_first) {
    const auto sorted = hidden_first ? std::is_sorted(row.begin(), row.end())
                                     : std::is_sorted(row.rbegin(), row.rend());
    return sorted && visible_count(row) > 0;
}

TEST(MaskPatterns, hide_what_their_names_say) {
    every_row("tq5 tk70", "left_pad tile 32",
              [](const auto& r, auto) { return one_step(r, true); });
    every_row("tq5 tk70", "right_pad tile 32",
              [](const auto& r, auto) { return one_step(r, false); });
    every_row("tq5 tk70", "leading_tiles", [](const auto& r, auto) {
        const std::size_t hidden = r.size() - visible_count(r);
        return one_step(r, true) && (hidden % 16 == 0 || hidden == 69);
    });
    every_row("tq5 tk70", "trailing_tiles", [](const auto& r, auto) {
        const std::size_t visible = visible_count(r);
        return one_step(r, false) && (visible % 16 == 0 || visible == 1 || visible == 70);
    });
    every_row("tq5 tk70", "inner_tiles", [](const auto& r, auto) {
        for (std::size_t j = 0; j < 70; ++j)
            if (r[j] != r[j / 16 * 16] || ((j < 16 || j >= 64) && !r[j])) return false;
        return true;
    });
    every_row("tq5 tk9", "one_key", [](const auto& r, auto) { return visible_count(r) == 1; });
    every_row("tq6 tk9", "prefix_lm",
              [](const auto& r, auto i) { return one_step(r, false) && r[i + 3]; });
    every_row("tq6 tk9", "band tile 3", [](const auto& r, auto i) {
        for (std::size_t j = 0; j < 9; ++j)
            if (r[j] && (j > i + 5 || j + 2 < i + 3)) return false;
        return r[i + 3];
    });
    every_row("tq6 tk9", "dilated tile 4", [](const auto& r, auto i) {
        const std::size_t seen = visible_count(r);
        return r[i + 3] && seen < 9;
    });
    every_row("tq6 tk9", "checkerboard tile 1", [](const auto& r, auto i) {
        for (std::size_t j = 0; j < 9; ++j)
            if (r[j] != ((i + 3 + j) % 2 == 0)) return false;
        return true;
    });
    every_row("tq32 tk32", "blocks tile 8", [](const auto& r, auto i) {
        for (std::size_t j = 0; j < 32; ++j)
            if (r[j] != r[j / 8 * 8]) return false;
        return r[i];
    });
    every_row("tq5 tk9", "empty_rows",
              [](const auto& r, auto) { return visible_count(r) == 0 || visible_count(r) == 9; });
}

/// Ancestors: what a node sees after the past, its parent sees too, but for the node itself.
TEST(MaskPatterns, a_tree_is_a_tree) {
    for (int seed = 0; seed < 40; ++seed) {
        const Rows rows = rows_of(patterned("tq8 tk13", "tree", seed));
        for (std::size_t i = 0; i < 8; ++i) {
            for (std::size_t j = 0; j < 5; ++j) EXPECT_TRUE(rows[i][j]);
            EXPECT_TRUE(rows[i][i + 5]);
            std::size_t parent = i;
            while (parent > 0 && !rows[i][parent - 1 + 5]) --parent;
            for (std::size_t j = i + 6; j < 13; ++j) EXPECT_FALSE(rows[i][j]);
            if (i == 0) continue;
            ASSERT_GT(parent, 0u) << text_of(rows[i]);
            std::vector<bool> expected = rows[parent - 1];
            expected[i + 5] = true;
            EXPECT_EQ(rows[i], expected);
        }
    }
}

/// Documents are what their rows say they are: rows see one range, and ranges do not overlap.
TEST(MaskPatterns, documents_do_not_overlap) {
    for (int seed = 0; seed < 40; ++seed) {
        const Rows rows = rows_of(patterned("tq30 tk30", "documents tile 6", seed));
        for (std::size_t i = 0; i < 30; ++i)
            for (std::size_t j = 0; j < 30; ++j) EXPECT_EQ(rows[i][j], rows[i] == rows[j]);
    }
}

/// What kernels lose sight of: whole tiles of hidden keys, for all rows of a block and for some.
TEST(MaskPatterns, hide_whole_tiles_for_all_rows_and_for_some) {
    std::map<std::string, int> whole, first_row_alone;
    for (const std::string_view name : mask_pattern_names())
        for (int seed = 0; seed < 60; ++seed) {
            const std::string pattern(name);
            const Rows rows = rows_of(patterned("tq32 tk80", pattern, seed));
            const auto hidden = [](const std::vector<bool>& row, std::size_t tile) {
                return std::count(row.begin() + 16 * static_cast<std::ptrdiff_t>(tile),
                                  row.begin() + 16 * static_cast<std::ptrdiff_t>(tile + 1),
                                  true) == 0;
            };
            bool for_all = false, for_first = false;
            for (std::size_t tile = 0; tile < 5; ++tile) {
                std::size_t rows_hidden = 0;
                for (const auto& row : rows) rows_hidden += hidden(row, tile);
                for_all = for_all || rows_hidden == rows.size();
                for_first = for_first || (rows_hidden < rows.size() && hidden(rows[0], tile));
            }
            whole[pattern] += for_all;
            first_row_alone[pattern] += for_first;
        }
    for (const char* pattern : {"left_pad", "right_pad", "leading_tiles", "inner_tiles",
                                "trailing_tiles", "one_key", "empty_rows", "documents", "blocks"})
        EXPECT_GE(whole[pattern], 8) << pattern;
    for (const char* pattern : {"leading_tiles", "inner_tiles", "trailing_tiles", "one_key",
                                "documents", "empty_rows", "prefix_lm", "band"})
        EXPECT_GE(first_row_alone[pattern], 8) << pattern;
}

RC_GTEST_PROP(MaskPatternLaw, only_two_patterns_leave_rows_without_a_key, ()) {
    Case c = *any_case();
    const MaskTensor& how = c.problem.mask.tensor;
    RC_PRE(how.kind != MaskKind::none && c.problem.len_kv > 0);
    RC_PRE(how.pattern != MaskPattern::iid && how.pattern != MaskPattern::empty_rows);
    // A floor among the biases themselves, of N(0, 2), could not be told from one.
    RC_PRE(how.floor == 0 || how.floor < -100);
    for (std::int64_t b = 0; b < make_inputs(c)[Role::mask].shape()[0]; ++b)
        for (const auto& row : rows_of(c, b)) RC_ASSERT(visible_count(row) > 0);
}

/// The keys hidden are the pattern's, whatever the kind of the mask and whatever hides them.
TEST(MaskPatterns, are_the_same_in_every_kind_of_mask) {
    for (const std::string_view name : mask_pattern_names()) {
        if (name == "iid") continue;
        const std::string pattern = " pattern " + std::string(name) + " tile 3";
        for (const std::string floor : {"", " floor -10000"}) {
            const std::string line =
                "b2 hq2 hkv2 tq7 tk11 d2 mask additive" + pattern + floor + " seed 5";
            const Case boolean =
                parse_case("b2 hq2 hkv2 tq7 tk11 d2 mask bool" + pattern + " seed 5");
            EXPECT_EQ(rows_of(parse_case(line), 1, 1), rows_of(boolean, 1, 1)) << line;
        }
    }
}

/// One number hides a row or none of it, and by most patterns none.
TEST(MaskPatterns, of_one_key_are_those_of_a_mask_that_keys_share) {
    for (const std::string_view name : mask_pattern_names()) {
        int hidden = 0;
        for (int seed = 0; seed < 20; ++seed) {
            const std::string how = "bool pattern " + std::string(name) + " shared keys";
            const std::string line = " mask " + how + " seed " + std::to_string(seed);
            const Tensor mask = make_inputs(parse_case("tq7 tk11" + line))[Role::mask];
            EXPECT_EQ(mask.shape(), (Shape{1, 1, 7, 1}));
            for (const double x : mask.to_doubles()) hidden += x == 0;
        }
        const bool hides = name == "iid" || name == "empty_rows";
        EXPECT_EQ(hidden > 0, hides) << name;
        EXPECT_LT(hidden, 140) << name;
    }
}

TEST(MaskPatterns, a_floor_is_what_hides) {
    for (const std::string pattern : {"iid", "left_pad", "tree"}) {
        const Case c =
            parse_case("tq7 tk40 f16 mask additive pattern " + pattern + " floor -65504");
        int floored = 0;
        for (const double x : make_inputs(c)[Role::mask].to_doubles()) {
            EXPECT_TRUE(std::isfinite(x));
            floored += x == -65504;
        }
        EXPECT_GT(floored, 0) << pattern;
    }
}

TEST(Slopes, of_heads_that_are_no_power_of_two_are_the_published_ones) {
    const auto slopes = [](const char* line) {
        return make_inputs(parse_case(line))[Role::alibi_slopes].to_doubles();
    };
    // Press, Smith, Lewis 2021, as their get_slopes(6) gives them.
    EXPECT_EQ(slopes("hq6 hkv6 alibi slopes published"),
              (std::vector<double>{0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-1, 0x1p-3}));
    EXPECT_EQ(slopes("hq4 hkv4 alibi slopes published"), slopes("hq4 hkv4 alibi"));
    EXPECT_EQ(parse_problem("hq4 hkv4 alibi slopes published").alibi_slopes,
              AlibiSlopes::geometric);
    const std::vector<double> any = slopes("hq6 hkv6 alibi slopes random seed 3");
    for (const double slope : any) EXPECT_TRUE(slope > 0x1p-8 && slope <= 1);
    EXPECT_NE(any, slopes("hq6 hkv6 alibi slopes random seed 4"));
}

}  // namespace
}  // namespace attest
