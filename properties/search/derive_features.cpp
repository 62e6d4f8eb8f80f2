#include <algorithm>
#include <initializer_list>

#include "properties/search/derive.hpp"
#include "properties/search/features.hpp"

namespace attest::search {

namespace {

void set_window(Problem& p, const Raw& raw) {
    const std::int64_t most = std::max(p.len_q, p.len_kv);
    p.mask.window.left = std::min(raw.window_left, most);
    p.mask.window.right = std::min(raw.window_right, most);
    if (raw.window_sides == 1) p.mask.window.right = -1;
    if (raw.window_sides == 2) p.mask.window.left = -1;
}

std::vector<std::int64_t> cut_lens(const std::array<std::int64_t, 8>& raw, std::int64_t batch,
                                   std::int64_t least, std::int64_t most) {
    std::vector<std::int64_t> lens;
    for (std::int64_t b = 0; b < batch; ++b)
        lens.push_back(std::clamp(raw[static_cast<std::size_t>(b) % raw.size()], least, most));
    // Full lengths are no lengths: one of them is cut, so that the feature is there.
    if (std::count(lens.begin(), lens.end(), most) == batch && most > least)
        lens.front() = std::max(least, most / 2);
    return lens;
}

/// With a cache a sequence has at least as many keys as queries.
void set_lens(Problem& p, const Raw& raw, FeatureSet features) {
    if (features.has(Feature::lens_q)) p.mask.lens_q = cut_lens(raw.lens_q, p.batch, 0, p.len_q);
    if (!features.has(Feature::lens_kv)) return;
    p.mask.lens_kv = cut_lens(raw.lens_kv, p.batch, p.cache.present ? p.len_q : 0, p.len_kv);
}

/// `count` lengths that sum to `total`, cut at the drawn percentages; a cut may repeat, so
/// documents may be empty.
std::vector<std::int64_t> cut_documents(const std::array<std::int64_t, 4>& percent,
                                        std::int64_t count, std::int64_t total) {
    std::vector<std::int64_t> cuts;
    for (std::int64_t n = 0; n + 1 < count; ++n)  // more than were drawn: others from them
        cuts.push_back((percent[static_cast<std::size_t>(n % 4)] + 29 * (n / 4)) % 101);
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::int64_t> lens;
    std::int64_t begin = 0;
    for (const std::int64_t cut : cuts) {
        const std::int64_t end = total * cut / 100;
        lens.push_back(end - begin);
        begin = end;
    }
    lens.push_back(total - begin);
    return lens;
}

/// One of the numbers that is less than `most`; the first where none is.
std::int64_t one_below(std::initializer_list<std::int64_t> numbers, std::int64_t most,
                       std::int64_t pick) {
    std::vector<std::int64_t> fitting;
    for (const std::int64_t number : numbers)
        if (number < most) fitting.push_back(number);
    if (fitting.empty()) return *numbers.begin();
    return fitting[static_cast<std::size_t>(pick) % fitting.size()];
}

/// The tiles of real kernels where there are two of them, else smaller ones. Patterns that go by
/// the query are not shared by queries; what keys share has none.
void set_mask_tensor(Problem& p, const Raw& raw, MaskKind kind) {
    MaskTensor& mask = p.mask.tensor;
    const bool by_query =
        raw.pattern >= MaskPattern::prefix_lm && raw.pattern != MaskPattern::empty_rows;
    mask = {kind, raw.shared_batch, raw.shared_heads, raw.shared_queries && !by_query,
            raw.shared_keys};
    mask.pattern = raw.shared_keys ? MaskPattern::iid : raw.pattern;
    mask.tile = p.len_kv > 16 ? one_below({16, 32, 64, 128}, p.len_kv, raw.tile)
                              : one_below({1, 2, 4, 8}, p.len_kv, raw.tile);
    if (kind == MaskKind::boolean || raw.floor % 3 != 0) return;
    // What frameworks have for -inf, now and then throughout a row; the largest are none of f16.
    const double lowest = -traits(p.format_q).max_finite;
    const double floors[] = {-1e4, -65504, std::max(-1e9, lowest), std::max(-1e30, lowest), lowest};
    mask.floor = floors[static_cast<std::size_t>(raw.floor / 3) % 5];
    if (raw.floor / 15 % 2 == 0) mask.pattern = MaskPattern::empty_rows;
    // Nothing is said of a row where all is the lowest number: its product with log2(e) is -inf.
    const bool whole_rows = mask.pattern == MaskPattern::iid ||
                            mask.pattern == MaskPattern::empty_rows || p.mask.causal ||
                            p.mask.window.limited() || !p.mask.lens_q.empty() ||
                            !p.mask.lens_kv.empty() || !p.mask.documents_kv.empty();
    if (whole_rows) mask.floor = std::max(-1e30, mask.floor);
}

void set_rope(Problem& p, const Raw& raw) {
    if (p.dim_qk % 2 != 0) ++p.dim_qk;
    p.rope = raw.rope;
    const std::int64_t turned = p.dim_qk * raw.rope_share / 4;
    p.rope.dims = std::max<std::int64_t>(turned - turned % 2, 2);
}

void set_cache(Problem& p, const Raw& raw, FeatureSet features) {
    p.cache.present = true;
    p.cache.len = p.len_kv - p.len_q;
    if (features.has(Feature::paged)) p.cache.page_size = raw.page_size;
    p.cache.ring = features.has(Feature::ring);
    // The first queries' windows end before the first key held, wherever there is one before them.
    if (p.cache.ring) p.mask.window.left = raw.window_left % std::max<std::int64_t>(p.cache.len, 1);
    p.cache.keys_rotated = features.has(Feature::keys_rotated);
}

Layout layout_of(const RawLayout& raw) {
    return {raw.order, raw.row_pad, raw.offset};
}

void set_layouts(Problem& p, const Raw& raw) {
    p.layout_q = layout_of(raw.layouts[0]);
    p.layout_k = layout_of(raw.layouts[1]);
    p.layout_v = layout_of(raw.layouts[2]);
    p.layout_o = layout_of(raw.layouts[3]);
    const Layout plain;
    if (p.layout_q == plain && p.layout_k == plain && p.layout_v == plain && p.layout_o == plain)
        p.layout_q.order = p.layout_k.order = p.layout_v.order = p.layout_o.order = AxisOrder::bthd;
}

void mix_formats(Problem& p, const Raw& raw, const std::vector<kernel::Formats>& formats) {
    std::vector<Precision> others;
    for (const kernel::Formats& one : formats)
        if (one.q != p.format_q) others.push_back(one.q);
    if (others.empty()) return;
    const Precision other = others[static_cast<std::size_t>(raw.other_format) % others.size()];
    if (raw.mixed != 1) p.format_o = other;
    if (raw.mixed != 0) p.format_kv = other;
}

}  // namespace

bool only_causal_hides(FeatureSet set) {
    using enum Feature;
    for (const Feature other : {lens_q, lens_kv, documents, mask_bool, mask_additive})
        if (set.has(other)) return false;
    return set.has(causal);
}

FeatureSet beside_more_queries(FeatureSet set, FeatureSet required) {
    using enum Feature;
    for (const Feature other : {cache, paged, ring, alibi})
        if (!required.has(other)) set = set.without(other);
    return set;
}

void derive_features(Problem& p, const Raw& raw, FeatureSet features,
                     const std::vector<kernel::Formats>& formats) {
    using enum Feature;
    set_plain_fields(p, features, raw.picks);
    if (features.has(window)) set_window(p, raw);
    if (features.has(cache)) set_cache(p, raw, features);
    set_lens(p, raw, features);
    if (features.has(mask_bool)) set_mask_tensor(p, raw, MaskKind::boolean);
    if (features.has(mask_additive)) set_mask_tensor(p, raw, MaskKind::additive);
    p.alibi_slopes = raw.random_slopes ? AlibiSlopes::random : AlibiSlopes::published;
    if (features.has(documents)) {
        p.mask.documents_q = cut_documents(raw.cuts_q, raw.documents, p.len_q);
        p.mask.documents_kv = features.has(alibi) || features.has(rope)
                                  ? p.mask.documents_q
                                  : cut_documents(raw.cuts_kv, raw.documents, p.len_kv);
    }
    if (features.has(softcap)) p.softcap = raw.softcap;
    if (features.has(rope)) set_rope(p, raw);
    // 0 in the draw stands for 1/d: the commonest wrong scale. It crosses the ABI as a float.
    if (features.has(scale) || features.has(negative_scale))
        p.scale = round_to(raw.scale == 0 ? 1.0 / static_cast<double>(p.dim_qk) : raw.scale,
                           Precision::f32);
    if (features.has(negative_scale)) p.scale = -*p.scale;
    if (features.has(splits)) p.splits = raw.splits;
    if (features.has(layout)) set_layouts(p, raw);
    if (features.has(mixed_formats)) mix_formats(p, raw, formats);
}

}  // namespace attest::search
