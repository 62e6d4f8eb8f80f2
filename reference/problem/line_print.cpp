#include "reference/problem/errors.hpp"
#include "reference/problem/fields.hpp"
#include "reference/problem/line.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

template <typename Numbers, typename Print>
std::string list(const Numbers& numbers, Print print_one) {
    std::string text;
    for (const auto number : numbers) {
        if (!text.empty()) text += ',';
        text += print_one(number);
    }
    return text;
}

struct ValueText {
    FieldNames words;
    std::string operator()(bool) const { return ""; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(std::uint64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return decimal(number); }
    std::string operator()(const std::optional<double>& number) const {
        return number ? decimal(*number) : "";
    }
    std::string operator()(const std::vector<std::int64_t>& lens) const {
        return list(lens, [](std::int64_t len) { return std::to_string(len); });
    }
    std::string operator()(Enumerator one) const { return std::string(words[one.index]); }
};

/// The word and its value; a flag is its word alone, and a row without a word its value alone.
std::string with_word(const Field& field, const Problem& p) {
    const std::string value = line_text(field, field.place.get(p));
    const bool at_once = field.form == LineForm::axis || field.form == LineForm::extent;
    std::string text(field.word);
    if (!at_once && !text.empty() && !value.empty()) text += ' ';
    return text += value;
}

bool is_shown(std::span<const Field> group, const Problem& p) {
    const Field& first = group.front();
    if (first.form == LineForm::axis || first.form == LineForm::name) return true;
    if (first.form == LineForm::like_q)
        return first.place.get(p) != FieldValue(Enumerator{static_cast<std::uint8_t>(p.format_q)});
    return std::any_of(group.begin(), group.end(),
                       [&](const Field& f) { return !f.is_default(p); });
}

std::string group_text(std::span<const Field> group, const Problem& p) {
    std::string text = with_word(group.front(), p), listed;
    for (const Field& field : group.subspan(1)) {
        if (field.form != LineForm::next && field.is_default(p)) continue;
        if (field.form != LineForm::listed)
            text.append(" ").append(with_word(field, p));
        else if (listed.empty())
            listed.append(" ").append(field.tail()).append(" ").append(field.word);
        else
            listed.append(",").append(field.word);
    }
    return text += listed;
}

}  // namespace

std::string line_text(const Field& field, const FieldValue& value) {
    return std::visit(ValueText{field.place.words()}, value);
}

std::vector<Word> words_of(const Problem& p) {
    std::vector<Word> words;
    for (const auto group : field_groups())
        if (is_shown(group, p))
            words.push_back({std::string(group.front().head()), group_text(group, p)});
    return words;
}

std::vector<Word> words_of(const Values& values) {
    std::vector<Word> words;
    if (values.kind != ValueKind::normal)
        words.push_back({"kind", "values " + std::string(name(values.kind))});
    if (values.seed != 0) words.push_back({"seed", "seed " + std::to_string(values.seed)});
    for (const auto& [role, tensor] : values.tensors) {
        const std::string field(name(role));
        if (tensor.fill == Fill::explicit_values)
            words.push_back({field, field + " [" + list(tensor.values, decimal) + "]"});
        else if (tensor.fill != Fill::drawn)
            words.push_back({field, field + " " + std::string(name(tensor.fill))});
    }
    return words;
}

std::string join(const std::vector<Word>& words) {
    std::string line;
    for (const Word& word : words) line += (line.empty() ? "" : " ") + word.text;
    return line;
}

void refuse(const std::string& wanted, const std::vector<Word>& words,
            const Contradiction& contradiction) {
    const std::string line = join(words);
    std::size_t begin = 0, length = line.size();
    for (std::size_t at = 0; const Word& word : words) {
        if (word.field == contradiction.field) begin = at, length = word.text.size();
        at += word.text.size() + 1;
    }
    std::vector<std::string> details = pointed(line, begin, begin + length);
    details.push_back(contradiction.remedy);
    throw BadInput("this is not a " + wanted + ": " + contradiction.what, std::move(details));
}

std::string print(const Problem& problem) {
    return join(words_of(canonical(problem)));
}

std::string print(const Case& c) {
    const std::string values = join(words_of(c.values));
    return print(c.problem) + (values.empty() ? "" : " " + values);
}

void require_valid(const Problem& problem) {
    if (auto found = find_contradiction(problem))
        refuse("problem", words_of(canonical(problem)), *found);
}

}  // namespace attest
