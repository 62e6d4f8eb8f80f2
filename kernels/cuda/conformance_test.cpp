// The emulation's answers against those of the devices whose words lie in fixtures/gpu.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/cuda/conformance.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"

namespace attest::cuda {
namespace {

namespace fs = std::filesystem;

Words read_words(const JsonSource& source, const Json& value) {
    const std::string& text = json_string(source, value);
    const bool hexadecimal = text.find_first_not_of("0123456789abcdef") == text.npos;
    if (!hexadecimal || text.size() % 8 != 0)
        source.fail(value, "expected words", "eight hexadecimal digits each, 0-9 and a-f");
    Words words;
    for (std::size_t at = 0; at < text.size(); at += 8)
        words.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(at, 8), nullptr, 16)));
    return words;
}

/// Holds every line of a device's file to what this emulation answers. Throws BadInput where the
/// file is not what `cuda_conformance --write` writes.
void compare(const std::string& text, const std::string& name) {
    const std::vector<WarpQuestion> questions = all_questions();
    std::istringstream lines(text);
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
        const std::string place = name + " line " + std::to_string(number + 1);
        const JsonSource source{.text = line, .name = place};
        const Json object = parse_json(source);
        json_keys(source, object, {"name", "in", "out"});
        const Json *asked = object.find("name"), *in = object.find("in"), *out = object.find("out");
        if (asked == nullptr || in == nullptr || out == nullptr)
            source.fail(object, "name, in and out are wanted", "write the file again with ci/gpu");
        if (number >= questions.size() || json_string(source, *asked) != questions[number].name)
            source.fail(*asked, "another question is asked here",
                        "write the file again with ci/gpu");
        const WarpQuestion& question = questions[number];
        if (read_words(source, *in) != question.in)
            source.fail(*in, "the inputs are others now", "write the file again with ci/gpu");
        const Words observed = answer(question).words, device = read_words(source, *out);
        if (device.size() != observed.size())
            source.fail(*out, "another number of words is answered",
                        "write the file again with ci/gpu");
        const auto [mine, theirs] = std::mismatch(observed.begin(), observed.end(), device.begin());
        if (mine != observed.end())
            ADD_FAILURE() << place << ": word " << mine - observed.begin() << " of "
                          << question.name << " is " << *mine << " here, " << *theirs
                          << " on the device";
    }
    if (number != questions.size())
        throw BadInput(name + ": " + std::to_string(number) + " questions of " +
                           std::to_string(questions.size()) + " are answered",
                       {"write the file again with ci/gpu"});
}

std::string own_answers() {
    std::string text;
    for (const WarpQuestion& question : all_questions())
        text += as_line(question, answer(question).words) + '\n';
    return text;
}

TEST(simt_golden, answers_as_devices_do) {
    std::size_t devices = 0;
    for (const auto& entry : fs::directory_iterator(ATTEST_GPU_FIXTURES)) {
        const fs::path file = entry.path() / "conformance.jsonl";
        if (!fs::exists(file)) continue;
        ++devices;
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        compare(text.str(), file.string());
    }
    if (devices == 0) GTEST_SKIP() << "no device's words are committed yet";
}

TEST(simt_golden, reads_what_is_written) {
    EXPECT_NO_THROW(compare(own_answers(), "own"));
}

TEST(simt_golden, refuses_what_is_not) {
    const std::string whole = own_answers();
    const auto with = [&](std::string_view from, std::string_view to) {
        std::string text = whole;
        return text.replace(text.find(from), from.size(), to);
    };
    for (const std::string& wrong :
         {std::string(), whole + whole, whole.substr(0, whole.size() / 2), with("\"in\"", "\"on\""),
          with("shuffles", "shuffled"), with("\"out\":\"", "\"out\":\"0"),
          with("\"in\":\"0", "\"in\":\"F"), with("\"in\":\"00000000", "\"in\":\"00000001"),
          with("\"out\":\"", "\"out\":\"00000000"), with("\n", "\n\n")})
        EXPECT_THROW(compare(wrong, "wrong"), BadInput) << wrong.substr(0, 60);
}

}  // namespace
}  // namespace attest::cuda
