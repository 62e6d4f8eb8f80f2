#pragma once
// What is computed: the Problem. An aggregate with defaults, made with designated initialisers;
// everything a kernel can be asked for is a field here, whether or not any kernel supports it yet
// (supports() says no, with a reason).
//
// It prints as one line with only what differs from the defaults, `b2 hq8 hkv2 tq128 tk160 d64
// causal f16`, and parse(print(p)) = p for every canonical p.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem/mask.hpp"
#include "reference/problem/precision.hpp"
#include "reference/problem/tensor.hpp"

namespace attest {

/// Which memory order a four-axis tensor takes in a call; the logical order is always [batch,
/// heads, length, dim].
enum class AxisOrder : std::uint8_t { bhtd, bthd, tbhd, bhdt };

/// How one tensor lies in the kernel's memory. A mask tensor lies as q does, the LSE as o does.
struct Layout {
    AxisOrder order = AxisOrder::bhtd;
    std::int64_t row_pad = 0;  ///< elements of poison after each innermost row
    std::int64_t offset = 0;   ///< elements of poison before the first element (breaks alignment)
    bool operator==(const Layout&) const = default;
};

/// The slopes of ALiBi's heads. One series for every number of heads, 2^(-8(h+1)/H); as published,
/// where a number that is no power of two takes those of the powers below and above it; or any.
enum class AlibiSlopes : std::uint8_t { geometric, published, random };

enum class RopeStyle : std::uint8_t {
    none,
    interleaved,
    half
};  ///< GPT-J pairs (0,1); NeoX pairs (0,d/2)

struct Rope {
    RopeStyle style = RopeStyle::none;
    double base = 10000.0;
    std::int64_t dims = 0;    ///< rotated channels; 0: all of dim_qk
    std::int64_t offset = 0;  ///< position of key 0
    bool operator==(const Rope&) const = default;
};

struct Dropout {
    double p = 0.0;
    std::uint64_t seed = 0;
    bool operator==(const Dropout&) const = default;
};

/// A KV cache. len keys were there before; forward counts every key (len_kv), query i stands at
/// position len + i.
struct Cache {
    bool present = false;
    std::int64_t len = 0;
    std::int64_t page_size = 0;  ///< 0: contiguous
    /// Only the last keys are held, as many as the queries' window reaches back to (all, without a
    /// window to the left), each in slot position mod capacity.
    bool ring = false;
    bool keys_rotated = false;  ///< RoPE already applied to the cached keys
    bool operator==(const Cache&) const = default;
};

struct Problem {
    std::int64_t batch = 1, heads_q = 1, heads_kv = 1;
    std::int64_t len_q = 1, len_kv = 1;  ///< axis lengths (maxima where sequences differ)
    std::int64_t dim_qk = 1;
    std::int64_t dim_v = 0;  ///< 0: as dim_qk
    /// None: 1/sqrt(dim_qk), rounded to f32 unless format_q is f64.
    std::optional<double> scale = {};
    Mask mask = {};
    double softcap = 0.0;  ///< 0: none; else S = c tanh(S/c)
    bool sink = false;     ///< one extra logit a query head in the denominator
    bool alibi = false;
    AlibiSlopes alibi_slopes = AlibiSlopes::geometric;
    Rope rope = {};
    Dropout dropout = {};
    Cache cache = {};
    std::int64_t splits = 0;  ///< 0: the kernel's choice
    Precision format_q = Precision::f32, format_kv = Precision::f32, format_o = Precision::f32;
    Layout layout_q = {}, layout_k = {}, layout_v = {}, layout_o = {};
    bool want_lse = true;  ///< ask for the log-sum-exp where the kernel returns one
    bool want_grad = false;
    bool lse_grad = false;  ///< backward is given the gradient of the LSE, too
    bool operator==(const Problem&) const = default;
};

std::int64_t value_dim(const Problem& problem) noexcept;  ///< dim_v, or dim_qk where that is 0
double effective_scale(
    const Problem& problem) noexcept;  ///< the exact real value handed to the kernel
std::int64_t group_size(const Problem& problem) noexcept;  ///< query heads a key/value head
bool has_positions(const Problem& problem) noexcept;  ///< ALiBi or RoPE
/// Those without a cache: a position is an index, of queries as of keys.
bool positions_are_indices(const Problem& problem) noexcept;
std::int64_t score_count(
    const Problem& problem) noexcept;  ///< batch * heads_q * len_q * len_kv: a problem's size

/// Defaults that are written out are folded back (dim_v == dim_qk becomes 0, full lens vectors
/// become empty, ...), so that equal problems compare equal and have one line, one JSON text and
/// one name.
Problem canonical(Problem problem);

/// Throws BadInput with the reason if the fields contradict each other (heads_kv does not divide
/// heads_q, ...).
void require_valid(const Problem& problem);

std::string print(const Problem& problem);     ///< the one-line text form, canonical
Problem parse_problem(std::string_view line);  ///< throws BadInput with a caret under the place

/// The shape of a role's tensor in this problem, logical axes; empty optional where the problem has
/// no such tensor. k and v are sequences also where the cache is paged: pages are a matter of the
/// ABI. Positions exist where a cache meets per-sequence lengths; gradients where want_grad.
std::optional<Shape> shape_of(const Problem& problem, Role role);

/// What k or v are laid into in a call where a cache does not hold all keys in their order. Paged:
/// [pages, heads_kv, page_size, dim], as many pages as the longest sequence needs, for every
/// sequence, whatever lens_kv says, and two that no table names. A ring: [batch, heads_kv,
/// capacity, dim].
std::optional<Shape> cache_shape_of(const Problem& problem, Role role);
ElementType type_of(const Problem& problem, Role role);

}  // namespace attest
