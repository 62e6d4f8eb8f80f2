#pragma once
// A Case is a Problem and how its values are made: a named distribution and a seed, or explicit
// tensors. A case is canonical JSON (sorted keys, reals as hex strings). Its line form is the
// problem's line followed by what differs from `values normal seed 0`.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/problem.hpp"

namespace attest {

/// Joint distributions of Q, K, V (README.md, "Kinds of inputs"); each exists because it makes
/// some real bug visible.
enum class ValueKind : std::uint8_t {
    normal,
    logit50,
    logit1e3,
    logit1e4,
    negative_logits,
    cancel_v,
    ties,
    one_hot,
    tiny,
    wide,
    const_v,
    ascending,
    descending,
    small_int,
    qk_cancel,
    flat,
    uniform
};
inline constexpr int value_kind_count = 17;
std::string_view name(ValueKind kind) noexcept;

/// What overrides the joint distribution for one tensor: the shrinker's simple data, or numbers
/// written out.
enum class Fill : std::uint8_t {
    drawn,
    zeros,
    ones,
    index,
    alternating,
    steep,
    one_hot,
    sparse,
    explicit_values
};
inline constexpr int fill_count = 9;
std::string_view name(Fill fill) noexcept;

struct TensorValues {
    Fill fill = Fill::drawn;
    /// For explicit_values: row-major [batch, heads, length, dim], also where the cache is paged;
    /// every one a member of the tensor's format.
    std::vector<double> values = {};
    bool operator==(const TensorValues&) const = default;
};

/// The tensors whose values a case may say.
inline constexpr Role written_roles[] = {Role::q, Role::k, Role::v, Role::d_o, Role::d_lse};

struct Values {
    ValueKind kind = ValueKind::normal;
    std::uint64_t seed = 0;
    std::map<Role, TensorValues> tensors = {};  ///< only written_roles; absent: drawn
    bool operator==(const Values&) const = default;
};

struct Case {
    Problem problem = {};
    Values values = {};
    bool operator==(const Case&) const = default;
};

std::string print(const Case& c);
Case parse_case(std::string_view line);

std::string to_json(const Case& c);  ///< canonical text, one line
Case case_from_json(std::string_view text,
                    std::string_view source_name);  ///< strict; BadInput with line:column

}  // namespace attest
