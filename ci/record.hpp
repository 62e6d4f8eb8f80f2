#pragma once
// One record of result.jsonl: a JSON object, as a value. Sorted keys in, one line out.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

using Record = nlohmann::json;  ///< objects keep their keys sorted

/// One line, sorted keys, no newline; invalid UTF-8 is replaced.
std::string record_line(const Record& record);

/// BadInput "SOURCE: line N: ..." where the line is no JSON object.
Record parse_record(std::string_view line, const std::string& source_name, std::size_t number);

/// A real as records carry it: a number, or "inf", "-inf", "nan".
Record real(double value);
double real_of(const Record& value);

/// Everything a run left behind, by kind: what every screen and page is drawn from, and nothing
/// else. Laws stand in catalogue order, cases in that of (law, number).
struct Records {
    Record run, end;  ///< null where the run has not begun, or was cut
    std::vector<Record> laws, cases, counterexamples, causes, coverage;

    void add(Record record);
    const Record* law(std::string_view id) const;
    const Record* counterexample(std::string_view id) const;
};

/// Reads a result.jsonl. The last line may be half of one, where the run was cut; any other mistake
/// is BadInput with the line's number.
Records read_records(const std::string& path);

}  // namespace attest
