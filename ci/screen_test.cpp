#include "ci/screen.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace attest::ci {
namespace {

TEST(Screen, HostileTextLosesItsControls) {
    EXPECT_EQ(clean("a\x1b[31mred\n\t\x7f"
                    "b"),
              "a?[31mred???b");
    EXPECT_EQ(clean("\xc2\x9b"
                    "31m"),
              "?31m");  // C1: CSI in one character
    EXPECT_EQ(clean("\xff\xfe ok"), "?? ok");
    EXPECT_EQ(clean("≠"), "≠");
    EXPECT_EQ(clean(std::string(1000, 'x')), std::string(300, 'x') + "...");
}

TEST(Screen, ColumnsIgnoreEscapes) {
    const Screen rich({80, true, true});
    EXPECT_EQ(columns_of(rich.bad("✕ VIOLATED")), 10);
    EXPECT_EQ(columns_of(rich.mark("holds")), 1);
    EXPECT_EQ(rich.pad(rich.dim("ab"), 4), rich.dim("ab") + "  ");
}

TEST(Screen, NothingIsWiderThanTheScreen) {
    for (const bool rich : {false, true}) {
        Screen screen({80, rich, rich});
        const std::string word(200, 'w');
        screen.line(screen.bad("one ") + word + " " + word);
        screen.fact("key", "short words that go on and on, " + word + " and on and on and on");
        screen.line("a line of exactly eighty columns " + std::string(47, '.'));
        screen.line(std::string(81, 'x'));
        std::istringstream lines(screen.text());
        for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 80) << line;
    }
}

TEST(Screen, WrapsAtSpacesAndLosesNothing) {
    const std::vector<std::string> lines = wrap("alpha beta gamma delta", 11);
    EXPECT_EQ(lines, (std::vector<std::string>{"alpha beta", "gamma delta"}));
    EXPECT_EQ(wrap("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
    EXPECT_EQ(wrap("", 10), std::vector<std::string>{""});
}

TEST(Screen, AsciiFoldsItsOwnSymbols) {
    Screen plain({80, false, false});
    plain.line("only when Tq ≠ Tk");
    EXPECT_EQ(plain.text(), "only when Tq != Tk\n");
    EXPECT_EQ(plain.mark("violated"), "X");
    EXPECT_EQ(plain.cut("0123456789", 8), "01234...");
    EXPECT_EQ(plain.cut("\x1b[1m01\x1b[0m23456789", 8), "\x1b[1m01\x1b[0m234\x1b[0m...");
}

}  // namespace
}  // namespace attest::ci
