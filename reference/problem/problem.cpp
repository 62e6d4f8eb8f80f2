#include "reference/problem/problem.hpp"

#include <cmath>
#include <limits>

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

bool is_paged(const Problem& p) {
    return p.cache.present && p.cache.page_size > 0;
}

Shape keys(const Problem& p, std::int64_t dim) {
    return {p.batch, p.heads_kv, p.len_kv, dim};
}

Shape mask_shape(const Problem& p) {
    const MaskTensor& m = p.mask.tensor;
    return {m.shared_batch ? 1 : p.batch, m.shared_heads ? 1 : p.heads_q,
            m.shared_queries ? 1 : p.len_q, m.shared_keys ? 1 : p.len_kv};
}

std::optional<Shape> only_if(bool condition, const Shape& shape) {
    return condition ? std::optional<Shape>(shape) : std::nullopt;
}

/// The tensors only some features bring.
std::optional<Shape> optional_shape(const Problem& p, Role role) {
    const Mask& m = p.mask;
    const bool documents = !m.documents_q.empty();
    const bool lens = !m.lens_q.empty() || !m.lens_kv.empty();
    const auto edges = [](const auto& lengths) {
        return Shape{static_cast<std::int64_t>(lengths.size()) + 1, 1, 1, 1};
    };
    switch (role) {
        case Role::lse:
            return only_if(p.want_lse, {p.batch, p.heads_q, p.len_q, 1});
        case Role::mask:
            return only_if(m.tensor.kind != MaskKind::none, mask_shape(p));
        case Role::lens_q:
            return only_if(!m.lens_q.empty(), {p.batch, 1, 1, 1});
        case Role::lens_kv:
            return only_if(!m.lens_kv.empty(), {p.batch, 1, 1, 1});
        case Role::cu_seqlens_q:
            return only_if(documents, edges(m.documents_q));
        case Role::cu_seqlens_kv:
            return only_if(documents, edges(m.documents_kv));
        case Role::block_table: {
            if (!is_paged(p)) return std::nullopt;
            return Shape{p.batch, (p.len_kv + p.cache.page_size - 1) / p.cache.page_size, 1, 1};
        }
        // cache.len + i is wrong where sequences differ: then positions are spelt out.
        case Role::positions:
            return only_if(p.cache.present && lens, {p.batch, p.len_q, 1, 1});
        case Role::alibi_slopes:
            return only_if(p.alibi, {p.heads_q, 1, 1, 1});
        case Role::sinks:
            return only_if(p.sink, {p.heads_q, 1, 1, 1});
        case Role::k_new:
            return only_if(p.cache.present, {p.batch, p.heads_kv, p.len_q, p.dim_qk});
        case Role::v_new:
            return only_if(p.cache.present, {p.batch, p.heads_kv, p.len_q, value_dim(p)});
        case Role::dropout_keep:
            return only_if(p.dropout.p > 0, {p.batch, p.heads_q, p.len_q, p.len_kv});
        default:
            return std::nullopt;
    }
}

/// The first query of a sequence with n keys stands at n - len_q or later, and sees no key before
/// n - len_q - left. Not one slot more, so that a key in the wrong one takes another's place.
std::int64_t ring_capacity(const Problem& p) {
    const std::int64_t left = p.mask.window.left, before = p.len_kv - p.len_q;
    return left >= 0 && left < before ? std::max<std::int64_t>(left + p.len_q, 1) : p.len_kv;
}

}  // namespace

std::int64_t value_dim(const Problem& problem) noexcept {
    return problem.dim_v == 0 ? problem.dim_qk : problem.dim_v;
}

double effective_scale(const Problem& problem) noexcept {
    if (problem.scale) return *problem.scale;
    // Square root and quotient round correctly, so this is one double on every machine.
    const double scale = 1.0 / std::sqrt(static_cast<double>(problem.dim_qk));
    return problem.format_q == Precision::f64 ? scale : round_to(scale, Precision::f32);
}

