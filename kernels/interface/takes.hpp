#pragma once
// Which problems a kernel takes, as far as numbers and their relations tell: "takes" of its
// manifest (README.md). A kernel is asked for nothing else; what the manifest leaves open, the
// search asks supports() about before the first case, and fills in here.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/feature.hpp"
#include "reference/problem/problem.hpp"

namespace attest::kernel {

/// Whole numbers: those of a list, or the multiples of one number between two limits.
struct NumberSet {
    std::vector<std::int64_t> only = {};
    std::optional<std::int64_t> least = {}, most = {};
    std::int64_t multiple = 1;
    bool any() const noexcept { return *this == NumberSet{}; }
    bool has(std::int64_t n) const noexcept;
    /// The largest that is not above n; where there is none, the smallest there is.
    std::int64_t nearest(std::int64_t n) const noexcept;
    bool operator==(const NumberSet&) const = default;
};

/// What the numbers are of.
enum class Quantity : std::uint8_t {
    batch,
    heads_kv,
    group,
    len_q,
    len_kv,
    dim_qk,
    dim_v,
    lens_q,
    lens_kv,
    page_size,
    window_left,
    window_right,
    rope_dims,
    rope_base,
    rope_offset,
    splits
};
inline constexpr std::size_t quantity_count = 16;

/// How many queries beside so many keys.
enum class Queries : std::uint8_t { any, at_most_keys, as_keys };
/// right: without a cache, each sequence has as many queries as keys; rows past them are padding.
enum class Padding : std::uint8_t { any, right };
/// When the log-sum-exp is asked for: as a law wants it, always, always beside a cache, only beside
/// one, only without one.
enum class LseAsked : std::uint8_t { any, always, always_with_cache, with_cache, without_cache };
/// Where the log-sum-exp and its gradient lie: as the output does, or without gaps as [B, H, T].
enum class LseOrder : std::uint8_t { output, bht };
/// Along which axis of a mask tensor it has extent 1.
using MaskShared = bool MaskTensor::*;

struct DimPair {
    std::int64_t qk = 0, v = 0;
    bool operator==(const DimPair&) const = default;
};

struct NumberLimits {
    std::array<NumberSet, quantity_count> numbers{};
    Queries queries = Queries::any;
    const NumberSet& operator[](Quantity q) const noexcept {
        return numbers[static_cast<std::size_t>(q)];
    }
    NumberSet& operator[](Quantity q) noexcept { return numbers[static_cast<std::size_t>(q)]; }
    bool operator==(const NumberLimits&) const = default;
};

/// Empty lists: any, or what the features say.
struct Takes : NumberLimits {
    Padding padding = Padding::any;
    LseAsked lse = LseAsked::any;
    LseOrder lse_order = LseOrder::output;
    std::vector<DimPair> dims;
    /// An empty list: none.
    std::vector<MaskShared> mask_shared = {&MaskTensor::shared_batch, &MaskTensor::shared_heads,
                                           &MaskTensor::shared_queries};
    std::vector<RopeStyle> rope;
    bool turns_all = false;         ///< a rope turns every channel
    std::vector<AxisOrder> orders;  ///< q, k, v and o all lie in one of these, without gaps
    FeatureSet always;              ///< nothing without these
    bool operator==(const Takes&) const = default;
};

/// What is to stand in a number's place.
using NumberChange = std::function<std::int64_t(std::int64_t)>;

struct QuantityRow {
    Quantity quantity;
    std::string_view key;                         ///< in the manifest
    std::string_view said;                        ///< to people
    void (*each)(Problem&, const NumberChange&);  ///< changes every such number of a problem
    std::optional<Feature> of = {};               ///< there is one only beside this
    std::int64_t least = -1;                      ///< that a problem can have
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
/// In the order of Quantity.
std::span<const QuantityRow> quantities() noexcept;

template <typename T>
bool among(const std::vector<T>& list, const T& one) {
    return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
}
/// The order in which all four tensors lie without gaps, where they do.
std::optional<AxisOrder> common_order(const Problem& problem);
bool padded_right(const Problem& problem);

bool takes_shared(const Takes& takes, MaskShared axis) noexcept;

/// Why a problem is none of these; none where it is.
std::optional<std::string> refusal(const Takes& takes, const Problem& problem);
std::optional<std::string> refusal(const NumberLimits& limits, const Problem& problem);

/// The features that are nobody's choice beside such a kernel: groups, the memory order of its
/// tensors, a pair of dimensions. Of one problem: those that it has so.
FeatureSet inherent_features(const Takes& takes);
FeatureSet inherent_features(const Takes& takes, const Problem& problem);

/// Of every list that lacks a drawn number, a member by that number: all of them in turn. Of
/// dimensions and of each sequence's lengths the nearest will do.
void spread(Problem& problem, const NumberLimits& takes);
/// Moves batch and heads, and lengths, to some that are taken, before any feature is set. Queries
/// stand to keys as `wanted`, or closer.
void fit_heads(Problem& problem, const NumberLimits& takes);
void fit_lengths(Problem& problem, const NumberLimits& takes, Queries wanted);
void fit_lse(Problem& problem, LseAsked when);
/// Moves every number to the nearest that is taken, and gives up what no number can mend.
void fit(Problem& problem, const Takes& takes);

/// For people, a sentence for each limit: "queries: multiples of 16".
std::vector<std::string> described(const Takes& takes);
std::vector<std::string> described(const NumberLimits& limits);

}  // namespace attest::kernel
