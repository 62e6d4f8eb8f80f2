#pragma once
// Everything that decides which keys a query may see, built in or given as a tensor.

#include <cstdint>
#include <string_view>
#include <vector>

namespace attest {

/// A sliding window around the diagonal, in keys; -1 is no limit. Query i sees j iff i+Tk-Tq-left
/// <= j <= i+Tk-Tq+right.
struct Window {
    std::int64_t left = -1, right = -1;
    bool limited() const noexcept { return left >= 0 || right >= 0; }
    bool operator==(const Window&) const = default;
};

enum class MaskKind : std::uint8_t { none, boolean, additive };

/// Which keys a mask tensor hides (mask_pattern.hpp, and README.md); the plainest first.
enum class MaskPattern : std::uint8_t {
    iid,
    left_pad,
    right_pad,
    one_key,
    leading_tiles,
    inner_tiles,
    trailing_tiles,
    prefix_lm,
    documents,
    band,
    dilated,
    blocks,
    checkerboard,
    tree,
    empty_rows
};
inline constexpr int mask_pattern_count = 15;
std::string_view name(MaskPattern pattern) noexcept;

/// A mask given as a tensor [batch, heads_q, len_q, len_kv]; an axis set to shared has extent 1 and
/// is broadcast.
struct MaskTensor {
    MaskKind kind = MaskKind::none;
    bool shared_batch = false, shared_heads = false, shared_queries = false, shared_keys = false;
    MaskPattern pattern = MaskPattern::iid;
    std::int64_t tile = 16;  ///< keys; what a pattern of tiles is made of
    double floor = 0;        ///< what hides a key in an additive mask; 0: -inf
    bool operator==(const MaskTensor&) const = default;
};

/// Everything that decides which keys a query may see.
struct Mask {
    bool causal = false;  ///< alignment is the kernel's Dialect
    Window window = {};
    MaskTensor tensor = {};
    /// Valid lengths, one a sequence; empty: all of them full.
    std::vector<std::int64_t> lens_q = {}, lens_kv = {};
    /// Packed sequences: lengths that sum to len_q / len_kv (batch 1).
    std::vector<std::int64_t> documents_q = {}, documents_kv = {};
    bool operator==(const Mask&) const = default;
};

}  // namespace attest
