// Gradients with a factor too many or one missing, channels dropped, zeros, coarser formats.

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>

#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/law/gradient_run.hpp"
#include "reference/bound/expected.hpp"

namespace attest::diagnosis {

namespace {

constexpr Role q_and_k[] = {Role::d_q, Role::d_k}, values[] = {Role::d_v},
               q_k_and_v[] = {Role::d_q, Role::d_k, Role::d_v};

using FactorOf = std::function<double(const BackwardCall&)>;

BackwardDeviation factor(std::string id, std::string says, std::span<const Role> roles,
                         FactorOf value) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [value = std::move(value), roles](const BackwardCall&, ModelSteps& s) {
                s.afterwards = [value, roles](const BackwardCall& call, Predicted& out) {
                    const double f = value(call);
                    if (!std::isfinite(f)) return;
                    for (const Role role : roles)
                        for (Near& x : out[role]) x = rounded(f * x, 2 * call.model.ua, 0);
                };
            }};
}

BackwardDeviation each(std::string id, std::string says, std::function<Near(Near)> change) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [change = std::move(change)](const BackwardCall&, ModelSteps& s) {
                s.afterwards = [change](const BackwardCall&, Predicted& out) {
                    for (const Role role : gradient_roles)
                        for (Near& x : out[role]) x = change(x);
                };
            }};
}

double channels(const BackwardCall& call) {
    return static_cast<double>(call.problem().dim_qk);
}

void add_scales(std::vector<BackwardDeviation>& list) {
    list.push_back(factor("unscaled", "gradients without the softmax scale", q_and_k,
                          [](const BackwardCall& call) { return 1 / call.call.scale; }));
    list.push_back(factor("scaled_twice", "gradients with the softmax scale twice", q_and_k,
                          [](const BackwardCall& call) { return call.call.scale; }));
    list.push_back(factor(
        "scale_default", "gradients with the scale 1/sqrt(d) instead of the one asked for", q_and_k,
        [](const BackwardCall& call) { return 1 / std::sqrt(channels(call)) / call.call.scale; }));
    list.push_back(
        factor("scale_inverse_dim", "gradients with a scale of 1/d", q_and_k,
               [](const BackwardCall& call) { return 1 / channels(call) / call.call.scale; }));
    list.push_back(factor("scale_value_dim", "gradients with a scale of 1/sqrt(dv)", q_and_k,
                          [](const BackwardCall& call) {
                              return 1 / std::sqrt(static_cast<double>(call.call.dim_v)) /
                                     call.call.scale;
                          }));
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        list.push_back(factor(
            fmt::format("scale_padded_{}", tile),
            fmt::format("gradients with a scale made from d rounded up to a multiple of {}, where "
                        "none is asked for",
                        tile),
            q_and_k, [tile](const BackwardCall& call) {
                const std::int64_t d = call.problem().dim_qk;
                if (call.problem().scale) return 1.0;
                return std::sqrt(static_cast<double>(d) /
                                 static_cast<double>((d + tile - 1) / tile * tile));
            }));
    for (const Precision narrow : {Precision::bf16, Precision::f16})
        list.push_back(
            factor(fmt::format("scale_{}", name(narrow)),
                   fmt::format("gradients with the softmax scale rounded to {}", name(narrow)),
                   q_and_k, [narrow](const BackwardCall& call) {
                       return round_to(call.call.scale, narrow) / call.call.scale;
                   }));
    list.push_back(factor("scale_in_values", "dV multiplied by the softmax scale",
                          std::span(values),
                          [](const BackwardCall& call) { return call.call.scale; }));
    list.push_back(factor("times_log2e", "gradients multiplied by log2(e), of scores of base 2",
                          q_and_k, [](const BackwardCall&) { return std::numbers::log2e; }));
    list.push_back(factor("times_ln2", "gradients multiplied by ln(2), of scores of base 2",
                          q_and_k, [](const BackwardCall&) { return std::numbers::ln2; }));
    list.push_back(
        factor("scaled_log2e", "gradients with log2(e) where the scale is meant", q_and_k,
               [](const BackwardCall& call) { return std::numbers::log2e / call.call.scale; }));
}

