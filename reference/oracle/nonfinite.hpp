#pragma once
// Rows that see a NaN or an infinity. What they must come to is decided by kind, over the extended
// reals, apart from the arithmetic of finite rows:
//
//   a NaN score, or an infinity minus itself       the whole row is NaN
//   a score of +inf                                the whole row is not finite
//   a score of -inf (from an infinite input)       weight 0; the row is as if the key were hidden
//   an infinity that a soft cap bends              nothing is claimed: kernels compute tanh as
//                                                  (e - 1)/(e + 1), which is NaN there
//   an infinity that RoPE turns                    nothing is claimed: its sign is lost
//   a visible NaN (infinite) value                 that column is NaN (not finite)
//
// Where the dialect leaves non-finite inputs open, nothing is claimed of such a row.

#include <cstdint>
#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::oracle {

enum class Claim : std::uint8_t { value, nan, nonfinite, nothing };

struct RowClaims {
    Claim row = Claim::value;   ///< other than value: of every column and the LSE
    std::vector<Claim> column;  ///< [dim_v]; empty: value everywhere
    bool drop_sink = false;     ///< a sink of -inf
    bool seen = false;          ///< the row sees something that is not finite
};

/// Also removes from `keys` those whose score is -inf.
RowClaims screen(const Prepared& call, std::int64_t b, std::int64_t h, std::int64_t i,
                 std::vector<std::int64_t>& keys);

/// The element a claim other than `value` stands for; see judge().
bound::ExpectedElement claimed(Claim claim);

/// v with every NaN and infinity replaced by 0, for the columns that are still computed.
void clean_values(Prepared& call);

}  // namespace attest::oracle
