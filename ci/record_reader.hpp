#pragma once
// Takes the fields of a report from a JSON object, strictly: see record_form.hpp. What is missing,
// of another type, unknown or there although nobody asks for it is BadInput at its place.

#include <algorithm>
#include <vector>

#include "ci/record_form.hpp"
#include "reference/problem/json.hpp"

namespace attest::ci {

/// The last word of an enumeration, as far as records know it.
template <typename Enum>
constexpr Enum last_word{};
template <>
inline constexpr auto last_word<law::Decision> = law::Decision::violated;
template <>
inline constexpr auto last_word<RunDecision> = RunDecision::not_complete;
template <>
inline constexpr auto last_word<law::Compares> = law::Compares::property;
template <>
inline constexpr auto last_word<law::Reason::Kind> = law::Reason::Kind::flaky;
template <>
inline constexpr auto last_word<law::BoundKind> = law::BoundKind::declared;
template <>
inline constexpr auto last_word<law::ViolationClass> = law::ViolationClass::suspect;
template <>
inline constexpr auto last_word<worker::Outcome> = worker::Outcome::no_memory;
template <>
inline constexpr auto last_word<worker::Fault::Kind> = worker::Fault::Kind::outside_all;
template <>
inline constexpr auto last_word<worker::Fault::Access> = worker::Fault::Access::write;
template <>
inline constexpr auto last_word<search::Confirmation> = search::Confirmation::flaky;
template <>
inline constexpr auto last_word<Role> = static_cast<Role>(role_count - 1);
template <>
inline constexpr auto last_word<Precision> = Precision::bf16;
template <>
inline constexpr auto last_word<law::Tells> = law::Tells::death;
template <>
inline constexpr auto last_word<kernel::KernelInterface> = kernel::KernelInterface::executable;
template <>
inline constexpr auto last_word<diagnosis::SanitizerEntry::Verdict> =
    diagnosis::SanitizerEntry::Verdict::not_run;

class RecordReader {
public:
    static constexpr bool reading = true;
    RecordReader(const JsonSource& source, const Json& object);

    template <typename Field>
    void operator()(std::string_view key, Field&& field) {
        read(at(key), field);
    }
    template <typename Field>
    void added(std::string_view key, Field&& field) {
        if (const Json* value = find(key)) read(*value, field);
    }
    template <typename Field>
    void unless_empty(std::string_view key, Field&& field) {
        const Json* value = find(key);
        if (value != nullptr && value->kind != Json::Kind::null) read(*value, field);
    }
    void told(std::string_view key, std::string_view text);
    void told(std::string_view key, std::int64_t number);
    template <typename List>
    void group(std::string_view key, List list) {
        RecordReader v(source_, at(key));
        list(v);
        v.finish();
    }
    void require(std::string_view key, bool holds, const std::string& expected) {
        if (!holds) fail(at(key), "expected " + expected);
    }
    std::string kind();  ///< of a record that is a whole line, in a version that is read
    /// It is one; the line, which is read, says the same.
    void same_case(std::string_view key, const Case& tried);
    /// What was not asked for is the manifest's own text.
    void rest(kernel::Manifest& manifest);
    /// Everything was asked for.
    void finish() const;

private:
    const Json* find(std::string_view key);
    const Json& at(std::string_view key);
    bool asked(std::string_view key) const;
    [[noreturn]] void fail(const Json& at, const std::string& what) const;

    void read(const Json& value, bool& field) const;
    void read(const Json& value, int& field) const;
    void read(const Json& value, std::int64_t& field) const;
    void read(const Json& value, double& field) const;
    void read(const Json& value, std::string& field) const;
    void read(const Json& value, Case& field) const;
    void read(const Json& value, AsNumber field) const;
    void read(const Json& value, AsHex field) const;
    void read(const Json& value, AsHexRows field) const;
    void read(const Json& value, AsDigits field) const;
    void read(const Json& value, AsHash field) const;
    void read(const Json& value, AsSigned field) const;
    void read(const Json& value, AsId field) const;
    void read(const Json& value, OrNull field) const;

    template <typename Field>
    void read(const Json& value, Field& field) const {
        if constexpr (std::is_enum_v<Field>) {
            field = word_of<Field>(value);
        } else if constexpr (requires { field.has_value(); }) {
            field.reset();
            if (value.kind != Json::Kind::null) read(value, field.emplace());
        } else if constexpr (requires { field.begin(); }) {
            read_all(value, field);
        } else {
            RecordReader v(source_, value);
            fields(v, field);
            v.finish();
        }
    }

    template <typename List>
    void read_all(const Json& value, List& list) const {
        if constexpr (requires { typename List::mapped_type; }) {
            if (value.kind != Json::Kind::object) fail(value, "expected an object {...}");
            for (const JsonMember& m : value.members) read(m.value, list[m.key]);
        } else {
            const std::vector<Json>& items = json_array(source_, value);
            if constexpr (requires { list.resize(items.size()); })
                list.resize(items.size());
            else if (items.size() != list.size())
                fail(value, "expected " + std::to_string(list.size()) + " numbers");
            for (std::size_t n = 0; n < items.size(); ++n) read(items[n], list[n]);
        }
    }

    template <typename Enum>
    Enum word_of(const Json& value) const {
        std::vector<std::string_view> words;
        for (int n = 0; n <= static_cast<int>(last_word<Enum>); ++n)
            words.push_back(name(static_cast<Enum>(n)));
        return static_cast<Enum>(place_of(value, words));
    }
    std::size_t place_of(const Json& value, const std::vector<std::string_view>& words) const;
    const JsonSource& source_;
    const Json& object_;
    std::vector<std::string_view> asked_;
};

}  // namespace attest::ci
