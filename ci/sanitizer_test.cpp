#include "ci/sanitizer.hpp"

#include <gtest/gtest.h>

namespace attest::ci {
namespace {

TEST(Sanitizer, ToolsThatSayTheSameAreToldTogether) {
    const std::atomic<int> interrupted{1};
    std::vector<diagnosis::SanitizerEntry> entries =
        ask_sanitizer({"attest"}, "nowhere/", interrupted);
    EXPECT_EQ(sanitizer_sentences(entries),
              std::vector<std::string>{"memcheck, racecheck, initcheck, synccheck: not run: the "
                                       "run was interrupted"});
    entries[1] = {"racecheck", diagnosis::SanitizerEntry::Verdict::found, "", 2, {{"a race", ""}}};
    EXPECT_EQ(sanitizer_sentences(entries)[1], "racecheck: a race (2 errors)");
}

}  // namespace
}  // namespace attest::ci
