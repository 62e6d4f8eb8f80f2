#include "reference/problem/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("attest_files_" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string path(const char* file) const { return (folder_ / file).string(); }
    static std::string content(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    fs::path folder_;
};

TEST_F(Files, are_replaced_whole_and_leave_no_debris) {
    write_file_atomically(path("f"), "first");
    write_file_atomically(path("f"), std::string("second\0x", 8));
    EXPECT_EQ(content(path("f")), std::string("second\0x", 8));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
    struct stat info;
    ASSERT_EQ(::stat(path("f").c_str(), &info), 0);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(Files, that_cannot_be_written_are_named_with_the_cause) {
    try {
        write_file_atomically(path("missing/f"), "x");
        FAIL();
    } catch (const InternalError& error) {
        EXPECT_EQ(std::string(error.what()), path("missing/f") + ": No such file or directory");
    }
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    EXPECT_THROW(write_file_atomically(path("pipe"), "x"), InternalError);
    ASSERT_TRUE(fs::remove(path("pipe")));
    fs::create_directories(folder_ / "taken");
    EXPECT_THROW(write_file_atomically(path("taken"), "x"), InternalError);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1)
        << "the temporary file is gone";
}

}  // namespace
}  // namespace attest
