#include "ci/escape.hpp"

#include <gtest/gtest.h>

#include "ci/html.hpp"
#include "ci/png.hpp"
#include "ci/screen.hpp"

namespace attest::ci {
namespace {

TEST(Escape, EveryLanguageKeepsItsOwnSigns) {
    EXPECT_EQ(xml_escaped("a<b>&\"'\x1b"), "a&lt;b&gt;&amp;&quot;&#39;?");
    EXPECT_EQ(markdown_escaped("a|b`<i>~"), "a\\|b\\`\\<i\\>\\~");
    EXPECT_EQ(annotation_escaped("50%\r\nb"), "50%25%0D%0Ab");
    EXPECT_EQ(annotation_property("a:b,c%"), "a%3Ab%2Cc%25");
    EXPECT_EQ(uri_of("./a b/\xc3\xa9.cu"), "a%20b/%C3%A9.cu");
    EXPECT_EQ(uri_of("/a.cu"), "file:///a.cu");
    EXPECT_EQ(shell_word("./lib.so"), "./lib.so");
    EXPECT_EQ(shell_word("a b'c"), "'a b'\\''c'");
    EXPECT_EQ(shell_word(""), "''");
}

TEST(Escape, TextOfAPageIsCleanAndCut) {
    EXPECT_EQ((Html() << "<b>" << Text{"<i>"} << "</b>").text(), "<b>&lt;i&gt;</b>");
    EXPECT_EQ((Html() << Text{std::string(9, 'x'), 4}).text(), "xxxx...");
    EXPECT_EQ((Html() << At{-0.01} << " " << At{2.25} << " " << At{3}).text(), "0 2.2 3");
}

TEST(Escape, WhatNoXmlHoldsIsGone) {
    EXPECT_EQ(clean("\xed\xa0\x80|\xc0\xaf|\xf4\x90\x80\x80"), "???|??|????");
    EXPECT_EQ(clean("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"), "??\xef\xbf\xbd");
    EXPECT_EQ(clean("\u202etxt.exe\u2066"), "?txt.exe?");
}

TEST(Png, Base64IsPadded) {
    EXPECT_EQ(base64(""), "");
    EXPECT_EQ(base64("f"), "Zg==");
    EXPECT_EQ(base64("fo"), "Zm8=");
    EXPECT_EQ(base64("foo"), "Zm9v");
}

}  // namespace
}  // namespace attest::ci
