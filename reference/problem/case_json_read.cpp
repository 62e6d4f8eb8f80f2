// Reads the JSON of a case, strictly: keys are known and come once, reals are hex strings, 64-bit
// numbers decimal strings, and the problem is one that can be.

#include <algorithm>

#include "reference/problem/case_json.hpp"
#include "reference/problem/fields.hpp"
#include "reference/problem/names.hpp"
#include "reference/problem/text.hpp"
#include "reference/problem/validity.hpp"

namespace attest {
namespace {

std::uint8_t one_of(const JsonSource& source, const Json& value, FieldNames names) {
    const std::string& text = json_string(source, value);
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end())
        source.fail(value, printable(text) + " is not known" + suggestion(text, names),
                    "one of " + joined(names, ", "));
    return static_cast<std::uint8_t>(found - names.begin());
}

/// Reads a value of the kind that the field's default is of.
struct ValueReader {
    const JsonSource& source;
    const Json& value;
    FieldNames names;
    FieldValue operator()(bool) const { return json_boolean(source, value); }
    FieldValue operator()(std::int64_t) const { return json_integer(source, value); }
    FieldValue operator()(std::uint64_t) const { return json_u64(source, value); }
    FieldValue operator()(double) const { return json_real(source, value); }
    FieldValue operator()(const std::optional<double>&) const {
        return std::optional<double>(json_real(source, value));
    }
    FieldValue operator()(const std::vector<std::int64_t>&) const {
        std::vector<std::int64_t> lens;
        for (const Json& item : json_array(source, value))
            lens.push_back(json_integer(source, item));
        return lens;
    }
    FieldValue operator()(Enumerator) const { return Enumerator{one_of(source, value, names)}; }
};

class ProblemReader {
public:
    explicit ProblemReader(const JsonSource& source) : source_(source) {}

    Problem read(const Json& object) {
        std::vector<std::string_view> keys;
        for (const auto group : field_groups()) keys.push_back(group.front().head());
        json_keys(source_, object, keys);
        for (const auto group : field_groups())
            if (const Json* value = object.find(group.front().head())) read_group(group, *value);
        return problem_;
    }

private:
    void set(const Field& field, const Json& value) {
        const ValueReader reader{source_, value, field.place.names()};
        field.place.set(problem_, std::visit(reader, field.place.get(problem_)));
    }

    void read_group(std::span<const Field> group, const Json& value) {
        if (group.size() == 1)
            set(group.front(), value);
        else if (group.back().tail().empty())
            read_list(group, value);
        else
            read_object(group, value);
    }

    void read_list(std::span<const Field> group, const Json& value) {
        const std::vector<Json>& items = json_array(source_, value);
        const std::string count = std::to_string(group.size());
        if (items.size() != group.size())
            source_.fail(value, std::string(group.front().key) + " has " + count + " numbers",
                         std::string(group.front().means));
        for (std::size_t i = 0; i < items.size(); ++i) set(group[i], items[i]);
    }

    void read_object(std::span<const Field> group, const Json& object) {
        std::vector<std::string_view> keys, words;
        std::vector<const Field*> flags;
        for (const Field& field : group) {
            if (field.form == LineForm::listed)
                words.push_back(field.word), flags.push_back(&field);
            if (!field.tail().empty() && flags.size() < 2) keys.push_back(field.tail());
        }
        json_keys(source_, object, keys);
        for (const Field& field : group) {
            const Json* value = object.find(field.tail());
            if (field.tail().empty())
                field.place.set(problem_, true);
            else if (value != nullptr && field.form != LineForm::listed)
                set(field, *value);
        }
        const Json* list = flags.empty() ? nullptr : object.find(flags.front()->tail());
        if (list == nullptr) return;
        for (const Json& item : json_array(source_, *list))
            flags[one_of(source_, item, words)]->place.set(problem_, true);
    }

    const JsonSource& source_;
    Problem problem_;
};

Values read_values(const JsonSource& source, const Json& object) {
    json_keys(source, object, {"kind", "seed", "q", "k", "v", "d_o", "d_lse"});
    Values v;
    if (const Json* kind = object.find("kind"))
        v.kind = static_cast<ValueKind>(one_of(source, *kind, value_kind_names()));
    if (const Json* seed = object.find("seed")) v.seed = json_u64(source, *seed);
    for (const Role role : written_roles) {
        const Json* json = object.find(name(role));
        if (json == nullptr) continue;
        TensorValues tensor;
        if (json->kind == Json::Kind::array) {
            tensor.fill = Fill::explicit_values;
            for (const Json& item : json->items) tensor.values.push_back(json_real(source, item));
        } else {
            tensor.fill = static_cast<Fill>(one_of(source, *json, named_fills()));
        }
        if (tensor.fill != Fill::drawn) v.tensors[role] = std::move(tensor);
    }
    return v;
}

/// At the field to blame where the text has it, else at the whole object.
void check(const JsonSource& source, const Json& object,
           const std::optional<Contradiction>& found) {
    if (!found) return;
    const Json* field = object.find(found->field);
    const Json& at = field != nullptr ? *field : object;
    source.fail(at, found->what, found->remedy);
}

}  // namespace

Case case_from_json(std::string_view text, std::string_view source_name) {
    const JsonSource source{text, source_name};
    return case_from_json(source, parse_json(source));
}

Case case_from_json(const JsonSource& source, const Json& root) {
    json_keys(source, root, {"problem", "values"});
    const Json *problem = root.find("problem"), *values = root.find("values");
    Case c;
    if (problem != nullptr) c.problem = ProblemReader(source).read(*problem);
    check(source, problem != nullptr ? *problem : root, find_contradiction(c.problem));
    if (values != nullptr) c.values = read_values(source, *values);
    check(source, values != nullptr ? *values : root, find_contradiction(c.problem, c.values));
    c.problem = canonical(std::move(c.problem));
    return c;
}

}  // namespace attest
