#include "properties/diagnosis/respecify.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attest::diagnosis {

namespace {

constexpr double minus_infinity = -infinite;

struct Document {
    std::size_t number;
    std::int64_t begin, length;
};

// The document an axis position lies in; none past the last.
std::optional<Document> document_at(const std::vector<std::int64_t>& lengths,
                                    std::int64_t position) {
    std::int64_t begin = 0;
    for (std::size_t n = 0; n < lengths.size(); ++n) {
        if (position < begin + lengths[n]) return Document{n, begin, lengths[n]};
        begin += lengths[n];
    }
    return std::nullopt;
}

MaskPlace place_of(const Specification& s, const Rules& rules, std::int64_t b, std::int64_t h,
                   std::int64_t i, std::int64_t j) {
    const Mask& mask = s.problem.mask;
    MaskPlace p{b,   h, i, j, i, j, length_of(mask.lens_q, s.problem.len_q, b), s.problem.len_kv,
                true};
    if (rules.key_lengths) p.len_kv = length_of(mask.lens_kv, s.problem.len_kv, b);
    if (rules.documents && !mask.documents_q.empty()) {
        const std::optional<Document> own = document_at(mask.documents_q, i);
        p.in_document = own.has_value();
        if (!own) return p;
        const auto keys = mask.documents_kv.begin();
        p.row = i - own->begin;
        p.column = j - std::accumulate(keys, keys + static_cast<std::ptrdiff_t>(own->number),
                                       std::int64_t{0});
        p.len_q = own->length;
        p.len_kv = mask.documents_kv[own->number];
    }
    return p;
}

void erase_written_out(Specification& s, const Rules& rules) {
    Mask& mask = s.problem.mask;
    mask.causal = false;
    mask.window = {};
    mask.documents_q.clear();
    mask.documents_kv.clear();
    s.inputs.erase(Role::cu_seqlens_q);
    s.inputs.erase(Role::cu_seqlens_kv);
    if (!rules.key_lengths || rules.key_tile > 1 || rules.keys_behind > 0) {
        mask.lens_kv.clear();
        s.inputs.erase(Role::lens_kv);
    }
}

}  // namespace

MaskPlace row_of(const Specification& s, std::int64_t b, std::int64_t i) {
    return place_of(s, rules_of(s), b, 0, i, 0);
}

std::int64_t before_row(const Specification& s, const MaskPlace& p) {
    return rules_of(s).top_left ? 0 : p.len_kv - p.len_q;
}

BlockOfRows block_of(const MaskPlace& p, std::int64_t rows, std::int64_t group) {
    const std::int64_t from = (p.row * group + p.head % group) / rows * rows;
    return {from / group, std::min((from + rows - 1) / group, p.len_q - 1), from % group};
}

std::string rows_of_block(std::int64_t rows, bool of_group) {
    return std::to_string(rows) + (of_group ? " rows of all heads of a group" : "");
}

bool has_mask(const Specification& s) {
    return s.problem.mask.tensor.kind != MaskKind::none;
}

double mask_value(const Specification& s, const MaskPlace& p) {
    const MaskTensor& kind = s.problem.mask.tensor;
    if (kind.kind == MaskKind::none || !s.inputs.has(Role::mask)) return 0;
    const double value = s.inputs[Role::mask].broadcast_at(p.batch, p.head, p.query, p.key);
    if (kind.kind == MaskKind::additive) return value;
    return value != 0 ? 0 : minus_infinity;
}

std::int64_t length_of(const std::vector<std::int64_t>& lens, std::int64_t axis, std::int64_t b) {
    return lens.empty() ? axis : lens[static_cast<std::size_t>(b)];
}

Tensor remake(
    ElementType type, const Shape& shape,
    const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& element) {
    Tensor tensor(type, shape);
    for (std::int64_t a = 0; a < shape[0]; ++a)
        for (std::int64_t b = 0; b < shape[1]; ++b)
            for (std::int64_t c = 0; c < shape[2]; ++c)
                for (std::int64_t d = 0; d < shape[3]; ++d)
                    tensor.put(a, b, c, d, element(a, b, c, d));
    return tensor;
}

Rules rules_of(const Specification& s) {
    Rules rules;
    rules.causal = s.problem.mask.causal;
    rules.window = s.problem.mask.window;
    rules.ends = s.dialect.window_ends;
    // A cache puts query i at position len_kv - len_q + i whatever the alignment.
    rules.top_left = s.dialect.causal == CausalAlignment::top_left && !s.problem.cache.present;
    rules.window_top_left = rules.top_left;
    return rules;
}

bool hidden(const Rules& rules, const MaskPlace& p) {
    if (!p.in_document) return true;
    if (p.column < -rules.keys_before) return true;
    const std::int64_t whole = (p.len_kv + rules.key_tile - 1) / rules.key_tile * rules.key_tile;
    if (rules.key_lengths && p.column >= whole + rules.keys_behind) return true;
    const std::int64_t bottom_right = p.row + p.len_kv - p.len_q;
    const std::int64_t causal_here = rules.top_left        ? p.row
                                     : rules.causal_offset ? p.row + *rules.causal_offset
                                                           : bottom_right;
    if (rules.causal && p.column > causal_here + rules.diagonal) return true;
    const std::int64_t here = rules.window_top_left ? p.row
                              : rules.window_offset ? p.row + *rules.window_offset
                                                    : bottom_right;
    // `exclusive` admits distances strictly below a positive limit, and distance 0 for a limit of
    // 0 (reference/problem/README.md).
    const auto beyond = [&](std::int64_t distance, std::int64_t limit) {
        if (limit < 0 || distance <= 0) return false;
        return rules.ends == WindowEnds::exclusive && limit > 0 ? distance >= limit
                                                                : distance > limit;
    };
    if (beyond(here - p.column, rules.window.left)) return true;
    if (beyond(p.column - here, rules.window.right)) return true;
    return rules.also_hidden && rules.also_hidden(p);
}

