// Queries that stand elsewhere than their sequence says. Where a query stands is one number in such
// a kernel: masks, biases and rotation all go by it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

/// What a kernel counts a query's position for; it may count elsewhere for some of it alone.
struct PlacedPart {
    bool masks = false, alibi = false, rope = false;
};

std::string parts_of(PlacedPart in) {
    std::vector<std::string> list;
    if (in.masks) list.emplace_back("masks");
    if (in.alibi) list.emplace_back("ALiBi");
    if (in.rope) list.emplace_back("rotation");
    return fmt::format("{}", fmt::join(list, " and "));
}

/// Keys of its document before row 0 of it, where a token's place is that on its axis.
std::int64_t on_packed_axes(const Problem& p, const MaskPlace& at, std::int64_t offset) {
    if (p.mask.documents_q.empty()) return at.len_kv - at.len_q;
    return (at.query - at.row) + offset - (at.key - at.column);
}

/// As if each so many queries were a call of their own, the last of whose queries sees all keys.
template <std::int64_t each>
std::int64_t in_chunks(const Problem&, const MaskPlace& at) {
    const std::int64_t first = at.row / each * each;
    return at.len_kv - std::min(first + each, at.len_q);
}

/// Another number of keys before row 0 of a place's sequence or document.
struct Origin {
    const char *id, *says;
    std::int64_t (*keys)(const Problem& problem, const MaskPlace& place);
};
constexpr Origin origins[] = {
    {"queries_longest", "queries placed by the lengths of the axes, not each sequence's own",
     [](const Problem& p, const MaskPlace&) { return p.len_kv - p.len_q; }},
    {"queries_top_left", "queries placed as if no key stood before the first",
     [](const Problem&, const MaskPlace&) { return std::int64_t{0}; }},
    {"queries_longest_keys", "queries placed by the length of the axis of keys, not their own",
     [](const Problem& p, const MaskPlace& at) { return p.len_kv - at.len_q; }},
    {"queries_longest_queries", "queries placed by the length of their axis, not their own",
     [](const Problem& p, const MaskPlace& at) { return at.len_kv - p.len_q; }},
    {"queries_of_first", "queries placed by the lengths of the first sequence",
     [](const Problem& p, const MaskPlace&) {
         return length_of(p.mask.lens_kv, p.len_kv, 0) - length_of(p.mask.lens_q, p.len_q, 0);
     }},
    {"queries_behind_cache",
     "queries placed behind all keys that a cache holds for any sequence, if it holds some",
     [](const Problem& p, const MaskPlace& at) {
         return p.cache.present && p.cache.len > 0 ? p.cache.len : at.len_kv - at.len_q;
     }},
    {"queries_behind_keys",
     "queries placed behind all keys, their own too, where a cache holds some",
     [](const Problem& p, const MaskPlace& at) {
         return at.len_kv - (p.cache.present && p.cache.len > 0 ? 0 : at.len_q);
     }},
    {"queries_packed",
     "queries placed on the axes of packed tensors from their end, not in their document",
     [](const Problem& p, const MaskPlace& at) {
         return on_packed_axes(p, at, p.len_kv - p.len_q);
     }},
    {"queries_packed_top_left",
     "queries placed on the axes of packed tensors, not in their document",
     [](const Problem& p, const MaskPlace& at) { return on_packed_axes(p, at, 0); }},
    {"queries_in_chunks_16", "each 16 queries placed as if they were the last", in_chunks<16>},
    {"queries_in_chunks_32", "each 32 queries placed as if they were the last", in_chunks<32>},
    {"queries_in_chunks_64", "each 64 queries placed as if they were the last", in_chunks<64>},
    {"queries_in_chunks_128", "each 128 queries placed as if they were the last", in_chunks<128>},
    {"queries_in_chunks_256", "each 256 queries placed as if they were the last", in_chunks<256>},
    {"queries_not_before", "queries placed no earlier than their own number",
     [](const Problem&, const MaskPlace& at) {
         return std::max<std::int64_t>(at.len_kv - at.len_q, 0);
     }},
};

/// Causal mask and window from this origin.
Rules placed_rules(const Specification& s, const Origin& origin) {
    Rules rules = rules_of(s);
    rules.also_hidden = [&problem = s.problem, &origin, own = rules](const MaskPlace& p) {
        Rules placed = own;
        placed.top_left = placed.window_top_left = false;
        placed.causal_offset = placed.window_offset = origin.keys(problem, p);
        return hidden(placed, p);
    };
    rules.causal = false;
    rules.window = {};
    return rules;
}

// None where it gives this nothing to change.
std::optional<Specification> placed(const Specification& s, const Origin& origin, PlacedPart in) {
    const Problem& p = s.problem;
    bool differs = false;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t i = 0; i < p.len_q; ++i) {
            const MaskPlace at = row_of(s, b, i);
            differs = differs || before_row(s, at) != origin.keys(p, at);
        }
    const bool diagonal = p.mask.causal || p.mask.window.limited();
    const bool shows = (in.masks && diagonal) || (in.alibi && p.alibi) || (in.rope && has_rope(s));
    if (!differs || !shows) return std::nullopt;
    const Rules rules = in.masks ? placed_rules(s, origin) : rules_of(s);
    Specification out =
        in.alibi && p.alibi
            ? with_distances(
                  s, rules,
                  [&](const MaskPlace& at) {
                      return static_cast<double>(std::abs(at.row + origin.keys(p, at) - at.column));
                  })
            : with_rules(s, rules);
    if (in.rope && has_rope(s))
        out.inputs.put(Role::q, turned(out, Role::q, [&](std::int64_t b, std::int64_t i) {
                           const MaskPlace at = row_of(s, b, i);
                           return static_cast<double>(origin.keys(p, at) - before_row(s, at));
                       }));
    return out;
}