/// The scale comes in where RoPE is turned back, and nowhere else.
void add_unscaled_rest(std::vector<BackwardDeviation>& list) {
    list.push_back(exchanged_step(
        "unscaled_behind_rope", "gradients without the softmax scale in channels that RoPE leaves",
        [](const BackwardCall&, ModelSteps& s) {
            s.afterwards = [](const BackwardCall& call, Predicted& out) {
                const Problem& p = call.problem();
                if (p.rope.style == RopeStyle::none || p.rope.dims == 0) return;
                for (const Role role : q_and_k)
                    for (std::size_t at = 0; at < out[role].size(); ++at)
                        if (static_cast<std::int64_t>(at) % p.dim_qk >= p.rope.dims)
                            out[role][at] =
                                rounded(1 / call.call.scale * out[role][at], 2 * call.model.ua, 0);
            };
        }));
}

void add_numbers(std::vector<BackwardDeviation>& list) {
    struct Number {
        double value;
        const char *id, *says;
    };
    for (const Number n : {Number{2, "twice", "gradients twice as large"},
                           Number{0.5, "half", "gradients half as large"},
                           Number{-1, "negated", "gradients of the wrong sign"},
                           Number{4, "four_times", "gradients four times as large"}})
        list.push_back(
            factor(n.id, n.says, gradient_roles, [v = n.value](const BackwardCall&) { return v; }));
    struct Count {
        const char *id, *says;
        double (*of)(const BackwardCall&);
    };
    const Count counts[] = {
        {"group", "the number of heads in a group",
         [](const BackwardCall& c) { return static_cast<double>(c.call.group); }},
        {"batch", "the number of sequences",
         [](const BackwardCall& c) { return static_cast<double>(c.problem().batch); }},
        {"heads", "the number of heads",
         [](const BackwardCall& c) { return static_cast<double>(c.problem().heads_q); }},
        {"queries", "the number of queries",
         [](const BackwardCall& c) { return static_cast<double>(c.problem().len_q); }},
        {"keys", "the number of keys",
         [](const BackwardCall& c) { return static_cast<double>(c.problem().len_kv); }},
    };
    for (const Count& n : counts) {
        list.push_back(factor(fmt::format("times_{}", n.id),
                              fmt::format("gradients multiplied by {}", n.says), gradient_roles,
                              [of = n.of](const BackwardCall& c) { return of(c); }));
        list.push_back(factor(fmt::format("over_{}", n.id),
                              fmt::format("gradients divided by {}", n.says), gradient_roles,
                              [of = n.of](const BackwardCall& c) { return 1 / of(c); }));
    }
}

/// Zeros in the channels past those that are kept.
BackwardDeviation zeros_past(
    std::string id, std::string says, std::span<const Role> roles,
    std::function<std::int64_t(const BackwardCall&, std::int64_t dim)> kept) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [roles, kept = std::move(kept)](const BackwardCall&, ModelSteps& s) {
                s.afterwards = [roles, kept](const BackwardCall& call, Predicted& out) {
                    for (const Role role : roles) {
                        const std::int64_t dim =
                            role == Role::d_v ? call.call.dim_v : call.problem().dim_qk;
                        std::vector<Near>& all = out[role];
                        for (std::size_t at = 0; at < all.size(); ++at)
                            if (static_cast<std::int64_t>(at) % dim >= kept(call, dim))
                                all[at] = {};
                    }
                };
            }};
}

