#include "reference/problem/fields.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "reference/problem/names.hpp"

namespace attest {
namespace {

template <auto first, auto... rest>
constexpr auto& follow(auto& object) {
    if constexpr (sizeof...(rest) == 0)
        return object.*first;
    else
        return follow<rest...>(object.*first);
}

template <auto... path>
FieldValue get(const Problem& problem) {
    const auto& member = follow<path...>(problem);
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(member)>>)
        return Enumerator{static_cast<std::uint8_t>(member)};
    else
        return member;
}

template <auto... path>
void set(Problem& problem, const FieldValue& value) {
    auto& member = follow<path...>(problem);
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_enum_v<Member>)
        member = static_cast<Member>(std::get<Enumerator>(value).index);
    else
        member = std::get<Member>(value);
}

FieldNames names_of(Precision) noexcept {
    return precision_names();
}
FieldNames names_of(MaskKind) noexcept {
    return mask_kind_names();
}
FieldNames names_of(MaskPattern) noexcept {
    return mask_pattern_names();
}
FieldNames names_of(AlibiSlopes) noexcept {
    return alibi_slopes_names();
}
FieldNames names_of(RopeStyle) noexcept {
    return rope_style_names();
}
FieldNames names_of(AxisOrder) noexcept {
    return axis_order_names();
}
FieldNames words_of(MaskKind) noexcept {
    return mask_kind_words();
}
FieldNames words_of(auto other) noexcept {
    return names_of(other);
}

template <auto... path>
using Member = std::remove_reference_t<decltype(follow<path...>(std::declval<Problem&>()))>;

template <auto... path>
FieldNames names() noexcept {
    if constexpr (std::is_enum_v<Member<path...>>) return names_of(Member<path...>{});
    return {};
}

template <auto... path>
FieldNames words() noexcept {
    if constexpr (std::is_enum_v<Member<path...>>) return words_of(Member<path...>{});
    return {};
}

template <auto... path>
constexpr FieldPlace at = {get<path...>, set<path...>, names<path...>, words<path...>};

constexpr AbiPlace flag(std::uint32_t bit) {
    return {"flags", AbiPlace::Flag{bit}};
}

bool has_groups(const Problem& p) {
    return p.heads_q != p.heads_kv;
}
bool has_other_values(const Problem& p) {
    return value_dim(p) != p.dim_qk;
}
template <MaskKind kind>
bool has_mask(const Problem& p) {
    return p.mask.tensor.kind == kind;
}
bool has_pages(const Problem& p) {
    return p.cache.present && p.cache.page_size != 0;
}
template <Precision Problem::*format>
bool differs_from_q(const Problem& p) {
    return p.*format != p.format_q;
}
bool wants_lse(const Problem& p) {
    return p.want_lse;
}
bool is_negative(const Problem& p) {
    return p.scale && *p.scale < 0;
}
bool gives_lse_grad(const Problem& p) {
    return p.want_grad && p.want_lse && p.lse_grad;
}

/// The plainest; near 0 and near 1; multiples of 1/256 but for one. 1-p is exact in f32.
constexpr double dropout_rates[] = {0.25,      0.5,    0.125,   0x1p-10, 0.75,
                                    0.1015625, 0x1p-6, 0.90625, 0.984375};

using enum LineForm;
using P = Problem;
using A = attest_problem;
using F = Feature;

