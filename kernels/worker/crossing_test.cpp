// A problem as it crosses to the worker: every field, in the bytes that C, Python and the page on
// the protocol say.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "kernels/worker/example_kernels_test.hpp"
#include "kernels/worker/session.hpp"
#include "kernels/worker/wire_problem.hpp"
#include "reference/problem/fields.hpp"
#include "reference/problem/names.hpp"

namespace attest::worker {
namespace {

/// Differs from a problem of zeros in every field that crosses.
Problem everything() {
    Problem p = parse_problem(
        "b2 hq6 hkv3 tq4 tk9 d8 dv16 causal window 3 5 mask additive lens_q 3,4 lens_kv 7,9 scale "
        "0.25 softcap 30 sink alibi rope half base 500 dims 4 offset 7 dropout 0.5 seed 11 cache 5 "
        "page 2 rotated splits 13 f16 kv bf16 out f32 grad lse_grad");
    p.cache.ring = true;          // not with pages
    p.mask.documents_q = {1, 3};  // nor with a cache
    p.mask.documents_kv = {4, 5};
    return p;
}

struct Line {
    std::string name, type, words;
    std::size_t offset = 0;
};

std::vector<Line> layout() {
    std::vector<Line> lines;
    std::istringstream text(problem_layout());
    for (std::string one; std::getline(text, one);) {
        std::istringstream parts(one);
        Line line;
        parts >> line.name >> line.type >> line.offset >> line.words;
        lines.push_back(line);
    }
    return lines;
}

std::size_t size_of(const Line& line) {
    return line.type.ends_with("64") ? 8 : 4;
}

template <typename Number>
std::string text_at(const attest_problem& problem, std::size_t offset) {
    Number number;
    std::memcpy(&number, reinterpret_cast<const char*>(&problem) + offset, sizeof number);
    std::ostringstream text;
    text << number;
    return text.str();
}

std::string text_of(const attest_problem& problem, const Line& line) {
    if (line.type == "i64") return text_at<std::int64_t>(problem, line.offset);
    if (line.type == "u64") return text_at<std::uint64_t>(problem, line.offset);
    if (line.type == "i32") return text_at<std::int32_t>(problem, line.offset);
    if (line.type == "u32") return text_at<std::uint32_t>(problem, line.offset);
    const std::string text = text_at<double>(problem, line.offset);
    return text.find('.') == text.npos ? text + ".0" : text;
}

TEST(Crossing, FillsEveryMemberOfTheBordersStruct) {
    attest_problem abi = to_abi(everything());
    abi.call_number = 1;
    std::size_t end = 0;
    for (const Line& line : layout()) {
        EXPECT_EQ(line.offset, (end + size_of(line) - 1) / size_of(line) * size_of(line))
            << line.name << ": a member before it has no row";
        EXPECT_NE(text_of(abi, line), "0") << line.name;
        EXPECT_NE(text_of(abi, line), "0.0") << line.name;
        end = line.offset + size_of(line);
    }
    EXPECT_EQ(end, sizeof abi);
    EXPECT_EQ(abi.struct_size, sizeof abi);
    EXPECT_EQ(abi.flags, unsigned{ATTEST_FLAG_PACKED | ATTEST_FLAG_RING | ATTEST_FLAG_KEYS_ROTATED |
                                  ATTEST_FLAG_D_LSE});
    EXPECT_EQ(abi.softcap, 30);
    EXPECT_EQ(abi.window_right, 5);
    EXPECT_EQ(abi.rope_kind, ATTEST_ROPE_HALF);
    EXPECT_EQ(abi.format_kv, ATTEST_BF16);
}

TEST(Crossing, WritesDefaultsOut) {
    const attest_problem abi = to_abi(parse_problem("d4 rope half"));
    EXPECT_EQ(abi.scale, 0.5);
    EXPECT_EQ(abi.dim_v, 4);
    EXPECT_EQ(abi.rope_dims, 4);
    EXPECT_EQ(abi.window_left, -1);
    EXPECT_EQ(to_abi(parse_problem("d4")).rope_base, 0);
}

TEST(Crossing, IsThePageOnTheProtocol) {
    std::string table;
    for (const Line& line : layout())
        table +=
            fmt::format("| {} | {} | {} | {} |\n", line.name, line.type, line.offset, line.words);
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "PROTOCOL.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(page.find(table), page.npos) << "PROTOCOL.md must have these rows:\n" << table;
}

TEST(Crossing, NamesTheRolesInPythonAlike) {
    const auto folder = std::filesystem::path(__FILE__).parent_path();
    std::ifstream file(folder / "python/attest_worker/protocol.py");
    std::string listed, word;
    for (std::string line; std::getline(file, line) && line != "ROLES = (";) continue;
    for (std::string line; std::getline(file, line) && line != ").split()";) {
        std::erase(line, '"');
        for (std::istringstream words(line); words >> word;) listed += word + " ";
    }
    std::string wanted;
    for (int role = 0; role < ATTEST_ROLE_COUNT; ++role)
        wanted.append(attest_role_name(role)) += " ";
    EXPECT_EQ(listed, wanted);
}

TEST(Crossing, TellsPythonTheSame) {
    ASSERT_EQ(::chdir(example("").c_str()), 0);
    Problem problem = everything();
    Session session(kernel::parse_kernel_spec("python:tells_problem:forward"), {});
    std::string told;
    EXPECT_FALSE(session.supports(problem, &told));
    const attest_problem abi = to_abi(problem);
    std::string wanted = "Problem(";
    for (const Line& line : layout()) {
        if (line.name == "struct_size") continue;
        if (wanted.back() != '(') wanted += ", ";
        wanted += line.name + "=";
        const std::string number = text_of(abi, line);
        if (line.name.starts_with("format_"))
            wanted += fmt::format("<Format.{}: {}>", precision_names()[std::stoul(number)], number);
        else
            wanted += number;
    }
    wanted += ")";
    for (int n = 0; n < feature_count; ++n)
        if (features_of(problem).has(static_cast<Feature>(n)))
            wanted.append(" ").append(name(static_cast<Feature>(n)));
    EXPECT_EQ(told, wanted);
}

}  // namespace
}  // namespace attest::worker
