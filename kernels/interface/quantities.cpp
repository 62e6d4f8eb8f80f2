// The numbers of a problem that a kernel may take some of: their names, and where they stand.

#include "kernels/interface/takes.hpp"

namespace attest::kernel {
namespace {

template <typename T>
void change(T& number, const NumberChange& to) {
    number = static_cast<T>(to(static_cast<std::int64_t>(number)));
}
template <typename T>
void change(std::vector<T>& numbers, const NumberChange& to) {
    for (T& number : numbers) change(number, to);
}

void change_group(Problem& p, const NumberChange& to) {
    p.heads_q = p.heads_kv * to(group_size(p));
}
/// A kernel with groups of its own choice has them beside any number of key/value heads.
void change_heads(Problem& p, const NumberChange& to) {
    const std::int64_t group = group_size(p);
    change(p.heads_kv, to);
    p.heads_q = p.heads_kv * group;
}
/// What stands for another number is left as it is where that stays.
void change_meant(std::int64_t& number, std::int64_t meant, const NumberChange& to) {
    if (const std::int64_t changed = to(meant); changed != meant) number = changed;
}
void change_dim_v(Problem& p, const NumberChange& to) {
    change_meant(p.dim_v, value_dim(p), to);
}
void change_turned(Problem& p, const NumberChange& to) {
    if (p.rope.style != RopeStyle::none)
        change_meant(p.rope.dims, p.rope.dims == 0 ? p.dim_qk : p.rope.dims, to);
}
void change_page(Problem& p, const NumberChange& to) {
    if (p.cache.present) change(p.cache.page_size, to);
}
void change_splits(Problem& p, const NumberChange& to) {
    if (p.splits != 0) change(p.splits, to);
}
template <auto limit>
void change_window(Problem& p, const NumberChange& to) {
    if (p.mask.window.limited()) change(p.mask.window.*limit, to);
}
template <auto member>
void change_rope(Problem& p, const NumberChange& to) {
    if (p.rope.style != RopeStyle::none) change(p.rope.*member, to);
}
template <auto member>
void change_mask(Problem& p, const NumberChange& to) {
    change(p.mask.*member, to);
}
template <auto member>
void change_own(Problem& p, const NumberChange& to) {
    change(p.*member, to);
}

constexpr std::int64_t count_most = std::int64_t{1} << 31, dim_most = 1 << 16;
constexpr QuantityRow rows[quantity_count] = {
    {Quantity::batch, "batch", "batch", change_own<&Problem::batch>, {}, 1, count_most},
    {Quantity::heads_kv, "heads_kv", "key/value heads", change_heads, {}, 1, count_most},
    {Quantity::group, "group", "heads a group", change_group, Feature::gqa, 1, count_most},
    {Quantity::len_q, "len_q", "queries", change_own<&Problem::len_q>, {}, 0, count_most},
    {Quantity::len_kv, "len_kv", "keys", change_own<&Problem::len_kv>, {}, 0, count_most},
    {Quantity::dim_qk, "dim_qk", "head dimension", change_own<&Problem::dim_qk>, {}, 1, dim_most},
    {Quantity::dim_v, "dim_v", "value dimension", change_dim_v, Feature::dim_v, 1, dim_most},
    {Quantity::lens_q, "lens_q", "lens_q", change_mask<&Mask::lens_q>, Feature::lens_q},
    {Quantity::lens_kv, "lens_kv", "lens_kv", change_mask<&Mask::lens_kv>, Feature::lens_kv},
    {Quantity::page_size, "page_size", "page size", change_page, Feature::cache},
    {Quantity::window_left, "window_left", "window to the left", change_window<&Window::left>,
     Feature::window},
    {Quantity::window_right, "window_right", "window to the right", change_window<&Window::right>,
     Feature::window},
    {Quantity::rope_dims, "rope_dims", "channels that turn", change_turned, Feature::rope},
    {Quantity::rope_base, "rope_base", "rope base", change_rope<&Rope::base>, Feature::rope},
    {Quantity::rope_offset, "rope_offset", "rope offset", change_rope<&Rope::offset>,
     Feature::rope},
    {Quantity::splits, "splits", "splits", change_splits, Feature::splits},
};

}  // namespace

std::span<const QuantityRow> quantities() noexcept {
    return rows;
}

}  // namespace attest::kernel
