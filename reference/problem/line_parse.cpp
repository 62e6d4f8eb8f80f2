// The grammar of the one-line form. Fields may come in any order, each once; an option's own words
// follow it.

#include <functional>
#include <map>

#include "reference/problem/errors.hpp"
#include "reference/problem/fields.hpp"
#include "reference/problem/line.hpp"
#include "reference/problem/line_reader.hpp"
#include "reference/problem/names.hpp"

namespace attest {
namespace {

const char* const example = "such as: b2 hq8 hkv2 tq128 tk160 d64 causal f16";

/// Where "none" is a word, it is said by saying nothing.
FieldNames sayable(const Field& field) {
    const FieldNames words = field.place.words();
    return !words.empty() && words.front() == "none" ? words.subspan(1) : words;
}

class Grammar {
public:
    using Token = LineReader::Token;

    Grammar(std::string_view line, bool with_values)
        : reader_(line, with_values ? "case" : "problem") {
        for (const auto group : field_groups()) add(group);
        if (with_values) add_values();
    }

    Case read() {
        do read_field(reader_.take(example));
        while (!reader_.done());
        Problem& p = case_.problem;
        for (const Field& field : fields())
            if (field.form == LineForm::like_q && !seen(field.head()))
                field.place.set(p, Enumerator{static_cast<std::uint8_t>(p.format_q)});
        auto found = find_contradiction(p);
        if (!found) found = find_contradiction(p, case_.values);
        if (found) {
            const auto place = places_.find(found->field);
            const Token at = place == places_.end() ? reader_.whole_line() : place->second;
            reader_.fail(at, found->what, found->remedy);
        }
        p = canonical(p);
        return std::move(case_);
    }

private:
    struct Entry {
        std::string_view key;
        std::function<void(const Token&)> read;  ///< the token is the word itself
    };
    using Entries = std::map<std::string_view, Entry>;

    bool seen(std::string_view key) const { return places_.find(key) != places_.end(); }

    void read_field(const Token& token) {
        const std::string_view word = reader_.text(token);
        auto entry = keywords_.find(word);
        if (entry == keywords_.end()) {
            // An axis: its letters, then at once its number.
            const std::size_t letters = std::min(word.find_first_of("-0123456789"), word.size());
            entry = axes_.find(word.substr(0, letters));
            if (letters == word.size() || entry == axes_.end()) fail_unknown(token);
        }
        const std::string key(entry->second.key);
        if (seen(key))
            reader_.fail(token, std::string(word) + " comes after another " + key, "say it once");
        places_[key] = token;
        entry->second.read(token);
        places_[key].end = reader_.consumed_end();
    }

    [[noreturn]] void fail_unknown(const Token& token) const {
        std::vector<std::string_view> known;
        for (const auto& [word, unused] : keywords_) known.push_back(word);
        const std::string_view word = reader_.text(token);
        reader_.fail(token, "unknown word " + printable(word) + suggestion(word, known), example);
    }

    void keyword(std::string_view word, std::string_view key,
                 std::function<void(const Token&)> read) {
        keywords_[word] = {key, std::move(read)};
    }

    void add(std::span<const Field> group) {
        const Field& first = group.front();
        const std::string_view key = first.head();
        if (first.form == LineForm::axis || first.form == LineForm::extent) {
            axes_[first.word] = {
                key, [this, &first](const Token& token) {
                    const Token number{token.begin + first.word.size(), token.end};
                    const std::string remedy = "a whole number follows ";
                    set(first, reader_.whole_in(number, remedy + std::string(first.word)));
                }};
        } else if (first.form == LineForm::name) {
            for (const std::string_view word : first.place.words())
                keyword(word, key,
                        [this, &first](const Token& token) { set(first, one_of(token, first)); });
        } else {
            keyword(first.word, key, [this, group](const Token&) { read_group(group); });
        }
    }

    void read_group(std::span<const Field> group) {
        std::vector<const Field*> flags;
        for (const Field& field : group) {
            if (field.form == LineForm::listed)
                flags.push_back(&field);
            else if (field.form != LineForm::option || reader_.take_if(field.word))
                set(field, read_value(field));
        }
        if (!flags.empty() && reader_.take_if(flags.front()->tail())) read_list(flags);
    }

    void read_list(const std::vector<const Field*>& flags) {
        std::vector<std::string_view> words;
        for (const Field* flag : flags) words.push_back(flag->word);
        const Token list = reader_.take(joined(words, ", ") + " follow, separated by commas");
        reader_.parts(list, [&](const Token& part) {
            set(*flags[reader_.one_of<std::size_t>(part, words)], true);
        });
    }

    FieldValue read_value(const Field& field) {
        struct Reader {
            Grammar& grammar;
            const Field& field;
            FieldValue operator()(bool plain) const { return !plain; }
            FieldValue operator()(std::int64_t) const { return grammar.reader_.whole(); }
            FieldValue operator()(std::uint64_t) const { return grammar.reader_.seed(); }
            FieldValue operator()(double) const { return grammar.reader_.real(); }
            FieldValue operator()(const std::optional<double>&) const {
                return std::optional<double>(grammar.reader_.real());
            }
            FieldValue operator()(const std::vector<std::int64_t>&) const {
                return grammar.reader_.wholes();
            }
            FieldValue operator()(Enumerator) const {
                const std::string remedy = joined(sayable(field), ", ") + ": one of them follows";
                return grammar.one_of(grammar.reader_.take(remedy), field);
            }
        };
        return std::visit(Reader{*this, field}, field.place.get(Problem{}));
    }

    Enumerator one_of(const Token& token, const Field& field) const {
        const FieldNames words = sayable(field);
        const std::size_t unsaid = field.place.words().size() - words.size();
        return {static_cast<std::uint8_t>(unsaid + reader_.one_of<std::size_t>(token, words))};
    }

    void set(const Field& field, const FieldValue& value) { field.place.set(case_.problem, value); }

    void add_values() {
        Values& v = case_.values;
        keyword("values", "kind", [this, &v](const Token&) {
            const Token kind = reader_.take("a distribution follows, such as ties");
            v.kind = reader_.one_of<ValueKind>(kind, value_kind_names());
        });
        keyword("seed", "seed", [this, &v](const Token&) { v.seed = reader_.seed(); });
        for (const Role role : written_roles)
            keyword(name(role), name(role),
                    [this, &v, role](const Token&) { read_tensor(v, role); });
    }
    void read_tensor(Values& v, Role role) {
        const Token token = reader_.take(
            "zeros, ones, index, alternating, steep, one_hot, sparse or [numbers] follow");
        TensorValues tensor;
        if (reader_.text(token).front() == '[') {
            if (reader_.text(token).back() != ']')
                reader_.fail(token, "the list does not end", "close it with ]");
            tensor.fill = Fill::explicit_values;
            if (token.end - token.begin > 2)
                reader_.parts({token.begin + 1, token.end - 1}, [&](const Token& part) {
                    tensor.values.push_back(reader_.real_in(part));
                });
        } else {
            tensor.fill = reader_.one_of<Fill>(token, named_fills());
        }
        if (tensor.fill != Fill::drawn) v.tensors[role] = std::move(tensor);
    }

    LineReader reader_;
    Entries keywords_, axes_;
    std::map<std::string, Token, std::less<>> places_;
    Case case_;
};

}  // namespace

Problem parse_problem(std::string_view line) {
    return Grammar(line, false).read().problem;
}

Case parse_case(std::string_view line) {
    return Grammar(line, true).read();
}

}  // namespace attest
