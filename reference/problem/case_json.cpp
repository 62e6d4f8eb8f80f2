// The canonical JSON of a case: one line, sorted keys, only what differs from the defaults. A text
// has one name because it is the only text of its case.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reference/problem/case.hpp"
#include "reference/problem/fields.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

using nlohmann::json;  // its objects keep their keys sorted

struct ValueJson {
    FieldNames names;
    json operator()(std::uint64_t number) const { return std::to_string(number); }
    json operator()(double number) const { return hex_real(number); }
    json operator()(const std::optional<double>& number) const {
        return number ? json(hex_real(*number)) : json();
    }
    json operator()(Enumerator one) const { return names[one.index]; }
    json operator()(const auto& plain) const { return plain; }
};

/// Of an object's members only those that differ; of a list all.
json group_json(std::span<const Field> group, const Problem& p) {
    json out;
    for (const Field& field : group) {
        const json value = std::visit(ValueJson{field.place.names()}, field.place.get(p));
        const bool differs = !field.is_default(p);
        if (group.size() == 1)
            out = value;
        else if (field.tail().empty() && value.is_boolean())
            out = json::object();  // its being there says it
        else if (field.tail().empty())
            out.push_back(value);
        else if (field.form == LineForm::listed && differs)
            out[std::string(field.tail())].push_back(field.word);
        else if (field.form == LineForm::next || differs)
            out[std::string(field.tail())] = value;
    }
    return out;
}

json problem_json(const Problem& p) {
    json out = json::object();
    for (const auto group : field_groups())
        if (std::any_of(group.begin(), group.end(),
                        [&](const Field& field) { return !field.is_default(p); }))
            out[std::string(group.front().head())] = group_json(group, p);
    return out;
}

json values_json(const Values& v) {
    json out = json::object();
    if (v.kind != ValueKind::normal) out["kind"] = name(v.kind);
    if (v.seed != 0) out["seed"] = std::to_string(v.seed);
    for (const auto& [role, tensor] : v.tensors) {
        if (tensor.fill == Fill::drawn) continue;
        json& one = out[std::string(name(role))];
        if (tensor.fill != Fill::explicit_values) {
            one = name(tensor.fill);
            continue;
        }
        one = json::array();
        for (const double x : tensor.values) one.push_back(hex_real(x));
    }
    return out;
}

}  // namespace

std::string to_json(const Case& c) {
    json out = json::object();
    const json problem = problem_json(canonical(c.problem)), values = values_json(c.values);
    if (!problem.empty()) out["problem"] = problem;
    if (!values.empty()) out["values"] = values;
    return out.dump();
}

}  // namespace attest
