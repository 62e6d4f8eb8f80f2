// Scores made wrongly: another scale, channels dropped.

#include <cmath>
#include <numbers>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

// A deviation that is another scale; nothing to change where it is the scale asked for.
Deviation scale_deviation(std::string id, std::string says,
                          std::function<double(const Specification&)> scale) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify =
                [scale = std::move(scale)](const Specification& s) -> std::optional<Specification> {
                const double wrong = scale(s);
                if (wrong == effective_scale(s.problem) || !std::isfinite(wrong))
                    return std::nullopt;
                return with_scale(s, wrong);
            }};
}

double root_of_dim(std::int64_t dim) {
    return 1.0 / std::sqrt(static_cast<double>(dim));
}

/// Of so many channels, those that RoPE leaves or turns; without it no such scale is made.
double root_of_part(const Specification& s, bool turned) {
    const Problem& p = s.problem;
    if (p.rope.style == RopeStyle::none) return effective_scale(p);
    const std::int64_t dims = p.rope.dims == 0 ? p.dim_qk : p.rope.dims;
    return root_of_dim(turned ? dims : p.dim_qk - dims);
}

double default_scale(const Specification& s) {
    Problem p = s.problem;
    p.scale.reset();
    return effective_scale(p);
}

// A kernel makes its scale itself, or corrects the one it is given.
void add_padded_scales(std::vector<Deviation>& list) {
    const auto padded = [&list](const std::string& id, const std::string& what, auto pad) {
        list.push_back(scale_deviation(
            "scale_" + id, "a scale made from d rounded up to " + what,
            [pad](const Specification& s) { return root_of_dim(pad(s.problem.dim_qk)); }));
        list.push_back(scale_deviation(
            "scale_times_" + id,
            "the scale times that of d rounded up to " + what + ", by that of d",
            [pad](const Specification& s) {
                const std::int64_t d = s.problem.dim_qk;
                return effective_scale(s.problem) * root_of_dim(pad(d)) / root_of_dim(d);
            }));
    };
    padded("padded_power", "a power of two", power_of_two_at_least);
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        padded("padded_" + std::to_string(tile), "a multiple of " + std::to_string(tile),
               [tile](std::int64_t d) { return (d + tile - 1) / tile * tile; });
}

std::vector<Deviation> scale_deviations() {
    std::vector<Deviation> list{
        scale_deviation("scale_default", "the default scale 1/sqrt(d) instead of the explicit one",
                        default_scale),
        scale_deviation("scale_one", "unscaled scores", [](const Specification&) { return 1.0; }),
        scale_deviation(
            "scale_inverse_dim", "a scale of 1/d instead of 1/sqrt(d)",
            [](const Specification& s) { return 1.0 / static_cast<double>(s.problem.dim_qk); }),
        scale_deviation("scale_twice", "the scale applied twice",
                        [](const Specification& s) {
                            const double scale = effective_scale(s.problem);
                            return scale * scale;
                        }),
        scale_deviation("scale_over_root", "the scale divided by sqrt(d) once more",
                        [](const Specification& s) {
                            return effective_scale(s.problem) * root_of_dim(s.problem.dim_qk);
                        }),
        scale_deviation("scale_dim_and_one", "a scale of 1/sqrt(d + 1)",
                        [](const Specification& s) { return root_of_dim(s.problem.dim_qk + 1); }),
        scale_deviation("scale_value_dim", "a scale made from the dimension of V",
                        [](const Specification& s) { return root_of_dim(value_dim(s.problem)); }),
        scale_deviation("scale_unturned_dim",
                        "a scale made from the channels that RoPE does not turn",
                        [](const Specification& s) { return root_of_part(s, false); }),
        scale_deviation("scale_turned_dim", "a scale made from the channels that RoPE turns",
                        [](const Specification& s) { return root_of_part(s, true); }),
        scale_deviation("scale_times_value_dim",
                        "the scale times that of the dimension of V, by that of d",
                        [](const Specification& s) {
                            return effective_scale(s.problem) * root_of_dim(value_dim(s.problem)) /
                                   root_of_dim(s.problem.dim_qk);
                        }),
        scale_deviation("scale_model_dim", "a scale made from heads times d",
                        [](const Specification& s) {
                            return root_of_dim(s.problem.dim_qk * s.problem.heads_q);
                        }),
        scale_deviation(
            "scale_root_twice", "a scale of d^(-1/4)",
            [](const Specification& s) { return std::sqrt(root_of_dim(s.problem.dim_qk)); }),
        scale_deviation("scale_inverted", "scores divided by the scale",
                        [](const Specification& s) { return 1.0 / effective_scale(s.problem); }),
        scale_deviation("scale_negated", "scores of the wrong sign",
                        [](const Specification& s) { return -effective_scale(s.problem); }),
        scale_deviation(
            "exponent_base_two", "2^score where e^score is meant",
            [](const Specification& s) { return effective_scale(s.problem) * std::numbers::ln2; }),
        scale_deviation("exponent_log2_twice", "scores multiplied by log2(e) once too often",
                        [](const Specification& s) {
                            return effective_scale(s.problem) * std::numbers::log2e;
                        }),
        scale_deviation("scale_rounded_bf16", "the scale rounded to bfloat16",
                        [](const Specification& s) {
                            return round_to(effective_scale(s.problem), Precision::bf16);
                        }),
        scale_deviation("scale_rounded_f16", "the scale rounded to f16",
                        [](const Specification& s) {
                            return round_to(effective_scale(s.problem), Precision::f16);
                        }),
    };
    add_padded_scales(list);
    list.push_back(scale_deviation("scale_times_root", "scores sqrt(d) times as large as asked for",
                                   [](const Specification& s) {
                                       return effective_scale(s.problem) /
                                              root_of_dim(s.problem.dim_qk);
                                   }));
    return list;
}