std::int64_t group_size(const Problem& problem) noexcept {
    return problem.heads_q / problem.heads_kv;
}

bool has_positions(const Problem& problem) noexcept {
    return problem.alibi || problem.rope.style != RopeStyle::none;
}

bool positions_are_indices(const Problem& problem) noexcept {
    return has_positions(problem) && !problem.cache.present;
}

std::int64_t score_count(const Problem& problem) noexcept {
    std::int64_t count = problem.batch;
    for (const std::int64_t axis : {problem.heads_q, problem.len_q, problem.len_kv}) {
        if (axis != 0 && count > std::numeric_limits<std::int64_t>::max() / axis)
            return std::numeric_limits<std::int64_t>::max();
        count *= axis;
    }
    return count;
}

std::optional<Shape> cache_shape_of(const Problem& p, Role role) {
    if (!p.cache.present || (role != Role::k && role != Role::v)) return std::nullopt;
    const std::int64_t dim = role == Role::k ? p.dim_qk : value_dim(p);
    if (p.cache.ring) return Shape{p.batch, p.heads_kv, ring_capacity(p), dim};
    if (p.cache.page_size == 0) return std::nullopt;
    constexpr std::int64_t spare_pages = 2;
    const std::int64_t a_sequence = (p.len_kv + p.cache.page_size - 1) / p.cache.page_size;
    return Shape{p.batch * a_sequence + spare_pages, p.heads_kv, p.cache.page_size, dim};
}

std::optional<Shape> shape_of(const Problem& p, Role role) {
    const auto gradient = [&](Role of) { return p.want_grad ? shape_of(p, of) : std::nullopt; };
    switch (role) {
        case Role::q:
            return Shape{p.batch, p.heads_q, p.len_q, p.dim_qk};
        case Role::k:
            return keys(p, p.dim_qk);
        case Role::v:
            return keys(p, value_dim(p));
        case Role::o:
            return Shape{p.batch, p.heads_q, p.len_q, value_dim(p)};
        case Role::d_o:
            return gradient(Role::o);
        case Role::d_lse:
            return p.lse_grad ? gradient(Role::lse) : std::nullopt;
        case Role::d_q:
            return gradient(Role::q);
        case Role::d_k:
            return gradient(Role::k);
        case Role::d_v:
            return gradient(Role::v);
        case Role::d_sinks:
            return gradient(Role::sinks);
        case Role::d_slopes:
            return gradient(Role::alibi_slopes);
        case Role::d_mask:
            return p.mask.tensor.kind == MaskKind::additive ? gradient(Role::mask) : std::nullopt;
        default:
            return optional_shape(p, role);
    }
}

ElementType type_of(const Problem& p, Role role) {
    switch (role) {
        case Role::q:
        case Role::d_q:
        case Role::d_mask:
            return element_type(p.format_q);
        case Role::k:
        case Role::v:
        case Role::k_new:
        case Role::v_new:
        case Role::d_k:
        case Role::d_v:
            return element_type(p.format_kv);
        case Role::o:
        case Role::d_o:
            return element_type(p.format_o);
        case Role::lse:
        case Role::d_lse:
            return p.format_q == Precision::f64 ? ElementType::f64 : ElementType::f32;
        case Role::mask:
            return p.mask.tensor.kind == MaskKind::boolean ? ElementType::u8
                                                           : element_type(p.format_q);
        case Role::dropout_keep:
            return ElementType::u8;
        case Role::alibi_slopes:
        case Role::sinks:
        case Role::d_sinks:
        case Role::d_slopes:
        case Role::k_scale:
        case Role::v_scale:
            return ElementType::f32;
        case Role::lens_q:
        case Role::lens_kv:
        case Role::cu_seqlens_q:
        case Role::cu_seqlens_kv:
        case Role::block_table:
        case Role::positions:
            return ElementType::i32;
    }
    return ElementType::f32;
}

}  // namespace attest
