#include "reference/problem/validity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>

#include "reference/problem/fields.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

using Found = std::optional<Contradiction>;

// Lengths and pages reach a kernel as int32 (attest_kernel.h). 2^40 elements are beyond any machine
// and far below where 64-bit offsets overflow.
constexpr std::int64_t axis_max = 0x7fffffff;
constexpr double elements_max = 0x1p40;

/// Whole numbers that stand by themselves: axes, and counts of which 0 is none.
Found check_whole_numbers(const Problem& p) {
    for (const auto group : field_groups()) {
        const Field& field = group.front();
        const FieldValue value = field.place.get(p);
        const auto* number = std::get_if<std::int64_t>(&value);
        if (number == nullptr || group.size() > 1) continue;
        const bool needed =
            field.key == "heads_q" || field.key == "heads_kv" || field.key == "dim_qk";
        const std::int64_t least = needed ? 1 : 0;
        if (*number >= least && *number <= axis_max) continue;
        const char* between = field.form == LineForm::value ? " " : "";
        return Contradiction{std::string(field.key),
                             fmt::format("{}{}{} is out of range", field.word, between, *number),
                             fmt::format("{} is a whole number from {} to {}: {}", field.key, least,
                                         axis_max, field.means)};
    }
    return std::nullopt;
}

/// "1, 2, 4 or 8": the numbers heads_kv may be.
std::string divisors(std::int64_t number) {
    std::set<std::int64_t> all;
    for (std::int64_t low = 1; low * low <= number; ++low)
        if (number % low == 0) all.insert({low, number / low});
    constexpr std::size_t shown_max = 12;
    std::string text;
    for (std::size_t shown = 0; const std::int64_t divisor : all) {
        if (shown++ == shown_max) return text + ", ...";
        if (!text.empty()) text += divisor == *all.rbegin() ? " or " : ", ";
        text += std::to_string(divisor);
    }
    return text;
}

Found check_heads(const Problem& p) {
    if (p.heads_q % p.heads_kv == 0) return std::nullopt;
    return Contradiction{"heads_kv",
                         fmt::format("hkv{} does not divide hq{}", p.heads_kv, p.heads_q),
                         "heads_q must be a multiple of heads_kv: " + divisors(p.heads_q)};
}

Found check_size(const Problem& p) {
    const auto product = [](auto... extents) { return (1.0 * ... * static_cast<double>(extents)); };
    const std::int64_t dim = std::max(p.dim_qk, value_dim(p));
    const std::int64_t room =
        p.cache.present ? 2 * std::max<std::int64_t>(p.cache.page_size, 1) : 0;
    const double queries = product(p.batch, p.heads_q, p.len_q, dim);
    const double keys =
        product(p.heads_kv, dim) *
        (product(p.batch, p.len_kv) + static_cast<double>(room + p.batch * p.cache.page_size));
    const bool scores_held = p.mask.tensor.kind != MaskKind::none || p.dropout.p > 0;
    const double scores = scores_held ? product(p.batch, p.heads_q, p.len_q, p.len_kv) : 0.0;
    if (std::max({queries, keys, scores}) <= elements_max) return std::nullopt;
    const char* blame = queries > elements_max ? "len_q" : "len_kv";
    return Contradiction{blame, "a tensor of more than 2^40 elements",
                         "make batch, heads, lengths or dim smaller"};
}

Found check_window(const Problem& p) {
    const Window& w = p.mask.window;
    if (w.left >= -1 && w.right >= -1) return std::nullopt;
    return Contradiction{"window", fmt::format("window {} {} is out of range", w.left, w.right),
                         "a limit is a number of keys, or -1 for none"};
}

Found check_mask_tensor(const Problem& p) {
    const MaskTensor& m = p.mask.tensor;
    if (m.tile < 1 || m.tile > axis_max)
        return Contradiction{"mask", fmt::format("tile {} is out of range", m.tile),
                             "a tile holds at least 1 key"};
    if (std::isfinite(m.floor) && m.floor <= 0) return std::nullopt;
    return Contradiction{"mask", "floor " + decimal(m.floor),
                         "a floor is a finite number below 0; 0 is -inf"};
}