namespace {

Specification written_out(const Specification& s, const Rules& rules,
                          const std::function<double(const MaskPlace&)>& visible_bias,
                          const std::function<double(const MaskPlace&)>& hidden_bias) {
    Specification out = s;
    const Problem& problem = s.problem;
    out.inputs.put(
        Role::mask,
        remake(ElementType::f64, {problem.batch, problem.heads_q, problem.len_q, problem.len_kv},
               [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                   const MaskPlace p = place_of(s, rules, b, h, i, j);
                   const double tensor = rules.mask_tensor ? mask_value(s, p) : 0.0;
                   if (!hidden(rules, p) && tensor != minus_infinity)
                       return visible_bias ? tensor + visible_bias(p) : tensor;
                   return hidden_bias ? hidden_bias(p) : minus_infinity;
               }));
    out.problem.mask.tensor = {.kind = MaskKind::additive};
    erase_written_out(out, rules);
    return out;
}

}  // namespace

Specification with_rules(const Specification& s, const Rules& rules,
                         const std::function<double(const MaskPlace&)>& hidden_bias) {
    return written_out(s, rules, {}, hidden_bias);
}

Specification hiding(const Specification& s, const std::function<bool(const MaskPlace&)>& lost) {
    bool any = false;
    Rules rules = rules_of(s);
    rules.also_hidden = [&](const MaskPlace& p) {
        const bool here = lost(p);
        any = any || here;
        return here;
    };
    Specification out = with_rules(s, rules);
    return any ? out : s;
}

Specification with_bias(const Specification& s,
                        const std::function<double(const MaskPlace&)>& bias) {
    return written_out(s, rules_of(s), bias, {});
}

Specification with_distances(const Specification& s, const Rules& rules,
                             const std::function<double(const MaskPlace&)>& distance) {
    Specification plain = s;
    plain.problem.alibi = false;
    plain.inputs.erase(Role::alibi_slopes);
    const Tensor& slopes = s.inputs[Role::alibi_slopes];
    return written_out(plain, rules,
                       [&](const MaskPlace& p) { return -slopes.get(p.head) * distance(p); }, {});
}

Specification unmasked(const Specification& s) {
    Specification out = s;
    Rules none;
    none.key_lengths = false;
    erase_written_out(out, none);
    out.problem.mask.tensor = {};
    out.inputs.erase(Role::mask);
    return out;
}

std::optional<Specification> with_zero_tail(const Specification& s, std::int64_t tile) {
    const Problem& problem = s.problem;
    if (has_positions(problem) || problem.cache.ring || problem.cache.page_size > 0 ||
        !problem.mask.documents_q.empty() || problem.splits > 1)
        return std::nullopt;
    const auto padded = [&](std::int64_t n) { return (n + tile - 1) / tile * tile; };
    const auto keys = [&](std::int64_t b) {
        return length_of(problem.mask.lens_kv, problem.len_kv, b);
    };
    std::int64_t longest = problem.len_kv;
    bool adds = false;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
        longest = std::max(longest, padded(keys(b)));
        adds = adds || padded(keys(b)) != keys(b);
    }
    if (!adds) return std::nullopt;
    const Rules rules = rules_of(s);
    Specification out = s;
    for (const Role role : {Role::k, Role::v}) {
        const Tensor& from = s.inputs[role];
        Shape shape = from.shape();
        shape[2] = longest;
        out.inputs.put(role,
                       remake(from.type(), shape,
                              [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
                                  return t < keys(b) ? from.at(b, h, t, c) : 0.0;
                              }));
    }
    out.inputs.put(
        Role::mask,
        remake(ElementType::f64, {problem.batch, problem.heads_q, problem.len_q, longest},
               [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                   const bool added = j >= keys(b);
                   if (j >= padded(keys(b))) return minus_infinity;
                   Rules tail = rules;
                   tail.key_lengths = !added;
                   MaskPlace p = place_of(s, rules, b, h, i, j);
                   if (hidden(tail, p)) return minus_infinity;
                   return added ? 0.0 : mask_value(s, p);
               }));
    out.problem.mask.tensor = {.kind = MaskKind::additive};
    out.problem.len_kv = longest;
    // Nothing goes by positions any more.
    out.problem.cache = {};
    Rules written = rules;
    written.key_lengths = false;
    erase_written_out(out, written);
    return out;
}

bool has_key_lengths(const Specification& s) {
    return !s.problem.mask.lens_kv.empty();
}
bool has_documents(const Specification& s) {
    return !s.problem.mask.documents_q.empty();
}

Deviation rule_deviation(std::string id, std::string says,
                         std::function<bool(const Specification&)> has,
                         std::function<void(Rules&)> change) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [has = std::move(has), change = std::move(change)](
                             const Specification& s) -> std::optional<Specification> {
                if (!has(s)) return std::nullopt;
                Rules rules = rules_of(s);
                change(rules);
                return with_rules(s, rules);
            }};
}

}  // namespace attest::diagnosis
