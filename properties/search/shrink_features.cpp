#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/search/shrink_moves.hpp"
#include "properties/search/size_order.hpp"

namespace attest::search {

namespace {

using Edits = std::vector<Edit>;

void add_switches(Edits& edits, const Problem& p) {
    using enum Feature;
    const FeatureSet has = features_of(p);
    const auto add = [&](Feature feature, const char* change, void (*apply)(Problem&)) {
        if (has.has(feature)) edits.push_back({change, apply});
    };
    add(d_lse, "no gradient of the log-sum-exp", [](Problem& x) { x.lse_grad = false; });
    add(layout, "layouts to contiguous",
        [](Problem& x) { x.layout_q = x.layout_k = x.layout_v = x.layout_o = {}; });
    add(negative_scale, "scale above 0", [](Problem& x) { x.scale = -*x.scale; });
    add(scale, "scale to its default", [](Problem& x) { x.scale.reset(); });
    add(dim_v, "dim_v to dim_qk", [](Problem& x) { x.dim_v = 0; });
    add(splits, "splits to the kernel's choice", [](Problem& x) { x.splits = 0; });
    add(keys_rotated, "keys not rotated before", [](Problem& x) { x.cache.keys_rotated = false; });
    add(ring, "ring off", [](Problem& x) { x.cache.ring = false; });
    add(paged, "pages off", [](Problem& x) { x.cache.page_size = 0; });
    add(cache, "cache off", [](Problem& x) { x.cache = {}; });
    add(rope, "rope off", [](Problem& x) {
        x.rope = {};
        x.cache.keys_rotated = false;
    });
    add(alibi, "alibi off", [](Problem& x) { x.alibi = false; });
    add(sink, "sink off", [](Problem& x) { x.sink = false; });
    add(softcap, "soft cap off", [](Problem& x) { x.softcap = 0; });
    add(dropout, "dropout off", [](Problem& x) { x.dropout = {}; });
    add(documents, "documents off", [](Problem& x) {
        x.mask.documents_q.clear();
        x.mask.documents_kv.clear();
    });
    add(mask_bool, "mask off", [](Problem& x) { x.mask.tensor = {}; });
    add(mask_additive, "mask off", [](Problem& x) { x.mask.tensor = {}; });
    add(lens_q, "lens to full", [](Problem& x) { x.mask.lens_q = x.mask.lens_kv = {}; });
    add(lens_q, "lens_q to full", [](Problem& x) { x.mask.lens_q.clear(); });
    add(lens_kv, "lens_kv to full", [](Problem& x) { x.mask.lens_kv.clear(); });
    add(window, "window off", [](Problem& x) { x.mask.window = {}; });
    add(causal, "causal off", [](Problem& x) { x.mask.causal = false; });
    add(gqa, "one query head a key/value head", [](Problem& x) { x.heads_q = x.heads_kv; });
    add(gqa, "heads to one", [](Problem& x) { x.heads_q = x.heads_kv = 1; });
}

void add_parts(Edits& edits, const Problem& p) {
    for (const auto& [layout, name] : {std::pair{&Problem::layout_q, "layout_q"},
                                       {&Problem::layout_k, "layout_k"},
                                       {&Problem::layout_v, "layout_v"},
                                       {&Problem::layout_o, "layout_o"}}) {
        if (p.*layout == Layout{}) continue;
        const auto member = layout;
        edits.push_back(
            {std::string(name) + " to contiguous", [member](Problem& x) { x.*member = {}; }});
        edits.push_back({std::string(name) + " to bthd", [member](Problem& x) {
                             x.*member = {AxisOrder::bthd, 0, 0};
                         }});
    }
    const MaskTensor& t = p.mask.tensor;
    if (t.shared_batch || t.shared_heads || t.shared_queries || t.shared_keys)
        edits.push_back({"mask not shared", [](Problem& x) {
                             MaskTensor& mask = x.mask.tensor;
                             mask.shared_batch = mask.shared_heads = false;
                             mask.shared_queries = mask.shared_keys = false;
                         }});
    for (const MaskPattern plainer : {MaskPattern::iid, MaskPattern::left_pad, MaskPattern::one_key,
                                      MaskPattern::leading_tiles})
        if (plainer < t.pattern)
            edits.push_back({"mask pattern to " + std::string(name(plainer)),
                             [plainer](Problem& x) { x.mask.tensor.pattern = plainer; }});
    if (t.floor != 0)
        edits.push_back({"hidden keys to -inf", [](Problem& x) { x.mask.tensor.floor = 0; }});
    if (p.alibi_slopes != AlibiSlopes::geometric)
        edits.push_back(
            {"slopes to one series", [](Problem& x) { x.alibi_slopes = AlibiSlopes::geometric; }});
    if (p.mask.window.left >= 0 && p.mask.window.right >= 0) {
        edits.push_back({"window open to the right", [](Problem& x) { x.mask.window.right = -1; }});
        edits.push_back({"window open to the left", [](Problem& x) { x.mask.window.left = -1; }});
    }
    if (p.mask.window.limited())
        for (const Window& plain : {Window{0, -1}, Window{-1, 0}, Window{0, 0}})
            edits.push_back(
                {"window to " + std::to_string(plain.left) + " " + std::to_string(plain.right),
                 [plain](Problem& x) { x.mask.window = plain; }});
    if (p.softcap != 0) edits.push_back({"soft cap to 1", [](Problem& x) { x.softcap = 1; }});
    if (p.scale)
        edits.push_back(
            {"scale to 1 or -1", [](Problem& x) { x.scale = std::copysign(1.0, *x.scale); }});
    if (p.rope.style != RopeStyle::none) {
        edits.push_back(
            {"rope base to its default", [](Problem& x) { x.rope.base = Rope{}.base; }});
        edits.push_back({"rope turns all channels", [](Problem& x) { x.rope.dims = 0; }});
        edits.push_back(
            {"rope interleaved", [](Problem& x) { x.rope.style = RopeStyle::interleaved; }});
    }
    if (!p.want_lse)
        edits.push_back({"log-sum-exp asked for", [](Problem& x) { x.want_lse = true; }});
}

/// The rate 1/2, which needs fewest cells to drop one and keep one; where 1/p and 1/(1-p) have to
/// be told apart, 1/4. Then the seed that says least.
void add_dropout(Edits& edits, const Problem& p) {
    const Dropout now = p.dropout;
    if (now.p == 0) return;
    const auto add = [&](double rate, std::uint64_t seed) {
        const Dropout to{rate, seed};
        if (dropout_weight(to) >= dropout_weight(now)) return;
        const char* changed = rate == now.p ? "" : rate == 0.5 ? "rate 1/2 " : "rate 1/4 ";
        edits.push_back({std::string("dropout ") + changed + "seed " + std::to_string(seed),
                         [to](Problem& x) { x.dropout = to; }});
    };
    for (const double rate : {0.5, 0.25, now.p}) {
        for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 32})
            for (std::uint64_t n = 0; n < plain_dropout_seeds; ++n) add(rate, first + n);
        add(rate, now.seed);
    }
}

