#include "ci/record.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "reference/problem/errors.hpp"

namespace attest {

std::string record_line(const Record& record) {
    return record.dump(-1, ' ', false, Record::error_handler_t::replace);
}

Record parse_record(std::string_view line, const std::string& source_name, std::size_t number) {
    Record record = Record::parse(line, nullptr, false);
    if (record.is_discarded() || !record.is_object() || !record.contains("record") ||
        !record["record"].is_string() || record.value("v", 0) != 1)
        throw BadInput(source_name + ": line " + std::to_string(number) +
                           " is no record of version 1",
                       {"fixtures/schema/result.schema.json says what a record is"});
    return record;
}

Record real(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

double real_of(const Record& value) {
    if (value.is_number()) return value.get<double>();
    if (value == "inf") return std::numeric_limits<double>::infinity();
    if (value == "-inf") return -std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
}

void Records::add(Record record) {
    const std::string kind = record.at("record");
    if (kind == "run") run = std::move(record);
    else if (kind == "end") end = std::move(record);
    else if (kind == "law") laws.push_back(std::move(record));
    else if (kind == "case") cases.push_back(std::move(record));
    else if (kind == "counterexample") counterexamples.push_back(std::move(record));
    else if (kind == "cause") causes.push_back(std::move(record));
    else if (kind == "coverage") coverage.push_back(std::move(record));
}

const Record* Records::law(std::string_view id) const {
    for (const Record& one : laws)
        if (one.at("law") == id) return &one;
    return nullptr;
}

const Record* Records::counterexample(std::string_view id) const {
    for (const Record& one : counterexamples)
        if (one.at("id") == id) return &one;
    return nullptr;
}

Records read_records(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw BadInput(path + ": cannot be read");
    Records records;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        const bool cut = file.eof();  // no newline at its end
        try {
            records.add(parse_record(line, path, number));
        } catch (const BadInput&) {
            if (!cut) throw;
        }
    }
    if (records.run.is_null()) throw BadInput(path + ": has no run record");
    return records;
}

}  // namespace attest