Found check_lens(const char* field, const std::vector<std::int64_t>& lens, std::int64_t batch,
                 const char* word, std::int64_t most) {
    if (lens.empty()) return std::nullopt;
    if (static_cast<std::int64_t>(lens.size()) != batch)
        return Contradiction{field,
                             fmt::format("{} has {} lengths for b{}", field, lens.size(), batch),
                             "write one length a sequence, separated by commas"};
    for (const std::int64_t len : lens)
        if (len < 0 || len > most)
            return Contradiction{field,
                                 fmt::format("{} holds {}, outside {}{}", field, len, word, most),
                                 fmt::format("every length is from 0 to {}", most)};
    return std::nullopt;
}

Found check_lens(const Problem& p) {
    const Mask& m = p.mask;
    if (auto found = check_lens("lens_q", m.lens_q, p.batch, "tq", p.len_q)) return found;
    if (auto found = check_lens("lens_kv", m.lens_kv, p.batch, "tk", p.len_kv)) return found;
    if (!p.cache.present) return std::nullopt;
    for (std::int64_t b = 0; b < p.batch; ++b) {
        const auto at = static_cast<std::size_t>(b);
        const std::int64_t queries = m.lens_q.empty() ? p.len_q : m.lens_q[at];
        const std::int64_t keys = m.lens_kv.empty() ? p.len_kv : m.lens_kv[at];
        if (keys < queries)
            return Contradiction{
                m.lens_kv.empty() ? "lens_q" : "lens_kv",
                fmt::format("sequence {} has {} queries but {} keys", b, queries, keys),
                "with a cache lens_kv counts the new keys too"};
    }
    return std::nullopt;
}

Found check_documents(const char* field, const std::vector<std::int64_t>& lens, const char* word,
                      std::int64_t total) {
    std::int64_t sum = 0;
    for (const std::int64_t len : lens) {
        if (len < 0 || len > total)
            return Contradiction{field,
                                 fmt::format("{} holds {}, outside {}{}", field, len, word, total),
                                 "the lengths of documents are not negative"};
        sum += len;
    }
    if (sum == total) return std::nullopt;
    return Contradiction{field, fmt::format("{} sum to {}, not to {}{}", field, sum, word, total),
                         fmt::format("set {}{} or change a document", word, sum)};
}

Found check_documents(const Problem& p) {
    const Mask& m = p.mask;
    if (m.documents_q.empty() && m.documents_kv.empty()) return std::nullopt;
    const char* field = m.documents_q.empty() ? "documents_kv" : "documents_q";
    if (m.documents_q.size() != m.documents_kv.size())
        return Contradiction{field,
                             fmt::format("{} documents of queries but {} of keys",
                                         m.documents_q.size(), m.documents_kv.size()),
                             "give documents_q and documents_kv, as many of each"};
    if (p.batch != 1)
        return Contradiction{field, fmt::format("packed documents with b{}", p.batch),
                             "packed sequences have batch 1"};
    if (p.cache.present || !m.lens_q.empty() || !m.lens_kv.empty())
        return Contradiction{field, "packed documents with a cache or lengths",
                             "a document's lengths are its own; drop cache, lens_q and lens_kv"};
    if (auto found = check_documents("documents_q", m.documents_q, "tq", p.len_q)) return found;
    return check_documents("documents_kv", m.documents_kv, "tk", p.len_kv);
}

/// Where a position is an index, queries and keys must count alike.
Found check_positions(const Problem& p) {
    const Mask& m = p.mask;
    if (!positions_are_indices(p) ||
        (p.len_q == p.len_kv && m.lens_q == m.lens_kv && m.documents_q == m.documents_kv))
        return std::nullopt;
    const char* word = p.rope.style != RopeStyle::none ? "rope" : "alibi";
    return Contradiction{word, fmt::format("{} where queries and keys count differently", word),
                         "it needs a cache, or tq equal to tk, and lens and documents alike"};
}

Found check_rope(const Problem& p) {
    if (p.rope.style == RopeStyle::none) return std::nullopt;
    const std::int64_t dims = p.rope.dims == 0 ? p.dim_qk : p.rope.dims;
    if (dims < 2 || dims % 2 != 0 || dims > p.dim_qk)
        return Contradiction{"rope",
                             fmt::format("rope cannot turn {} channels of d{}", dims, p.dim_qk),
                             "dims is even and at most d"};
    if (!std::isfinite(p.rope.base) || !(p.rope.base > 0))
        return Contradiction{"rope", "rope base " + decimal(p.rope.base), "base is above 0"};
    if (p.rope.offset < 0 || p.rope.offset > axis_max)
        return Contradiction{"rope", fmt::format("rope offset {}", p.rope.offset),
                             fmt::format("offset is from 0 to {}", axis_max)};
    return std::nullopt;
}