Deviation queries_placed(const Origin& origin, PlacedPart in) {
    std::string id = origin.id;
    const bool all = in.masks && in.alibi && in.rope;
    for (const auto& [counted, name] :
         {std::pair{in.masks, "_masks"}, {in.alibi, "_alibi"}, {in.rope, "_rope"}})
        if (counted && !all) id += name;
    return {.id = std::move(id),
            .says = std::string(origin.says) + ", in " + parts_of(in),
            .respecify = [&origin, in](const Specification& s) { return placed(s, origin, in); }};
}

// Rows past a sequence's queries like any other, where its own lengths place them. Without lengths
// of queries the reference counts all of the axis: so many places further back.
Specification past_their_length(const Specification& s) {
    const Problem& p = s.problem;
    Specification out = with_rules(s, rules_of(s));
    out.problem.mask.lens_q.clear();
    out.inputs.erase(Role::lens_q);
    if (!p.alibi) return out;
    return with_bias(out, [&](const MaskPlace& at) {
        const std::int64_t by_axis = at.row + at.len_kv - p.len_q - at.column;
        const std::int64_t further = p.len_q - length_of(p.mask.lens_q, p.len_q, at.batch);
        return -s.inputs[Role::alibi_slopes].get(at.head) *
               static_cast<double>(std::abs(by_axis + further) - std::abs(by_axis));
    });
}

// Whatever their weights, an output lies between the least and the largest value of its channel.
bound::ExpectedElement some_mean(const Specification& s, std::int64_t b, std::int64_t h,
                                 std::int64_t c) {
    const Tensor& v = s.inputs[Role::v];
    double least = infinite, most = -infinite;
    for (std::int64_t j = 0; j < length_of(s.problem.mask.lens_kv, s.problem.len_kv, b); ++j) {
        least = std::min(least, v.at(b, h / group_size(s.problem), j, c));
        most = std::max(most, v.at(b, h / group_size(s.problem), j, c));
    }
    const double half = (most - least) / 2, size = std::max(std::abs(least), std::abs(most));
    if (!std::isfinite(size)) return {0, 0, infinite};
    constexpr double rounding = 0x1p-7;  // of whatever format
    return {least + half, 0, half + rounding * size};
}

// Such rows stand behind the last key, where tables of angles may have ended: with a rotation their
// scores are any. Of values in pages nothing is said.
std::optional<bound::Expected> rows_past_length(const Specification& s,
                                                const bound::Expected& truth) {
    const Problem& p = s.problem;
    if (p.mask.lens_q.empty()) return std::nullopt;
    const Specification own = past_their_length(s);
    bound::Expected out = oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    const std::int64_t dim = value_dim(p);
    for (std::size_t n = 0; n < out.row_empty.size(); ++n) {
        const auto row = static_cast<std::int64_t>(n);
        const std::int64_t i = row % p.len_q, h = row / p.len_q % p.heads_q;
        const std::int64_t b = row / p.len_q / p.heads_q;
        const bool query = i < length_of(p.mask.lens_q, p.len_q, b);
        if (!has_rope(s) || (!query && out.row_empty[n] != 0)) continue;
        for (std::int64_t c = 0; c < dim; ++c) {
            const auto k = static_cast<std::size_t>(row * dim + c);
            out.output[k] = query                   ? truth.output[k]
                            : p.cache.page_size > 0 ? bound::ExpectedElement{0, 0, infinite}
                                                    : some_mean(s, b, h, c);
        }
        if (n < out.lse.size())
            out.lse[n] = query ? truth.lse[n] : bound::ExpectedElement{0, 0, infinite};
    }
    return out;
}

Deviation queries_past_their_length() {
    return formula_deviation("queries_past_length", "the rows past a sequence's queries too",
                             rows_past_length);
}

std::vector<Deviation> queries_placed_in_parts(const Origin& origin) {
    std::vector<Deviation> list;
    // No more is claimed than what shows: a part alone stands before those that it is in.
    for (const PlacedPart in : {PlacedPart{.alibi = true},
                                {.rope = true},
                                {.masks = true},
                                {.alibi = true, .rope = true},
                                {.masks = true, .alibi = true},
                                {.masks = true, .rope = true},
                                {.masks = true, .alibi = true, .rope = true}})
        list.push_back(queries_placed(origin, in));
    return list;
}

}  // namespace

std::vector<Deviation> placed_queries() {
    std::vector<Deviation> list = queries_placed_in_parts(origins[0]);
    std::erase_if(list, [](const Deviation& d) {
        return d.id == "queries_longest_masks";  // "diagonal_longest" says it
    });
    list.push_back(queries_past_their_length());
    return list;
}

std::vector<Deviation> queries_placed_elsewhere() {
    std::vector<Deviation> list;
    for (const Origin& origin : std::span(origins).subspan(1))
        std::ranges::move(queries_placed_in_parts(origin), std::back_inserter(list));
    return list;
}

}  // namespace attest::diagnosis
