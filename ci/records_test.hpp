#pragma once
// For the tests of readers of records: a file of text, text that was tampered with, what a reader
// says of it, and every value of a record.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "ci/record.hpp"
#include "ci/record_writer.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/generators_test.hpp"

namespace attest::ci::records_test {

/// The name of a file that holds this text. Tests run side by side, each in a process of its own.
inline const std::string& file_of(const std::string& text) {
    static const std::string path =
        testing::TempDir() + "attest_records_" + std::to_string(::getpid()) + ".jsonl";
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

/// Empty where it is read; else the error. Anything but BadInput passes through and fails the test.
template <typename Read>
std::string refusal_by(Read read, const std::string& text) {
    const std::string& path = file_of(text);
    try {
        read(path);
        return "";
    } catch (const BadInput& error) {
        EXPECT_LE(error.details().size(), 4u);
        return std::string(error.what()).substr(path.size());
    }
}

/// Bytes, lines, and pieces of other lines in the wrong place.
inline std::string tampered(std::string all) {
    using generate::coin, generate::whole;
    for (std::int64_t n = whole(1, 4); n > 0; --n) {
        const auto at = static_cast<std::size_t>(whole(0, static_cast<int>(all.size())));
        const auto from = static_cast<std::size_t>(whole(0, static_cast<int>(all.size())));
        const auto length = static_cast<std::size_t>(whole(0, 12));
        if (coin())
            all.insert(at, all.substr(from, length));
        else if (coin())
            all.erase(at, length);
        else if (at < all.size())
            all[at] = static_cast<char>(whole(0, 255));
    }
    return all;
}

inline void each_value(Record& value, const std::function<void(Record&)>& tell) {
    tell(value);
    if (value.is_structured())
        for (Record& part : value) each_value(part, tell);
}

}  // namespace attest::ci::records_test
