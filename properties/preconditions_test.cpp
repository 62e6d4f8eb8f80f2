// The digest of the catalogue tells preconditions by their answers: they must have some.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/law/catalogue.hpp"

namespace attest::law {
namespace {

TEST(Preconditions, each_takes_some_of_the_problems_asked_and_refuses_some) {
    const auto problems = precondition_problems();
    for (const Property& law : catalogue()) {
        if (law.cases.admits == nullptr) continue;
        const auto taken = std::count_if(problems.begin(), problems.end(), law.cases.admits);
        EXPECT_GT(taken, 0) << law.id;
        EXPECT_LT(taken, static_cast<std::ptrdiff_t>(problems.size())) << law.id;
    }
}

}  // namespace
}  // namespace attest::law