/// A last chunk of channels that is moved back to end with them: those of the chunk before are
/// added twice.
BackwardDeviation overlapping_chunks(std::int64_t lane) {
    return {.id = fmt::format("chunks_overlap_{}", lane),
            .says = fmt::format("channels twice that are of the last chunk of {} and of the one "
                                "before: it is moved back to end with d",
                                lane),
            .change = [lane](const BackwardCall&, ModelSteps& s) {
                s.afterwards = [lane](const BackwardCall& call, Predicted& out) {
                    for (const Role role : q_k_and_v) {
                        const std::int64_t dim =
                            role == Role::d_v ? call.call.dim_v : call.problem().dim_qk;
                        if (dim <= lane) continue;
                        std::vector<Near>& all = out[role];
                        for (std::size_t at = 0; at < all.size(); ++at) {
                            const std::int64_t c = static_cast<std::int64_t>(at) % dim;
                            if (c >= dim - lane && c < dim / lane * lane && dim % lane != 0)
                                all[at] = 2.0 * all[at];
                        }
                    }
                };
            }};
}

void add_channels(std::vector<BackwardDeviation>& list) {
    for (const std::int64_t lane : {2, 4, 8, 16, 32, 64})
        list.push_back(zeros_past(
            fmt::format("channels_dropped_{}", lane),
            fmt::format("zeros in the last d mod {} channels", lane), q_k_and_v,
            [lane](const BackwardCall&, std::int64_t dim) { return dim / lane * lane; }));
    list.push_back(zeros_past(
        "keys_value_channels", "zeros in dQ and dK past as many channels as values have", q_and_k,
        [](const BackwardCall& call, std::int64_t) { return call.call.dim_v; }));
    for (const std::int64_t lane : {4, 8, 16, 32, 64}) list.push_back(overlapping_chunks(lane));
    list.push_back(
        zeros_past("values_key_channels", "zeros in dV past as many channels as keys have", values,
                   [](const BackwardCall& call, std::int64_t) { return call.problem().dim_qk; }));
}

/// The shortest decimal number that differs from a factor by less than `unit` of itself.
double shortest(double factor, double unit) {
    for (int digits = 0; digits < 16; ++digits) {
        const double r = std::stod(fmt::format("{:.{}e}", factor, digits));
        if (r != 1 && std::abs(factor / r - 1) < unit) return r;
    }
    return factor;
}

}  // namespace

// From the element that stands out most of its bound: the factor is known best there, to the bound;
// a quarter of that leaves room for the other elements.
std::vector<BackwardDeviation> fitted_factor(const std::vector<BackwardEvidence>& wrong,
                                             const std::vector<Role>& roles) {
    double most = 0, seen_factor = 0;
    for (const BackwardEvidence& e : wrong)
        for (const Role role : roles) {
            const std::int64_t size = e.observed.has(role) ? e.observed[role].size() : 0;
            for (std::int64_t n = 0; n < size; ++n) {
                const double seen = e.observed[role].get(n);
                const bound::ExpectedElement& x = e.truth[role][static_cast<std::size_t>(n)];
                const double of_bound = std::abs(x.value) / (x.bound + x.error);
                if (!std::isfinite(seen) || !(of_bound > most) ||
                    !outside(seen, x, law::gradient_format(e.asked.problem, role)))
                    continue;
                most = of_bound;
                seen_factor = seen / x.value;
            }
        }
    if (seen_factor == 0) return {};
    const double value = shortest(seen_factor, 0.25 / most);
    return {factor("times_a_number", fmt::format("gradients {} times as large", value),
                   gradient_roles, [value](const BackwardCall&) { return value; })};
}

std::vector<BackwardDeviation> factor_deviations() {
    std::vector<BackwardDeviation> list;
    add_scales(list);
    add_unscaled_rest(list);
    add_numbers(list);
    add_channels(list);
    list.push_back(each("zeros", "zeros everywhere", [](Near) { return Near{}; }));
    for (const Precision narrow : {Precision::bf16, Precision::f16})
        list.push_back(each("gradients_" + std::string(name(narrow)),
                            "gradients of the precision of " + std::string(name(narrow)),
                            [narrow](Near x) { return rounded_to(x, narrow); }));
    return list;
}

}  // namespace attest::diagnosis