// (q.k + bias) scale, ALiBi included. Where there is a cap, where it goes is anybody's guess.
std::optional<Specification> with_scaled_bias(const Specification& s) {
    const bool additive = s.problem.mask.tensor.kind == MaskKind::additive;
    if ((!additive && !s.problem.alibi) || s.problem.softcap > 0) return std::nullopt;
    const double scale = effective_scale(s.problem);
    Specification out = s;
    bool hides_all_else = false;  // -inf turned round: what becomes of that is anybody's guess
    if (additive)
        out = with_mask_values(s, [&](double v) {
            hides_all_else = hides_all_else || v * scale == infinite;
            return v * scale;
        });
    if (hides_all_else) return std::nullopt;
    if (s.problem.alibi) {
        const Tensor& slopes = s.inputs[Role::alibi_slopes];
        Tensor scaled(ElementType::f64, slopes.shape());
        for (std::int64_t h = 0; h < slopes.size(); ++h) scaled.set(h, slopes.get(h) * scale);
        out.inputs.put(Role::alibi_slopes, std::move(scaled));
    }
    return out;
}

std::vector<Deviation> channel_deviations() {
    std::vector<Deviation> list;
    for (const std::int64_t lane : {2, 4, 8, 16, 32})
        list.push_back(
            {.id = "channels_dropped_" + std::to_string(lane),
             .says = "scores without the last d mod " + std::to_string(lane) + " channels",
             .respecify = [lane](const Specification& s) -> std::optional<Specification> {
                 const std::int64_t kept = s.problem.dim_qk / lane * lane;
                 if (kept == s.problem.dim_qk) return std::nullopt;
                 return with_channels(s, kept);
             }});
    list.push_back({.id = "query_key_exchanged",
                    .says = "queries and keys exchanged",
                    .respecify = [](const Specification& s) -> std::optional<Specification> {
                        if (s.inputs[Role::q].shape() != s.inputs[Role::k].shape())
                            return std::nullopt;
                        Specification out = s;
                        std::swap(out.inputs[Role::q], out.inputs[Role::k]);
                        return out;
                    }});
    list.push_back({.id = "values_are_keys",
                    .says = "keys read where values are meant",
                    .respecify = [](const Specification& s) -> std::optional<Specification> {
                        if (s.inputs[Role::k].shape() != s.inputs[Role::v].shape())
                            return std::nullopt;
                        Specification out = s;
                        out.inputs[Role::v] = out.inputs[Role::k];
                        return out;
                    }});
    return list;
}

}  // namespace

std::vector<Deviation> score_deviations() {
    std::vector<Deviation> all = scale_deviations();
    for (auto part : {softcap_deviations(), channel_deviations()})
        all.insert(all.end(), part.begin(), part.end());
    all.push_back({.id = "bias_scaled",
                   .says = "a bias multiplied by the scale like the scores",
                   .respecify = with_scaled_bias});
    for (Deviation& d : sink_deviations()) all.push_back(std::move(d));
    return all;
}

}  // namespace attest::diagnosis
