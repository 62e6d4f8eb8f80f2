#pragma once
// The joint distributions of Q, K, V, row by row. A row depends on the seed and its own coordinates
// (batch, head, position), never on a length, so that cutting a length leaves the rest alone.

#include <cstdint>
#include <span>

#include "reference/problem/case.hpp"

namespace attest {

/// Independent uses of the generator; streams below role_count are the roles themselves.
enum class Stream : std::uint64_t { parameters = 64, variation, page_order, mask_pattern };

/// The key of a row of a tensor; element c of the row has index key + c.
std::uint64_t row_key(std::int64_t b, std::int64_t h, std::int64_t t) noexcept;

/// index: 1 + (t + 3c + 5(h + b)) mod 8, small integers that tell neighbours apart in every axis.
/// alternating: +1 where t + c is even, else -1. steep: 128 t, up to 2^15: with queries of one, no
/// two scores are within what an exponential in f32 can tell, and the largest comes last. sparse: 1
/// where index is 1. one_hot: 1 in channel 0 of the first head's last row.
double filled(Fill fill, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c, bool last);

class Distribution {
public:
    Distribution(const Problem& problem, const Values& values);

    /// One row of q, k or v, not yet rounded to its format.
    void row(Role role, std::int64_t b, std::int64_t h, std::int64_t t,
             std::span<double> out) const;

private:
    double parameter(std::uint64_t number) const noexcept;  ///< [0, 1), one value a seed
    std::int64_t parameter_in(std::uint64_t number, std::int64_t low,
                              std::int64_t high) const noexcept;
    double variation(Role role, std::uint64_t index) const noexcept;  ///< [0, 1) an element

    void fill(Role role, std::uint64_t key, std::span<double> out) const;
    void shape_q(std::uint64_t key, std::span<double> q) const;
    void shape_k(std::uint64_t key, std::int64_t t, std::span<double> k) const;
    void shape_v(std::uint64_t key, std::int64_t t, std::span<double> v) const;
    void widen(Role role, std::uint64_t key, double middle, int binades,
               std::span<double> out) const;
    double tiny_factor(Role role, Precision format) const;

    ValueKind kind_;
    std::uint64_t seed_;
    Precision format_q_, format_kv_;
    std::int64_t group_;
    double logit_size_;
};

}  // namespace attest