// clang-format off
constexpr Field table[] = {
    {"batch", "b", axis, at<&P::batch>, "sequences; 1 where they are packed", {"batch", &A::batch}},
    {"heads_q", "hq", axis, at<&P::heads_q>, "query heads", {"heads_q", &A::heads_q}},
    {"heads_kv", "hkv", axis, at<&P::heads_kv>, "key/value heads; divides heads_q",
     {"heads_kv", &A::heads_kv}, {F::gqa, has_groups}},
    {"len_q", "tq", axis, at<&P::len_q>, "queries; the most where sequences differ",
     {"len_q", &A::len_q}},
    {"len_kv", "tk", axis, at<&P::len_kv>,
     "keys, a cache's included; the most where sequences differ", {"len_kv", &A::len_kv}},
    {"dim_qk", "d", axis, at<&P::dim_qk>, "channels of a query and a key", {"dim_qk", &A::dim_qk}},
    {"dim_v", "dv", extent, at<&P::dim_v>,
     "channels of a value; 0: as dim_qk, which a kernel is told", {"dim_v", &A::dim_v},
     {F::dim_v, has_other_values}},
    {"causal", "causal", value, at<&P::mask, &Mask::causal>,
     "no later key; how queries stand over keys is the manifest's dialect", {"causal", &A::causal},
     {F::causal}},
    {"window", "window", value, at<&P::mask, &Mask::window, &Window::left>,
     "keys before its own that a query sees; -1: all", {"window_left", &A::window_left},
     {F::window}},
    {"window", "", next, at<&P::mask, &Mask::window, &Window::right>,
     "keys after its own that a query sees; -1: all", {"window_right", &A::window_right},
     {F::window}},
    {"mask.kind", "mask", value, at<&P::mask, &Mask::tensor, &MaskTensor::kind>,
     "a mask given as a tensor", {"mask_kind", &A::mask_kind},
     {F::mask_bool, has_mask<MaskKind::boolean>}, {F::mask_additive, has_mask<MaskKind::additive>}},
    {"mask.pattern", "pattern", option, at<&P::mask, &Mask::tensor, &MaskTensor::pattern>,
     "which keys it hides"},
    {"mask.tile", "tile", option, at<&P::mask, &Mask::tensor, &MaskTensor::tile>,
     "keys a tile of the pattern"},
    {"mask.floor", "floor", option, at<&P::mask, &Mask::tensor, &MaskTensor::floor>,
     "what hides a key in an additive mask; 0: -inf"},
    {"mask.shared", "batch", listed, at<&P::mask, &Mask::tensor, &MaskTensor::shared_batch>,
     "one mask for every sequence"},
    {"mask.shared", "heads", listed, at<&P::mask, &Mask::tensor, &MaskTensor::shared_heads>,
     "one mask for every head"},
    {"mask.shared", "queries", listed, at<&P::mask, &Mask::tensor, &MaskTensor::shared_queries>,
     "one row of the mask for every query"},
    {"mask.shared", "keys", listed, at<&P::mask, &Mask::tensor, &MaskTensor::shared_keys>,
     "one number of the mask for every key of a row"},
    {"lens_q", "lens_q", value, at<&P::mask, &Mask::lens_q>, "queries of each sequence", {},
     {F::lens_q}},
    {"lens_kv", "lens_kv", value, at<&P::mask, &Mask::lens_kv>, "keys of each sequence", {},
     {F::lens_kv}},
    {"documents_q", "docs_q", value, at<&P::mask, &Mask::documents_q>,
     "queries of each packed sequence", flag(ATTEST_FLAG_PACKED), {F::documents}},
    {"documents_kv", "docs_kv", value, at<&P::mask, &Mask::documents_kv>,
     "keys of each packed sequence", {}, {F::documents}},
    {"scale", "scale", value, at<&P::scale>,
     "of q.k; 1/sqrt(dim_qk) where none is given, rounded to f32 unless format_q is f64",
     {"scale", &A::scale}, {F::scale}, {F::negative_scale, is_negative}},
    {"softcap", "softcap", value, at<&P::softcap>, "c of c tanh(S/c); 0: none",
     {"softcap", &A::softcap}, {F::softcap}},
    {"sink", "sink", value, at<&P::sink>, "one more logit a query head in the denominator",
     {"sink", &A::sink}, {F::sink}},
    {"alibi", "alibi", value, at<&P::alibi>, "a bias that falls with the distance",
     {"alibi", &A::alibi}, {F::alibi}},
    {"alibi_slopes", "slopes", value, at<&P::alibi_slopes>,
     "2^(-8(h+1)/H) for head h of H; what the ALiBi paper takes where H is no power of two; any"},
    {"rope.style", "rope", value, at<&P::rope, &Rope::style>,
     "rotary positions: channels (0,1), (2,3), ... are pairs, or (0,d/2), (1,d/2+1), ...",
     {"rope_kind", &A::rope_kind}, {F::rope}},
    {"rope.base", "base", option, at<&P::rope, &Rope::base>,
     "pair c of dims turns by position * base^(-2c/dims)", {"rope_base", &A::rope_base}},
    {"rope.dims", "dims", option, at<&P::rope, &Rope::dims>,
     "channels that turn; 0: all, which a kernel is told", {"rope_dims", &A::rope_dims}},
    {"rope.offset", "offset", option, at<&P::rope, &Rope::offset>, "position of key 0",
     {"rope_offset", &A::rope_offset}},
    {"dropout.p", "dropout", value, at<&P::dropout, &Dropout::p>,
     "share of weights that are dropped", {"dropout_p", &A::dropout_p}, {F::dropout}, {},
     dropout_rates},
    {"dropout.seed", "seed", option, at<&P::dropout, &Dropout::seed>, "which ones",
     {"dropout_seed", &A::dropout_seed}},
    {"cache", "cache", value, at<&P::cache, &Cache::present>,
     "keys were there before; query i stands at position cache_len + i", {}, {F::cache}},
    {"cache.len", "", next, at<&P::cache, &Cache::len>,
     "how many; with the queries' own they are len_kv", {"cache_len", &A::cache_len}},
    {"cache.page_size", "page", option, at<&P::cache, &Cache::page_size>,
     "keys a page; 0: contiguous", {"page_size", &A::page_size}, {F::paged, has_pages}},
    {"cache.ring", "ring", option, at<&P::cache, &Cache::ring>,
     "the last keys alone, each in slot position mod capacity", flag(ATTEST_FLAG_RING), {F::ring}},
    {"cache.keys_rotated", "rotated", option, at<&P::cache, &Cache::keys_rotated>,
     "RoPE is already applied to the cached keys", flag(ATTEST_FLAG_KEYS_ROTATED),
     {F::keys_rotated}},
    {"splits", "splits", value, at<&P::splits>,
     "ranges of keys worked on apart; 0: the kernel's choice", {"splits", &A::splits}, {F::splits}},
    {"layout_q.order", "layout_q", value, at<&P::layout_q, &Layout::order>,
     "order of axes in memory of q, and of the mask", {}, {F::layout}},
    {"layout_q.row_pad", "pad", option, at<&P::layout_q, &Layout::row_pad>,
     "elements of poison after each innermost row", {}, {F::layout}},
    {"layout_q.offset", "offset", option, at<&P::layout_q, &Layout::offset>,
     "elements of poison before the first one", {}, {F::layout}},
    {"layout_k.order", "layout_k", value, at<&P::layout_k, &Layout::order>, "of k", {},
     {F::layout}},
    {"layout_k.row_pad", "pad", option, at<&P::layout_k, &Layout::row_pad>,
     "elements of poison after each innermost row", {}, {F::layout}},
    {"layout_k.offset", "offset", option, at<&P::layout_k, &Layout::offset>,
     "elements of poison before the first one", {}, {F::layout}},
    {"layout_v.order", "layout_v", value, at<&P::layout_v, &Layout::order>, "of v", {},
     {F::layout}},
    {"layout_v.row_pad", "pad", option, at<&P::layout_v, &Layout::row_pad>,
     "elements of poison after each innermost row", {}, {F::layout}},
    {"layout_v.offset", "offset", option, at<&P::layout_v, &Layout::offset>,
     "elements of poison before the first one", {}, {F::layout}},
    {"layout_o.order", "layout_o", value, at<&P::layout_o, &Layout::order>, "of o, and of the LSE",
     {}, {F::layout}},
    {"layout_o.row_pad", "pad", option, at<&P::layout_o, &Layout::row_pad>,
     "elements of poison after each innermost row", {}, {F::layout}},
    {"layout_o.offset", "offset", option, at<&P::layout_o, &Layout::offset>,
     "elements of poison before the first one", {}, {F::layout}},
    {"format_q", "", name, at<&P::format_q>, "of q", {"format_q", &A::format_q}},
    {"format_kv", "kv", like_q, at<&P::format_kv>, "of k and v", {"format_kv", &A::format_kv},
     {F::mixed_formats, differs_from_q<&P::format_kv>}},
    {"format_o", "out", like_q, at<&P::format_o>, "of o", {"format_o", &A::format_o},
     {F::mixed_formats, differs_from_q<&P::format_o>}},
    {"want_lse", "no_lse", value, at<&P::want_lse>, "the log-sum-exp is asked for",
     {"want_lse", &A::want_lse}, {F::lse, wants_lse}},
    {"want_grad", "grad", value, at<&P::want_grad>, "the gradients are asked for",
     {"want_grad", &A::want_grad}},
    {"lse_grad", "lse_grad", value, at<&P::lse_grad>,
     "backward is given the gradient of the log-sum-exp beside that of the output",
     flag(ATTEST_FLAG_D_LSE), {F::d_lse, gives_lse_grad}},
};
// clang-format on

std::vector<std::span<const Field>> grouped() {
    std::vector<std::span<const Field>> groups;
    for (const Field* first = std::begin(table); first != std::end(table);) {
        const auto last = std::find_if(first, std::end(table), [&](const Field& field) {
            return field.head() != first->head();
        });
        groups.emplace_back(first, last);
        first = last;
    }
    return groups;
}

}  // namespace

bool Field::is_default(const Problem& problem) const {
    static const Problem plain;
    return place.get(problem) == place.get(plain);
}

std::span<const Field> fields() noexcept {
    return table;
}

std::span<const std::span<const Field>> field_groups() {
    static const std::vector<std::span<const Field>> groups = grouped();
    return groups;
}

}  // namespace attest
