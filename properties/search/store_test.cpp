// Stored failures go out and come back; what is malformed is refused with its place.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "properties/search/glob.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {
namespace {

class Store : public ::testing::Test {
protected:
    void write(const std::string& file, const std::string& text) const {
        std::filesystem::create_directories(directory_);
        std::ofstream(directory_ + "/" + file) << text;
    }
    std::string message() const {
        try {
            load_failures(directory_);
        } catch (const BadInput& error) {
            return error.what();
        }
        return "";
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    std::string directory_ = (std::filesystem::temp_directory_path() /
                              ("attest_store_test_" + std::to_string(::getpid())))
                                 .string();
};

StoredFailure example() {
    StoredFailure failure;
    failure.tried = parse_case("b1 hq2 hkv1 tq3 tk5 d4 causal f16 values ties seed 3 q ones");
    failure.law = "masking.causal";
    failure.kernel = "cpu_flash";
    failure.shrunk = true;
    failure.id = failure_id(failure.tried, failure.law);
    return failure;
}

TEST_F(Store, WhatGoesOutComesBack) {
    EXPECT_TRUE(load_failures(directory_).empty());  // no directory yet
    const StoredFailure out = example();
    store_failure(directory_, out);
    store_failure(directory_, out);  // twice is once
    const auto in = load_failures(directory_);
    ASSERT_EQ(in.size(), 1u);
    EXPECT_EQ(in[0].id, out.id);
    EXPECT_EQ(in[0].law, out.law);
    EXPECT_EQ(in[0].kernel, out.kernel);
    EXPECT_EQ(in[0].tried, out.tried);
    EXPECT_EQ(in[0].shrunk, out.shrunk);
    EXPECT_TRUE(std::filesystem::exists(directory_ + "/" + out.id + ".json"));
}

TEST_F(Store, TheIdIsOfCaseAndLaw) {
    const Case c = example().tried;
    EXPECT_EQ(failure_id(c, "a.b").size(), 64u);
    EXPECT_NE(failure_id(c, "a.b"), failure_id(c, "a.c"));
    EXPECT_NE(failure_id(c, "a.b"), failure_id({}, "a.b"));
}

TEST_F(Store, MalformedFilesAreRefusedWithTheirPlace) {
    write("a.json", "{\n  \"law\": }");
    EXPECT_NE(message().find("a.json:2:10: this is not JSON"), std::string::npos) << message();
    write("a.json", "[]");
    EXPECT_NE(message().find("expected an object"), std::string::npos);
    write("a.json", R"({"law":"x.y","id":"1","kernel":"k","shrunk":true,"case":{},"more":1})");
    EXPECT_NE(message().find("unknown key more"), std::string::npos);
    write("a.json", R"({"law":"x.y","id":"1","kernel":"k","shrunk":1,"case":{}})");
    EXPECT_NE(message().find("a.json:1:45: expected true or false"), std::string::npos);
    write("a.json", R"({"law":"x.y","kernel":"k","shrunk":true,"case":{}})");
    EXPECT_NE(message().find("id is missing"), std::string::npos);
}

TEST_F(Store, WhatCannotBeReadIsToldAndTheRestIsRead) {
    store_failure(directory_, example());
    write("broken.json", "{");
    write("deep.json", std::string(200'000, '['));
    ASSERT_EQ(::mkfifo((directory_ + "/pipe.json").c_str(), 0600), 0);
    std::filesystem::create_symlink("/dev/zero", directory_ + "/zero.json");
    std::vector<std::string> unread;
    const auto in = load_failures(directory_, &unread);
    ASSERT_EQ(in.size(), 1u);
    EXPECT_EQ(in[0].id, example().id);
    ASSERT_EQ(unread.size(), 4u);
    EXPECT_NE(unread[0].find("broken.json:1:"), std::string::npos) << unread[0];
    EXPECT_NE(unread[1].find("nested too deep"), std::string::npos) << unread[1];
    EXPECT_NE(unread[2].find("pipe.json: is no file"), std::string::npos) << unread[2];
    EXPECT_NE(unread[3].find("zero.json: is no file"), std::string::npos) << unread[3];
}

TEST_F(Store, AnEditedFileIsRefused) {
    StoredFailure failure = example();
    failure.law = "masking.window";  // the id stays that of masking.causal
    store_failure(directory_, failure);
    EXPECT_NE(message().find("the file was edited"), std::string::npos) << message();
}

TEST(Glob, StarsAndQuestionMarks) {
    EXPECT_TRUE(matches("*", ""));
    EXPECT_TRUE(matches("masking.*", "masking.causal"));
    EXPECT_TRUE(matches("*.causal", "masking.causal"));
    EXPECT_TRUE(matches("m*k*g.c?usal", "masking.causal"));
    EXPECT_TRUE(matches("a*ab", "aaab"));
    EXPECT_FALSE(matches("masking", "masking.causal"));
    EXPECT_FALSE(matches("masking.*", "masking"));
    EXPECT_FALSE(matches("?", ""));
    EXPECT_FALSE(matches_any({}, "x"));
    EXPECT_TRUE(matches_any({"a", "x"}, "x"));
}

}  // namespace
}  // namespace attest::search
