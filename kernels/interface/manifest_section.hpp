#pragma once
// One JSON object of a manifest, read strictly: every key that is not asked for is an error, and so
// is every word that is not listed, with the nearest that is.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/interface/manifest_words.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/text.hpp"

namespace attest::kernel {

/// Its author's own, and nothing to attest.
inline bool foreign(std::string_view word) {
    return word.starts_with("x_");
}

class Section {
public:
    Section(const JsonSource& source, const Json& object, std::string name)
        : source_(source), object_(object), name_(std::move(name)) {
        if (object.kind != Json::Kind::object) {
            fail(object, name_.empty() ? "a manifest is an object" : name_ + " is not an object",
                 "an object {...}");
        }
    }

    const Json* find(std::string_view key) {
        known_.push_back(key);
        return object_.find(key);
    }

    template <typename Value, std::size_t n>
    void choose(std::string_view key, const manifest_words::Choice<Value> (&choices)[n],
                Value& out) {
        if (const Json* v = find(key)) out = chosen(*v, key, choices);
    }

    template <typename Value, std::size_t n>
    Value chosen(const Json& v, std::string_view key,
                 const manifest_words::Choice<Value> (&choices)[n]) {
        std::vector<std::string_view> allowed;
        for (const auto& choice : choices) {
            // A word may be written as a number where it is one: "lse_base": 2.
            const bool word = v.kind == Json::Kind::string || v.kind == Json::Kind::number;
            if (word && v.text == choice.word) return choice.value;
            allowed.push_back(choice.word);
        }
        fail_word(v, key, allowed);
    }

    [[noreturn]] void fail_word(const Json& v, std::string_view key,
                                std::span<const std::string_view> allowed) const {
        fail_value(v, key, "one of " + joined(allowed, ", "), attest::suggestion(v.text, allowed));
    }

    void count(std::string_view key, std::int64_t& out) {
        const Json* v = find(key);
        if (v == nullptr) return;
        const auto number = parse_integer<std::int64_t>(v->text);
        if (v->kind != Json::Kind::number || !number || *number < 0) {
            fail_value(*v, key, "a whole number, 0 where nothing is declared");
        }
        out = *number;
    }

    void flag(std::string_view key, bool& out) {
        const Json* v = find(key);
        if (v == nullptr) return;
        if (v->kind != Json::Kind::boolean) fail_value(*v, key, "true or false");
        out = v->boolean;
    }

    void positive_real(std::string_view key, double& out, double most) {
        const Json* v = find(key);
        if (v == nullptr) return;
        const std::optional<double> number = parse_decimal(v->text);
        if (v->kind != Json::Kind::number || !number || !(*number > 0))
            fail_value(*v, key, "a number above 0, such as 2 or 0.98");
        if (*number > most) fail_value(*v, key, fmt::format("at most {}", most));
        out = *number;
    }

    std::string required_text(std::string_view key) {
        const Json* v = find(key);
        if (v == nullptr) {
            source_.fail(object_.begin, object_.begin + 1, fmt::format("{} is missing", path(key)),
                         "name, version and formats are required");
        }
        if (v->kind != Json::Kind::string || v->text.empty())
            fail_value(*v, key, "a text, not empty");
        return v->text;
    }

    /// A list of texts; null where the key is absent.
    const Json* list(std::string_view key) {
        const Json* v = find(key);
        if (v == nullptr) return nullptr;
        if (v->kind != Json::Kind::array) fail_value(*v, key, "a list of texts");
        for (const Json& item : v->items)
            if (item.kind != Json::Kind::string) fail_value(item, key, "a list of texts");
        return v;
    }

    /// After everything was asked for: what is left is a mistake.
    void finish() const {
        for (const JsonMember& m : object_.members) {
            if (std::find(known_.begin(), known_.end(), m.key) != known_.end() || foreign(m.key))
                continue;
            source_.fail(m.begin, m.end,
                         fmt::format("no key {} is known{}", path(printable(m.key)),
                                     attest::suggestion(m.key, known_)),
                         "one of " + joined(known_, ", "));
        }
    }

    [[noreturn]] void fail(const Json& at, const std::string& what,
                           const std::string& remedy) const {
        source_.fail(at, what, remedy);
    }

private:
    std::string path(std::string_view key) const {
        return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
    }
    [[noreturn]] void fail_value(const Json& v, std::string_view key, const std::string& remedy,
                                 const std::string& meant = {}) const {
        const std::string_view written = source_.text.substr(v.begin, v.end - v.begin);
        const std::string shown = v.kind == Json::Kind::object  ? "an object"
                                  : v.kind == Json::Kind::array ? "a list"
                                                                : printable(written);
        fail(v, fmt::format("{} is {}{}", path(key), shown, meant), remedy);
    }

    const JsonSource& source_;
    const Json& object_;
    std::string name_;
    std::vector<std::string_view> known_;
};

}  // namespace attest::kernel
