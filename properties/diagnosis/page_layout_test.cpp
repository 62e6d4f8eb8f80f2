// Pages whose numbers are reckoned otherwise.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/fitted.hpp"

namespace attest::diagnosis {
namespace {

std::string taken_for(const char* id, const char* line) {
    const std::vector<Deviation> all = page_layouts();
    const auto own = std::ranges::find(all, id, &Deviation::id);
    if (own == all.end()) return "no such deviation";
    const auto answer = [own](const Specification& s, const bound::Expected& truth) {
        return predict(*own, s, truth).value_or(truth);
    };
    return diagnosed_of(answer, line).id;
}

TEST(PageNumbers, AreNamedWhereTheyAreKeptInEightBits) {
    EXPECT_EQ(taken_for("pages_modulo_256", "b1 hq1 hkv1 tq2 tk300 d4 cache 298 page 1 f32"),
              "pages_modulo_256");
}

TEST(PageNumbers, AreNamedWhereTheyAreShifted) {
    EXPECT_EQ(taken_for("pages_by_shift", "b1 hq2 hkv2 tq2 tk20 d4 cache 18 page 6 f32"),
              "pages_by_shift");
}

}  // namespace
}  // namespace attest::diagnosis
