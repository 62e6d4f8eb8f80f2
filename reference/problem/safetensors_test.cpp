#include "reference/problem/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "reference/problem/case.hpp"
#include "reference/problem/refusal_test.hpp"

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

std::string with_header(const std::string& header, std::size_t data_bytes) {
    std::string bytes(8, '\0');
    const std::uint64_t size = header.size();
    std::memcpy(bytes.data(), &size, 8);
    return bytes + header + std::string(data_bytes, '\1');
}

std::map<std::string, Tensor> every_type() {
    std::map<std::string, Tensor> tensors;
    for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::f16,
                                   ElementType::bf16, ElementType::i32, ElementType::u8}) {
        Tensor tensor(type, {2, 1, 3, 1});
        for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i) + 1);
        tensors.emplace(name(type), tensor);
    }
    tensors.emplace("empty", Tensor(ElementType::f32, {2, 0, 3, 1}));
    return tensors;
}

TEST_F(Files, tensors_read_back) {
    write_safetensors(path("a.safetensors"), every_type());
    EXPECT_EQ(read_safetensors(path("a.safetensors")), every_type());
    write_safetensors(path("b.safetensors"), {});
    EXPECT_TRUE(read_safetensors(path("b.safetensors")).empty());
    EXPECT_THROW(read_safetensors(path("none")), BadInput);
    EXPECT_THROW(read_safetensors(folder_.string()), BadInput);
    EXPECT_THROW(safetensors_bytes({{"a\"b", Tensor(ElementType::u8, {1, 1, 1, 1})}}),
                 InternalError);
}

TEST(Safetensors, shapes_of_fewer_axes_get_ones_and_metadata_is_allowed) {
    const auto tensors = parse_safetensors(
        with_header(
            R"({"__metadata__":{"by":"x"},"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
            3),
        "s");
    EXPECT_EQ(tensors.at("a").shape(), (Shape{3, 1, 1, 1}));
    EXPECT_EQ(tensors.at("a").get(2), 1);
}

TEST(Safetensors, whatever_is_malformed_is_refused) {
    const std::string a = R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]})";
    const std::pair<std::string, std::size_t> malformed[] = {
        {"{" + a + "}", 4},
        {"{" + a + "}", 2},
        {"{" + a + R"(,"b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})", 5},
        {"{" + a + R"(,"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})", 7},
        {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}})", 4},
        {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[3,0]}})", 3},
        {R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8},
        {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1],"data_offsets":[0,1]}})", 1},
        {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})", 0},
        {R"({"a":{"dtype":"F64","shape":[1099511627776,16777216,8],"data_offsets":[0,0]}})", 0},
        {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3],"x":1}})", 3},
        {R"({"a":{"dtype":"U8","shape":[3]}})", 3},
        {R"({"a":{"dtype":"U8","data_offsets":[0,3]}})", 3},
        {R"({"__metadata__":{"by":1}})", 0},
        {"[]", 0},
        {"", 0},
    };
    for (const auto& [header, data] : malformed)
        EXPECT_THROW(parse_safetensors(with_header(header, data), "s"), BadInput) << header;
    EXPECT_THROW(parse_safetensors("short", "s"), BadInput);
    EXPECT_THROW(parse_safetensors(std::string(16, '\xff'), "s"), BadInput);
    EXPECT_EQ(refusal([&] { parse_safetensors(with_header("{" + a + "}", 4), "x.safetensors"); }),
              "x.safetensors: 4 bytes of data where the header has 3\n"
              "write it again with a safetensors writer; the file may be cut");
}

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
    fs::create_directories(folder_ / "taken");
    EXPECT_THROW(write_file_atomically(path("taken"), "x"), InternalError);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1)
        << "the temporary file is gone";
}

}  // namespace
}  // namespace attest