/// Lengths nearer to full: full where that is enough, else one short of it. `alike`: those of
/// queries and of keys together.
void add_lens(Edits& edits, const Problem& p, std::vector<std::int64_t> Mask::*lens,
              std::int64_t full, const std::string& label, bool alike) {
    for (std::size_t i = 0; i < (p.mask.*lens).size(); ++i)
        for (const std::int64_t to : {full, full - 1})
            if (to > (p.mask.*lens)[i])
                edits.push_back({label + "[" + std::to_string(i) + "] to " + std::to_string(to),
                                 [=](Problem& x) {
                                     (x.mask.*lens)[i] = to;
                                     if (alike) x.mask.lens_q = x.mask.lens_kv = x.mask.*lens;
                                 }});
}

/// One sequence alone: which of them fails is not known.
void add_sequences(Edits& edits, const Problem& p) {
    for (std::int64_t b = 0; p.batch > 1 && b < p.batch; ++b)
        edits.push_back({"sequence " + std::to_string(b) + " alone", [b](Problem& x) {
                             const auto at = static_cast<std::size_t>(b);
                             x.batch = 1;
                             if (!x.mask.lens_q.empty()) x.mask.lens_q = {x.mask.lens_q[at]};
                             if (!x.mask.lens_kv.empty()) x.mask.lens_kv = {x.mask.lens_kv[at]};
                         }});
    for (std::size_t i = 0; i < p.mask.documents_q.size(); ++i)
        edits.push_back({"without document " + std::to_string(i), [i](Problem& x) {
                             const auto at = static_cast<std::ptrdiff_t>(i);
                             x.len_q -= x.mask.documents_q[i];
                             x.len_kv -= x.mask.documents_kv[i];
                             x.mask.documents_q.erase(x.mask.documents_q.begin() + at);
                             x.mask.documents_kv.erase(x.mask.documents_kv.begin() + at);
                         }});
}

void add_formats(Edits& all, const Problem& p) {
    Edits edits;
    const auto all_to = [](Precision format) {
        return [format](Problem& x) { x.format_q = x.format_kv = x.format_o = format; };
    };
    const auto is_plain = [&](Precision f) {
        return p.format_q == f && p.format_kv == f && p.format_o == f;
    };
    if (!is_plain(Precision::f32)) edits.push_back({"formats to f32", all_to(Precision::f32)});
    if (!is_plain(p.format_q)) edits.push_back({"formats alike", all_to(p.format_q)});
    if (p.format_kv != p.format_q)
        edits.push_back(
            {"format of keys and values as queries", [](Problem& x) { x.format_kv = x.format_q; }});
    if (p.format_o != p.format_q)
        edits.push_back(
            {"format of outputs as queries", [](Problem& x) { x.format_o = x.format_q; }});
    for (const Precision format : {Precision::f64, Precision::f16})
        if (!is_plain(format) && p.format_q > format && p.format_q != Precision::f32)
            edits.push_back({"formats to " + std::string(name(format)), all_to(format)});
    for (Edit& edit : edits) {
        edit.pass = "formats";
        all.push_back(std::move(edit));
    }
}

}  // namespace

std::vector<Edit> feature_edits(const Problem& p) {
    Edits edits;
    add_switches(edits, p);
    add_parts(edits, p);
    add_dropout(edits, p);
    if (p.mask.lens_q == p.mask.lens_kv && p.len_q == p.len_kv)
        add_lens(edits, p, &Mask::lens_kv, p.len_kv, "lens", true);
    add_lens(edits, p, &Mask::lens_q, p.len_q, "lens_q", false);
    add_lens(edits, p, &Mask::lens_kv, p.len_kv, "lens_kv", false);
    add_sequences(edits, p);
    add_formats(edits, p);
    return edits;
}

}  // namespace attest::search
