#pragma once
// How large a case is along each axis that a kernel's tiles, tables and counters are made for; and
// the outliers: cases with one size far beyond what the others are, so that it costs next to
// nothing.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/problem/problem.hpp"

namespace attest::search {

enum class SizeAxis : std::uint8_t {
    batch,
    heads_q,
    heads_kv,
    len_q,
    len_kv,
    dim_qk,
    dim_v,
    documents
};
inline constexpr int size_axis_count = 8;

/// As the fields of a case are called: batch, heads_q, ...; documents.
std::string_view name(SizeAxis axis) noexcept;

/// As a case is written: b, hq, hkv, tq, tk, d, dv; docs.
std::string_view short_name(SizeAxis axis) noexcept;

/// One number an axis; 0: none is said.
class Sizes {
public:
    constexpr Sizes() = default;
    constexpr Sizes(std::initializer_list<std::pair<SizeAxis, std::int64_t>> sizes) {
        for (const auto& [axis, size] : sizes) (*this)[axis] = size;
    }
    constexpr std::int64_t operator[](SizeAxis axis) const {
        return of_[static_cast<std::size_t>(axis)];
    }
    constexpr std::int64_t& operator[](SizeAxis axis) {
        return of_[static_cast<std::size_t>(axis)];
    }
    void cover(const Sizes& other) noexcept;  ///< the larger one, axis by axis
    bool within(const Sizes& most) const noexcept;
    bool empty() const noexcept { return *this == Sizes(); }
    bool operator==(const Sizes&) const = default;

private:
    std::array<std::int64_t, size_axis_count> of_{};
};

Sizes sizes_of(const Problem& problem);

/// Every outlier that is known: batches to 33, 128 query heads, lengths half as long again as every
/// power of two (who drops what lies past it drops a third) to 131072, head dimensions of real
/// models and odd ones to 577, 33 documents. What is 0 is small.
const std::vector<Sizes>& known_outliers();

/// Of so many scores there are no more sequences and heads than must be.
inline constexpr std::int64_t scores_large = 4096;

/// How many products of a query's, a key's and a value's numbers there are at least, a case's other
/// sizes being the smallest that one is stretched with.
std::int64_t least_products(const Sizes& sizes);

/// Simulated threads make some 35 000 products a second where every access is watched: what takes
/// longer than seconds is not asked of them; the largest that such a kernel takes, where that is
/// half a minute at most, by the laws of one call alone.
inline constexpr std::int64_t simulated_products_max = 200'000;
inline constexpr std::int64_t simulated_products_of_one = 1'000'000;

/// The problem with these sizes in place of its own. None where that contradicts its features.
std::optional<Problem> stretched(Problem problem, const Sizes& sizes);

}  // namespace attest::search
