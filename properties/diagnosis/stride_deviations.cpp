// Tensors that are read or written by strides of others, or as if they were contiguous.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/worker/placement.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/feature.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::int64_t nowhere = -1;

/// Elements of memory: a law of large offsets spreads a tensor over gigabytes.
constexpr std::int64_t span_most = std::int64_t{1} << 22;

/// The strides that are taken from another tensor.
struct Axes {
    const char *id, *words;
    std::array<bool, 4> taken;
};
constexpr Axes all_axes[] = {{"all", "strides", {true, true, true, true}},
                             {"head", "head stride", {false, true, false, false}},
                             {"row", "row stride", {false, false, true, false}},
                             {"batch", "batch stride", {true, false, false, false}}};

struct Tensors {
    Role role;
    const char *id, *words;
};
constexpr Tensors queries{Role::q, "q", "queries"}, keys{Role::k, "k", "keys"},
    values{Role::v, "v", "values"}, output{Role::o, "o", "output"};

worker::Placement placement(const Problem& p, Role role, const Layout& layout) {
    return worker::place(role, type_of(p, role), shape_of(p, role).value(), layout);
}

/// Memory from a tensor's first element on: where the strides of `own`, those of `axes` taken from
/// `other`, lead to, for each element in logical order. Nowhere: past its last.
std::vector<std::int64_t> offsets(const worker::Placement& own, const Shape& other,
                                  const Axes& axes) {
    Shape stride = own.stride;
    for (std::size_t axis = 0; axis < 4; ++axis)
        if (axes.taken[axis]) stride[axis] = other[axis];
    std::vector<std::int64_t> list;
    const Shape& n = own.shape;
    for (std::int64_t a = 0; a < n[0]; ++a)
        for (std::int64_t b = 0; b < n[1]; ++b)
            for (std::int64_t c = 0; c < n[2]; ++c)
                for (std::int64_t d = 0; d < n[3]; ++d) {
                    const std::int64_t at =
                        a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
                    list.push_back(at < own.span ? at : nowhere);
                }
    return list;
}

/// Element by element, the one that is met in its place; nowhere: what lies between rows, or past
/// the last.
std::vector<std::int64_t> met_elements(const worker::Placement& own,
                                       const std::vector<std::int64_t>& to) {
    std::vector<std::int64_t> lies(static_cast<std::size_t>(own.span), nowhere);
    const std::vector<std::int64_t> from = offsets(own, own.stride, all_axes[0]);
    for (std::size_t n = 0; n < from.size(); ++n)
        lies[static_cast<std::size_t>(from[n])] = static_cast<std::int64_t>(n);
    std::vector<std::int64_t> met;
    for (const std::int64_t at : to)
        met.push_back(at == nowhere ? nowhere : lies[static_cast<std::size_t>(at)]);
    return met;
}

bool as_it_is(const std::vector<std::int64_t>& met) {
    for (std::size_t n = 0; n < met.size(); ++n)
        if (met[n] != static_cast<std::int64_t>(n)) return false;
    return true;
}

/// Of what is not known nothing is claimed.
constexpr bound::ExpectedElement untold{0, 0, infinite};

/// What rows become that read an element nobody knows.
void forget_rows(const Specification& s, Role role, const std::vector<std::int64_t>& met,
                 bound::Expected& out) {
    const Problem& p = s.problem;
    const auto rows = rows_of(s);
    const std::int64_t dim = value_dim(p), width = role == Role::v ? dim : p.dim_qk;
    const auto unknown = [&](std::int64_t row_of_tensor, std::int64_t c) {
        return met[static_cast<std::size_t>(row_of_tensor * width + c)] == nowhere;
    };
    for (std::size_t n = 0; n < rows->size(); ++n) {
        const auto row = static_cast<std::int64_t>(n);
        const std::int64_t b = row / p.len_q / p.heads_q,
                           kv = b * p.heads_kv + row / p.len_q % p.heads_q / group_size(p);
        std::vector<bool> lost(static_cast<std::size_t>(width), false);
        const auto read = [&](std::int64_t row_of_tensor) {
            for (std::int64_t c = 0; c < width; ++c)
                if (unknown(row_of_tensor, c)) lost[static_cast<std::size_t>(c)] = true;
        };
        if (role == Role::q) read(row);
        for (std::int64_t j = 0; role != Role::q && j < p.len_kv; ++j)
            if ((*rows)[n].weights[static_cast<std::size_t>(j)] > 0) read(kv * p.len_kv + j);
        const bool all = role != Role::v && std::ranges::count(lost, true) > 0;
        for (std::int64_t c = 0; c < dim; ++c)
            if (all || (role == Role::v && lost[static_cast<std::size_t>(c)]))
                out.output[static_cast<std::size_t>(row * dim + c)] = untold;
        if (all && n < out.lse.size()) out.lse[n] = untold;
    }
}