Found check_reals(const Problem& p) {
    if (p.scale && !std::isfinite(*p.scale))
        return Contradiction{"scale", "scale " + decimal(*p.scale), "scale is a finite number"};
    if (!std::isfinite(p.softcap) || p.softcap < 0)
        return Contradiction{"softcap", "softcap " + decimal(p.softcap),
                             "softcap is above 0; 0 is none"};
    if (!(p.dropout.p >= 0 && p.dropout.p < 1))
        return Contradiction{"dropout", "dropout " + decimal(p.dropout.p),
                             "p is at least 0 and below 1"};
    return std::nullopt;
}

Found check_cache(const Problem& p) {
    const Cache& c = p.cache;
    if (!c.present) return std::nullopt;
    if (c.len < 0 || c.len > axis_max || c.len + p.len_q != p.len_kv)
        return Contradiction{
            "cache", fmt::format("cache {} and tq{} are not tk{}", c.len, p.len_q, p.len_kv),
            "tk counts every key: the cached ones and the tq new ones"};
    if (c.page_size < 0 || c.page_size > axis_max)
        return Contradiction{"cache", fmt::format("page {} is out of range", c.page_size),
                             "a page holds at least 1 key; 0 is no paging"};
    if (c.ring && c.page_size > 0)
        return Contradiction{"cache", "a ring of pages",
                             "a ring buffer is contiguous; drop page or ring"};
    if (c.keys_rotated && p.rope.style == RopeStyle::none)
        return Contradiction{"cache", "rotated keys without rope", "add rope, or drop rotated"};
    return std::nullopt;
}

Found check_layout(const char* field, const Layout& layout) {
    constexpr std::int64_t offset_max = 1 << 20;  // a page of guard memory is far smaller
    constexpr std::int64_t pad_max = std::int64_t{1} << 33;  // past every offset of 32 bits
    if (std::min(layout.row_pad, layout.offset) >= 0 && layout.row_pad <= pad_max &&
        layout.offset <= offset_max)
        return std::nullopt;
    return Contradiction{
        field,
        fmt::format("{} pad {} offset {} is out of range", field, layout.row_pad, layout.offset),
        fmt::format("both count elements, the pad to {}, the offset to {}", pad_max, offset_max)};
}

Found check_layouts(const Problem& p) {
    if (auto found = check_layout("layout_q", p.layout_q)) return found;
    if (auto found = check_layout("layout_k", p.layout_k)) return found;
    if (auto found = check_layout("layout_v", p.layout_v)) return found;
    return check_layout("layout_o", p.layout_o);
}

}  // namespace

std::optional<Contradiction> find_contradiction(const Problem& problem) {
    // In this order: later checks rely on what the earlier ones established.
    for (const auto check : {check_whole_numbers, check_heads, check_window, check_mask_tensor,
                             check_reals, check_cache, check_size, check_rope, check_layouts})
        if (auto found = check(problem)) return found;
    if (auto found = check_lens(problem)) return found;
    if (auto found = check_documents(problem)) return found;
    return check_positions(problem);
}

std::optional<Contradiction> find_contradiction(const Problem& problem, const Values& values) {
    for (const auto& [role, tensor] : values.tensors) {
        const std::string field(name(role));
        if (std::ranges::find(written_roles, role) == std::end(written_roles))
            return Contradiction{field, field + " cannot be written out",
                                 "only q, k, v, d_o and d_lse can"};
        if (!shape_of(problem, role))
            return Contradiction{field, field + " belongs to gradients",
                                 role == Role::d_lse ? "add grad lse_grad" : "add grad"};
        if (tensor.fill != Fill::explicit_values) continue;
        const Shape shape = *shape_of(problem, role);
        const std::int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
        if (static_cast<std::int64_t>(tensor.values.size()) != count)
            return Contradiction{
                field, fmt::format("{} has {} values", field, tensor.values.size()),
                fmt::format("its shape [{}] has {}", fmt::join(shape, ", "), count)};
        const Precision format = precision_of(type_of(problem, role));
        for (const double value : tensor.values) {
            const double member = round_to(value, format);
            if (member == value) continue;
            return Contradiction{
                field,
                fmt::format("{} in {} is not a number of {}", decimal(value), field, name(format)),
                "the nearest is " + decimal(member)};
        }
    }
    return std::nullopt;
}

}  // namespace attest
