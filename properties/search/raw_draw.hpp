#pragma once
// A draw before it is a problem: numbers drawn independently of each other, so that none can make
// another invalid. derive_problem() turns them into a valid Problem of a law's space.

#include <rapidcheck.h>
#include <array>
#include <cstdint>

#include "reference/problem/problem.hpp"

namespace attest::search {

/// How the two lengths stand to each other.
enum class LengthRelation : std::uint8_t { free, equal, one_query, one_more_query, one_more_key };

/// How large the case is. Most are small: a bug that shows at 40 keys shows at a hundredth of the
/// price; but one in the second tile of 128 shows from 130 keys on only.
enum class Size : std::uint8_t { typical, large, full, long_keys, long_queries };

struct RawLayout {
    AxisOrder order = AxisOrder::bhtd;
    std::int64_t row_pad = 0, offset = 0;
};

struct Raw {
    std::int64_t batch = 1, heads_kv = 1, group = 1;
    std::int64_t len_q = 1, len_kv = 1, long_len = 1;
    LengthRelation relation = LengthRelation::free;
    Size size = Size::typical;
    double size_share = 0;       ///< [0, 1): where in its range the size lies
    bool heads_first = false;    ///< too large: give up heads and batch before lengths
    bool queries_first = false;  ///< too large: shorten queries before keys
    std::int64_t dim_qk = 1, dim_v = 1;
    std::int64_t window_left = 0, window_right = 0;
    std::int64_t window_sides = 0;  ///< 0: both ends, 1: left alone, 2: right alone
    std::array<std::int64_t, 8> lens_q{}, lens_kv{};  ///< one a sequence; cut to fit
    std::array<std::int64_t, 4> cuts_q{}, cuts_kv{};  ///< percent: where documents end
    std::int64_t documents = 1;
    double softcap = 1, scale = 1;
    Rope rope;
    std::int64_t rope_share = 0;  ///< quarters of the channels that are turned
    std::int64_t page_size = 1, splits = 1;
    std::array<RawLayout, 4> layouts{};
    bool shared_batch = false, shared_heads = false, shared_queries = false, shared_keys = false;
    std::int64_t other_format = 0, mixed = 0;
    std::array<std::int64_t, 32> chance{};  ///< percent, one a feature
    std::array<std::int64_t, 16>
        picks{};  ///< which value of the table's, one a field that has some
    MaskPattern pattern = MaskPattern::iid;
    std::int64_t tile = 0, floor = 0;  ///< which of those that fit
    bool random_slopes = false;
    /// Whether an edge of a page, a tile or a split is met; which, how far from it, and by whom.
    std::int64_t edge = 0, edge_of = 0, edge_side = 0, edge_row = 0;
};

/// What the numbers may be at most. dims: the head dimensions allowed.
struct RawLimits {
    std::int64_t len_max = 256, batch_max = 0;  ///< batch_max 0: none
    std::int64_t long_from = 100;  ///< lengths of Size::long_keys and long_queries, at least
    std::vector<std::int64_t> dims;
};

rc::Gen<Raw> raw_draws(const RawLimits& limits);

/// As large as may be, queries and keys alike. The edges that lengths are drawn at stay edges of
/// tiles of up to 64.
void cut_into_several_tiles(Raw& raw);

/// Of pages so large that most cases of usual lengths would have one alone: up to four of them,
/// queries and heads given up first.
void cut_into_several_pages(Raw& raw, std::int64_t page);

}  // namespace attest::search