std::optional<bound::Expected> answer_read(const Specification& s, Role role,
                                           const std::vector<std::int64_t>& met) {
    if (as_it_is(met)) return std::nullopt;
    Specification other = s;
    Tensor& t = other.inputs[role];
    for (std::int64_t n = 0; n < t.size(); ++n) {
        const std::int64_t from = met[static_cast<std::size_t>(n)];
        t.set_bits(n, from == nowhere ? 0 : s.inputs[role].bits(from));
    }
    bound::Expected out =
        oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
    forget_rows(s, role, met, out);
    return out;
}

/// What is written over is what the last write left, in the order of rows.
std::optional<bound::Expected> answer_written(const bound::Expected& truth,
                                              const std::vector<std::int64_t>& met) {
    if (as_it_is(met)) return std::nullopt;
    bound::Expected out = truth;
    std::ranges::fill(out.output, untold);
    for (std::size_t n = 0; n < met.size(); ++n)
        if (met[n] != nowhere) out.output[static_cast<std::size_t>(met[n])] = truth.output[n];
    return out;
}

/// The log-sum-exp without gaps as [B, H, T], which is read in the order of the output.
std::optional<bound::Expected> lse_in_its_own_order(const Specification& s,
                                                    const bound::Expected& truth) {
    const Problem& p = s.problem;
    if (truth.lse.empty() || !p.want_lse) return std::nullopt;
    const worker::Placement here = placement(p, Role::lse, worker::layout_of(p, Role::lse));
    const worker::Placement there = placement(p, Role::lse, {});
    if (here.span != there.span) return std::nullopt;  // a gap, which it would write over
    const auto met = met_elements(here, offsets(here, there.stride, all_axes[0]));
    if (as_it_is(met)) return std::nullopt;
    bound::Expected out;
    out.lse = truth.lse;
    for (std::size_t n = 0; n < met.size(); ++n)
        out.lse[static_cast<std::size_t>(met[n])] = truth.lse[n];
    return out;
}

/// `other` empty: as if the tensor were contiguous.
Deviation strides_of_another(const Tensors& own, const std::optional<Tensors>& other,
                             const Axes& axes) {
    const char* done = own.role == Role::o ? "written" : "read";
    return formula_deviation(
        fmt::format("{}_{}_{}_strides", own.id, other ? other->id : "plain", axes.id),
        other ? fmt::format("{} {} by the {} of the {}", own.words, done, axes.words, other->words)
              : fmt::format("{} {} by the {} of a contiguous tensor", own.words, done, axes.words),
        [own = own.role, other, axes](const Specification& s, const bound::Expected& truth)
            -> std::optional<bound::Expected> {
            const Problem& p = s.problem;
            if (p.cache.present || !features_of(p).has(Feature::layout)) return std::nullopt;
            const worker::Placement here = placement(p, own, worker::layout_of(p, own));
            const worker::Placement there =
                other ? placement(p, other->role, worker::layout_of(p, other->role))
                      : placement(p, own, {});
            if (here.span > span_most) return std::nullopt;
            const auto met = met_elements(here, offsets(here, there.stride, axes));
            return own == Role::o ? answer_written(truth, met) : answer_read(s, own, met);
        });
}

}  // namespace

std::vector<Deviation> other_strides() {
    std::vector<Deviation> list;
    const auto add = [&list](const Tensors& own, const std::optional<Tensors>& other) {
        for (const Axes& axes : all_axes) list.push_back(strides_of_another(own, other, axes));
    };
    for (const auto& [own, other] : {std::pair{values, keys},
                                     {keys, values},
                                     {keys, queries},
                                     {values, queries},
                                     {queries, keys},
                                     {output, queries},
                                     {output, values}})
        add(own, other);
    for (const Tensors& own : {queries, keys, values, output}) add(own, std::nullopt);
    list.push_back(formula_deviation("lse_plain_strides",
                                     "a log-sum-exp written as a contiguous [B, H, T]",
                                     lse_in_its_own_order));
    list.back().declares = [](const Specification&) -> std::string {
        return "the order of the output; by design? declare takes: lse_order bht";
    };
    return list;
}

}  // namespace attest::diagnosis
