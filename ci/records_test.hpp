#pragma once
// For the tests of readers of records: a file of text, text that was tampered with, what a reader
// says of it, the records in it, every value of a record, and one of another type.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

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

/// The lines of a file of records, and back.
inline std::vector<Record> records_of(const std::string& all) {
    std::vector<Record> records;
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) records.push_back(Record::parse(line));
    return records;
}

inline std::string joined_records(const std::vector<Record>& records) {
    std::string all;
    for (const Record& record : records) all += record_text(record) + "\n";
    return all;
}

inline void each_value(Record& value, const std::function<void(Record&)>& tell) {
    tell(value);
    if (value.is_structured())
        for (Record& part : value) each_value(part, tell);
}

/// Any one value in the record, replaced by one of another type; true where one of them is null.
inline bool retype_one(Record& record) {
    std::vector<Record*> values;
    each_value(record, [&](Record& value) { values.push_back(&value); });
    const auto last = static_cast<int>(values.size()) - 1;
    Record& value = *values[static_cast<std::size_t>(generate::whole(1, last))];
    static const Record others[] = {nullptr, true, -1, "x", Record::array(), {{"x", 1}}};
    const Record& other = others[generate::whole(0, 5)];
    RC_PRE(other.type() != value.type());
    const bool with_null = value.is_null() || other.is_null();
    value = other;
    return with_null;
}

}  // namespace attest::ci::records_test
