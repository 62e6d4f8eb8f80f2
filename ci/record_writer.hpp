#pragma once
// Puts the fields of a report into a JSON object: see record_form.hpp.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ci/record_form.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

using Record = nlohmann::json;  ///< its objects keep their keys sorted

/// Invalid UTF-8 is replaced.
inline std::string record_text(const Record& record, int indent = -1) {
    return record.dump(indent, ' ', false, Record::error_handler_t::replace);
}

class RecordWriter {
public:
    static constexpr bool reading = false;
    explicit RecordWriter(Record& into) : into_(into) {}

    template <typename Field>
    void operator()(std::string_view key, Field&& field) {
        into_[std::string(key)] = written(field);
    }
    template <typename Field>
    void added(std::string_view key, Field&& field) {
        into_[std::string(key)] = written(field);
    }
    template <typename Field>
    void unless_empty(std::string_view key, Field&& field) {
        if (!empty(field)) into_[std::string(key)] = written(field);
    }
    template <typename Value>
    void told(std::string_view key, const Value& value) {
        into_[std::string(key)] = value;
    }
    template <typename List>
    void group(std::string_view key, List list) {
        Record object = Record::object();
        RecordWriter v(object);
        list(v);
        into_[std::string(key)] = std::move(object);
    }
    void require(std::string_view, bool, const std::string&) {}
    /// The whole case again, for readers other than attest.
    void same_case(std::string_view key, const Case& tried) {
        into_[std::string(key)] = Record::parse(to_json(tried));
    }
    /// What stands beside the fields is the manifest's own text.
    void rest(const kernel::Manifest& manifest) { into_.update(Record::parse(to_json(manifest))); }

    template <typename Report>
    static std::string line_of(const char* kind, Report& report) {
        Record record = object_of(report);
        record["record"] = kind;
        record["v"] = 1;
        return record_text(record);
    }

private:
    template <typename Report>
    static Record object_of(Report& report) {
        Record object = Record::object();
        RecordWriter v(object);
        fields(v, report);
        return object;
    }

    template <typename Field>
    static bool empty(const Field& field) {
        if constexpr (requires { field.empty(); })
            return field.empty();
        else
            return !field;
    }

    template <typename Field>
    static Record written(Field& field) {
        if constexpr (std::is_same_v<Field, double>)
            return std::isfinite(field) ? Record(field) : Record(decimal(field));
        else if constexpr (std::is_arithmetic_v<Field> || std::is_same_v<Field, std::string>)
            return field;
        else if constexpr (std::is_enum_v<Field>)
            return name(field);
        else if constexpr (std::is_same_v<Field, Case>)
            return print(field);
        else if constexpr (std::is_same_v<Field, AsNumber>)
            return std::isnan(field.value)
                       ? std::numeric_limits<double>::max()
                       : std::min(field.value, std::numeric_limits<double>::max());
        else if constexpr (std::is_same_v<Field, AsHex>)
            return hex_real(field.value);
        else if constexpr (std::is_same_v<Field, AsHexRows>)
            return hex_rows(field.value);
        else if constexpr (std::is_same_v<Field, AsDigits>)
            return std::to_string(field.value);
        else if constexpr (std::is_same_v<Field, AsHash>)
            return hash_text(field.value);
        else if constexpr (std::is_same_v<Field, AsSigned> || std::is_same_v<Field, AsId>)
            return field.value;
        else if constexpr (std::is_same_v<Field, OrNull>)
            return field.value.empty() ? Record() : Record(field.value);
        else if constexpr (requires { field.has_value(); })
            return field ? written(*field) : Record();
        else if constexpr (requires { field.begin(); })
            return all_written(field);
        else
            return object_of(field);
    }

    static Record hex_rows(const std::vector<std::vector<double>>& rows) {
        Record out = Record::array();
        for (const std::vector<double>& row : rows) {
            out.push_back(Record::array());
            for (const double real : row) out.back().push_back(hex_real(real));
        }
        return out;
    }

    template <typename List>
    static Record all_written(List& list) {
        constexpr bool keyed = requires {
            typename List::mapped_type;
        };
        Record out = keyed ? Record::object() : Record::array();
        for (auto& item : list)
            if constexpr (keyed)
                out[item.first] = written(item.second);
            else
                out.push_back(written(item));
        return out;
    }

    Record& into_;
};

}  // namespace attest::ci
