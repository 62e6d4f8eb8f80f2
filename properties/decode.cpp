// Decode: a sequence continued through a KV cache gives the rows that one causal prefill gives,
// however it is cut, paged or batched.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/property.hpp"
#include "properties/law/steps.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

constexpr FeatureSet full_sequences =
    attention.without(Feature::lens_q).without(Feature::documents);

/// Every query stands behind the sequence's start: a step of it is a step of a decode.
bool continues(const Problem& p) {
    const auto& lens = p.mask.lens_kv;
    return p.len_q >= 1 && p.len_kv >= p.len_q &&
           std::all_of(lens.begin(), lens.end(), [&](auto keys) { return keys >= p.len_q; });
}
bool several_queries(const Problem& p) {
    return p.len_q >= 2 && continues(p);
}
bool past_keys(const Problem& p) {
    return p.cache.len >= 1;
}
bool several_sequences(const Problem& p) {
    return p.batch >= 2;
}

constexpr const char* source = "Pope et al. 2022, Efficiently scaling transformer inference";

Property prefill() {
    return {
        .id = "decode.prefill",
        .statement = "Token-by-token decoding gives the rows of the full causal prefill.",
        .statement_short = "token-by-token decode = causal prefill, row by row",
        .why =
            "Under a causal mask query i sees keys 0 .. i + Tk - Tq, and a decode step at that "
            "position finds just these keys in its cache, at the same positions: the same O_i and "
            "L_i. The step may split and sum differently, so the two agree within the sum of their "
            "bounds.",
        .source = source,
        .compares = Compares::bound,
        .cases = {.allow = full_sequences,
                  .require = FeatureSet(Feature::causal),
                  .cost = 2,
                  .admits = continues},
        .check = steps_of_one,
        .turned_red_by = {planted::newest_key_not_cached()},
    };
}

Property chunked() {
    return {
        .id = "decode.chunked",
        .statement =
            "Cutting the queries into chunks, also of several tokens, gives the same rows.",
        .statement_short = "any chunking of the prefill gives the same rows",
        .why =
            "As decode.prefill: a chunk that ends at query e finds keys 0 .. e + Tk - Tq, and each "
            "of its rows sees the keys up to its own position.",
        .source = "Agrawal et al. 2023, Sarathi (chunked prefill)",
        .compares = Compares::bound,
        .cases = {.allow = full_sequences,
                  .require = FeatureSet(Feature::causal),
                  .cost = 2,
                  .admits = several_queries},
        .check = steps_of_chunks,
        .turned_red_by = {planted::newest_key_not_cached()},
    };
}

/// Query i of a step is turned as at position i: turned back by the keys cached before it, in
/// double so that nothing is rounded on the way.
void queries_rotated_from_zero(Question& q) {
    Problem& p = q.problem;
    if (!p.cache.present || p.rope.style == RopeStyle::none) return;
    const Visibility visibility(q.problem, q.dialect, q.inputs);
    const std::int64_t dims = p.rope.dims == 0 ? p.dim_qk : p.rope.dims;
    const bool halves = p.rope.style == RopeStyle::half;
    Tensor turned(ElementType::f64, q.inputs[Role::q].shape());
    for (const Row& row : all_rows(p)) {
        const auto [b, h, i] = row;
        const auto cached = static_cast<double>(visibility.length_kv(b) - visibility.length_q(b));
        for (std::int64_t c = 0; c < p.dim_qk; ++c)
            turned.put(b, h, i, c, q.inputs[Role::q].at(b, h, i, c));
        for (std::int64_t c = 0; c < dims / 2; ++c) {
            const std::int64_t x = halves ? c : 2 * c, y = halves ? c + dims / 2 : 2 * c + 1;
            const double angle = -cached * std::pow(p.rope.base, -2.0 * static_cast<double>(c) /
                                                                     static_cast<double>(dims));
            const double qx = turned.at(b, h, i, x), qy = turned.at(b, h, i, y);
            turned.put(b, h, i, x, qx * std::cos(angle) - qy * std::sin(angle));
            turned.put(b, h, i, y, qx * std::sin(angle) + qy * std::cos(angle));
        }
    }
    q.inputs.put(Role::q, std::move(turned));
    p.format_q = Precision::f64;
}

Property offset() {
    return {
        .id = "decode.offset",
        .statement = "A decoding query is rotated at its place behind the cached keys, not at 0.",
        .statement_short = "RoPE positions start at the cache's length",
        .why =
            "Query i of a sequence with n_b keys and q_b queries stands at n_b - q_b + i. What a "
            "kernel answers that restarts at 0 is the square problem without cache, whose query i "
            "stands at i. Where the references of the two are apart, no row of the output may lie "
            "in "
            "the second one's intervals.",
        .source = "Su et al. 2021, RoFormer, eq. 16",
        .compares = Compares::property,
        .cases = {.allow = full_sequences.without(Feature::mask_additive)
                               .without(Feature::alibi)
                               .without(Feature::keys_rotated),
                  .require = FeatureSet(Feature::rope, Feature::cache),
                  .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int,
                            ValueKind::logit50},
                  .cost = 8,
                  .len_max = 300,
                  .limited_because = "the other answer it excludes is that of all tokens at once",
                  .admits = past_keys},
        .check = always<positions_continue>,
        .turned_red_by = {{.id = "queries_rotated_from_zero", .asks = queries_rotated_from_zero}},
    };
}

Property paged() {
    return {
        .id = "decode.paged",
        .statement =
            "A paged cache gives the rows of a contiguous one; renaming physical pages changes no "
            "bit.",
        .statement_short = "paged = contiguous; renaming pages changes no bit",
        .why =
            "The block table says where a key lies, not what it is. Renamed pages change addresses "
            "alone, so a deterministic kernel repeats its arithmetic; another page size or none "
            "may cut the sum elsewhere, within the bounds. Page tails and pages nobody names hold "
            "NaN.",
        .source = "Kwon et al. 2023, PagedAttention",
        .compares = Compares::bits,
        .cases = {.allow = attention,
                  .require = FeatureSet(Feature::cache, Feature::paged),
                  .cost = 2},
        .check = always<pages_do_not_matter>,
        .turned_red_by = {planted::pages_in_physical_order()},
    };
}

Property batch() {
    return {
        .id = "decode.batch",
        .statement = "Sequences of different lengths in one batch come out as if each were alone.",
        .statement_short = "each sequence of a ragged batch as if alone",
        .why =
            "A row depends on its own sequence. Alone, the axis lengths are the sequence's own, "
            "and a kernel may choose other tiles and splits: within the bounds.",
        .source = source,
        .compares = Compares::bound,
        .cases = {.allow = attention.without(Feature::documents),
                  .require_any = {FeatureSet(Feature::lens_kv), FeatureSet(Feature::lens_q),
                                  FeatureSet(Feature::cache),
                                  FeatureSet(Feature::cache, Feature::paged, Feature::lens_kv)},
                  .cost = 2,
                  .admits = several_sequences},
        .check = always<sequences_stand_alone>,
        .turned_red_by = {planted::first_sequence_doubled()},
    };
}

}  // namespace

std::vector<Property> decode() {
    return {prefill(), chunked(), offset(), paged(), batch()};
}

}  // namespace attest::law
