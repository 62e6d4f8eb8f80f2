#include "ci/schema_check.hpp"

#include <algorithm>
#include <fstream>
#include <regex>

#include "ci/golden.hpp"

namespace attest::ci {

namespace {

bool is_type(const Record& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
}

std::string object_fault(const Record& value, const Record& schema, const Record& root,
                         const std::string& path) {
    for (const Record& key : schema.value("required", Record::array()))
        if (!value.contains(key.get<std::string>()))
            return path + ": lacks " + key.get<std::string>();
    const Record properties = schema.value("properties", Record::object());
    for (const auto& [key, member] : value.items()) {
        const Record* own = properties.contains(key) ? &properties[key]
                            : schema.contains("additionalProperties")
                                ? &schema["additionalProperties"]
                                : nullptr;
        if (own != nullptr && *own == false) return path + ": has " + key;
        if (own == nullptr || !own->is_object()) continue;
        if (std::string fault = schema_fault(member, *own, root, path + "/" + key); !fault.empty())
            return fault;
    }
    return "";
}

std::string array_fault(const Record& value, const Record& schema, const Record& root,
                        const std::string& path) {
    if (value.size() < schema.value("minItems", std::size_t{0})) return path + ": too few items";
    if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<std::size_t>())
        return path + ": too many items";
    if (!schema.contains("items")) return "";
    for (std::size_t n = 0; n < value.size(); ++n)
        if (std::string fault =
                schema_fault(value[n], schema["items"], root, path + "/" + std::to_string(n));
            !fault.empty())
            return fault;
    return "";
}

}  // namespace

Record schema_named(const std::string& name) {
    std::ifstream file(repository_directory() + "/fixtures/schema/" + name + ".schema.json");
    return Record::parse(file);
}

std::string schema_fault(const Record& value, const Record& schema, const Record& root,
                         const std::string& path) {
    if (schema.contains("$ref")) {
        const std::string name = schema["$ref"].get<std::string>().substr(8);  // "#/$defs/"
        return schema_fault(value, root.at("$defs").at(name), root, path);
    }
    if (schema.contains("type") && !is_type(value, schema["type"]))
        return path + ": is no " + schema["type"].get<std::string>() + ": " + value.dump();
    if (schema.contains("const") && value != schema["const"])
        return path + ": is not " + schema["const"].dump();
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
        return path + ": is none of " + schema["enum"].dump() + ": " + value.dump();
    if (schema.contains("pattern") && value.is_string() &&
        !std::regex_search(value.get<std::string>(),
                           std::regex(schema["pattern"].get<std::string>())))
        return path + ": does not match " + schema["pattern"].dump() + ": " + value.dump();
    if (schema.contains("minimum") && value.is_number() &&
        value.get<double>() < schema["minimum"].get<double>())
        return path + ": is too small: " + value.dump();
    if (schema.contains("anyOf") &&
        std::none_of(schema["anyOf"].begin(), schema["anyOf"].end(), [&](const Record& one) {
            return schema_fault(value, one, root, path).empty();
        }))
        return path + ": fits nothing it may be: " + value.dump();
    for (const Record& part : schema.value("allOf", Record::array())) {
        if (part.contains("if") && !schema_fault(value, part["if"], root, path).empty()) continue;
        const Record& then = part.contains("then") ? part["then"] : part;
        if (std::string fault = schema_fault(value, then, root, path); !fault.empty()) return fault;
    }
    if (value.is_object()) return object_fault(value, schema, root, path);
    if (value.is_array()) return array_fault(value, schema, root, path);
    return "";
}

}  // namespace attest::ci
