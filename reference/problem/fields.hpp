#pragma once
// The fields of a Problem, one row each: what a field is called in the line, in JSON and in
// attest_problem, where it lies, which feature it makes a problem use, and what it means. The line
// and the JSON are read and printed from these rows, the ABI's struct is filled from them, the
// worker is told of them, and the tables of the documentation are compared with them.
//
// To add a field: a member of Problem, a member at the end of attest_problem where a kernel has to
// know of it, a row. Rows stand in the order of the line; rows of one object stand together.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/interface/attest_kernel.h"
#include "reference/problem/feature.hpp"

namespace attest {

/// One word of an enumeration, by its place in the field's names.
struct Enumerator {
    std::uint8_t index = 0;
    bool operator==(const Enumerator&) const = default;
};

using FieldValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::optional<double>,
                                std::vector<std::int64_t>, Enumerator>;
using FieldNames = std::span<const std::string_view>;

/// Where a field lies in a Problem.
struct FieldPlace {
    FieldValue (*get)(const Problem&);
    void (*set)(Problem&, const FieldValue&);
    FieldNames (*names)() noexcept;  ///< of an enumeration, as JSON says them
    FieldNames (*words)() noexcept;  ///< and as the line does
};

/// How a field is written in the line.
enum class LineForm : std::uint8_t {
    axis,    ///< the word and at once the number, which is always there: hq8
    extent,  ///< the same where it is not the default: dv16
    name,    ///< the value's name alone, which is always there: f16
    like_q,  ///< the word, then the value, where it is not the format of q: kv bf16
    value,   ///< the word, then the value: softcap 30; of a flag the word alone
    next,    ///< the value alone, behind the row before it: window 3 *-1*, cache *5*
    option,  ///< as `value`, behind its object's words: rope half *base 5e+05*
    listed   ///< one of the words of a list: mask bool shared *batch*,queries
};

/// Where a field lies in attest_problem.
struct AbiPlace {
    using Flag = std::uint32_t;  ///< a bit of attest_problem::flags
    std::string_view name = {};  ///< empty: kernels see it in the tensors alone
    std::variant<std::monostate, Flag, std::int64_t attest_problem::*,
                 std::int32_t attest_problem::*, std::uint64_t attest_problem::*,
                 double attest_problem::*>
        member = {};
};

/// A feature that a problem uses where `when` says so; without it, where the field differs from its
/// default.
struct FeatureUse {
    std::optional<Feature> feature = {};
    bool (*when)(const Problem&) = nullptr;
};

struct Field {
    std::string_view key;   ///< in JSON; "rope.base" is base of the object rope
    std::string_view word;  ///< in the line
    LineForm form;
    FieldPlace place;
    std::string_view means;
    AbiPlace abi = {};
    FeatureUse use = {}, other_use = {};
    /// What a search draws where the feature is to be used and nothing else bears on the value; the
    /// plainest first.
    std::span<const double> drawn = {};

    bool is_default(const Problem& problem) const;
    /// The key's first part, by which errors name the field, and what is behind the point.
    std::string_view head() const noexcept { return key.substr(0, key.find('.')); }
    std::string_view tail() const noexcept {
        return key.substr(std::min(key.size(), head().size() + 1));
    }
};

std::span<const Field> fields() noexcept;

/// Rows with one head, in the order of the table: a field by itself, the two limits of a window, an
/// object and its members.
std::span<const std::span<const Field>> field_groups();

/// The value in the words of the line: "30", "3,5", "f16"; nothing for a flag.
std::string line_text(const Field& field, const FieldValue& value);

}  // namespace attest
