// Deviations of what backward recomputes: the weights, what hides a key, the cap's derivative.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::diagnosis {

namespace {

bool inside(const ModelRow& row, std::int64_t j) {
    return row.call.score(row.b, row.h, row.i, j).inside;
}

BackwardDeviation lse(std::string id, std::string says,
                      std::function<Near(const ModelRow&)> value) {
    return exchanged_step(
        std::move(id), std::move(says),
        [value = std::move(value)](const BackwardCall&, ModelSteps& s) { s.lse = value; });
}

BackwardDeviation slope(std::string id, std::string says,
                        std::function<Near(const ModelPair&, double cap)> value) {
    return exchanged_step(std::move(id), std::move(says),
                          [value = std::move(value)](const BackwardCall& call, ModelSteps& s) {
                              const double cap = call.problem().softcap;
                              if (cap > 0)
                                  s.slope = [value, cap](const ModelPair& pair) {
                                      return value(pair, cap);
                                  };
                          });
}

BackwardDeviation value_weight(std::string id, std::string says,
                               std::function<Near(const ModelPair&)> value) {
    return exchanged_step(
        std::move(id), std::move(says),
        [value = std::move(value)](const BackwardCall&, ModelSteps& s) { s.value_weight = value; });
}

void add_lse(std::vector<BackwardDeviation>& list) {
    list.push_back(lse("lse_as_base_two", "weights of an LSE that is taken for one of base 2",
                       [](const ModelRow& row) { return std::numbers::ln2 * row.lse; }));
    list.push_back(lse("lse_times_log2e", "weights of an LSE multiplied by log2(e)",
                       [](const ModelRow& row) { return std::numbers::log2e * row.lse; }));
    list.push_back(lse("lse_missing", "weights exp(S), without the LSE",
                       [](const ModelRow&) { return Near{}; }));
    list.push_back(lse("lse_maximum", "weights exp(S - m) with the row's maximum, not divided",
                       largest_score));
    list.push_back(
        lse("lse_negated", "weights exp(S + LSE)", [](const ModelRow& row) { return -row.lse; }));
    list.push_back(lse("lse_not_negative", "an LSE that is never below 0", [](const ModelRow& row) {
        return row.lse.value < 0 ? Near{0, std::isfinite(row.lse.error) ? row.lse.error : 0}
                                 : row.lse;
    }));
    for (const RoundsTo narrow : narrow_or_own)
        list.push_back(lse("lse_" + id_of(narrow),
                           "weights of an LSE rounded to " + words_of(narrow),
                           [narrow](const ModelRow& row) {
                               const auto format = format_in(narrow, row.call.problem());
                               return format ? rounded_to(row.lse, *format) : row.lse;
                           }));
    // Summed again without it, or exp(L) less exp(sink): L + log(1 - exp(sink - L)).
    const auto from_stored = [](const ModelRow& row) {
        const double share =
            std::exp(row.call.call.sinks[static_cast<std::size_t>(row.h)] - row.lse.value);
        return Near{row.lse.value + std::log1p(-share),
                    (row.lse.error + 4 * row.call.model.ua) / std::max(1 - share, 0.0)};
    };
    for (const std::function<Near(const ModelRow&)>& form :
         {std::function<Near(const ModelRow&)>(lse_of_keys),
          std::function<Near(const ModelRow&)>(from_stored)})
        for (const bool of_sink_too : {false, true})
            list.push_back(
                exchanged_step("sink_left_out", "weights that the sink has no share in",
                               [form, of_sink_too](const BackwardCall& call, ModelSteps& s) {
                                   if (!call.problem().sink) return;
                                   s.lse = form;
                                   if (of_sink_too)
                                       s.sink_term = [](const ModelRow&, Near) { return Near{}; };
                               }));
}

void add_hidden(std::vector<BackwardDeviation>& list) {
    list.push_back(exchanged_step("hidden_score_zero", "hidden keys with the weight exp(0 - LSE)",
                                  [](const BackwardCall&, ModelSteps& s) {
                                      s.sees = [](const ModelRow& row, std::int64_t j, bool) {
                                          return inside(row, j);
                                      };
                                      s.probability = [](const ModelPair& pair) {
                                          if (pair.facts.visible) return plain_probability(pair);
                                          ModelPair zero = pair;
                                          zero.score = {};
                                          return plain_probability(zero);
                                      };
                                  }));
    const char* recomputed = "the weights of a row that sees no key: exp(S + infinity)";
    list.push_back(
        exchanged_step("empty_rows_recomputed", recomputed, [](const BackwardCall&, ModelSteps& s) {
            s.sees = [](const ModelRow& row, std::int64_t j, bool is) {
                return is || (inside(row, j) && row.lse.value == -infinite);
            };
        }));
    // Of keys that a mask tensor hides by an S of -infinity.
    list.push_back(
        exchanged_step("empty_rows_recomputed", recomputed, [](const BackwardCall&, ModelSteps& s) {
            s.sees = [](const ModelRow& row, std::int64_t j, bool is) {
                return is || (row.lse.value == -infinite &&
                              row.call.score(row.b, row.h, row.i, j).masked);
            };
            s.probability = [](const ModelPair& pair) {
                return pair.facts.masked ? Near{std::nan(""), 0} : plain_probability(pair);
            };
        }));
    list.push_back(exchanged_step(
        "hidden_leaks",
        "zero times what is hidden, which is NaN where that is, instead of "
        "leaving it out",
        [](const BackwardCall&, ModelSteps& s) {
            s.sees = [](const ModelRow& row, std::int64_t j, bool) { return inside(row, j); };
            s.probability = [](const ModelPair& pair) {
                // No exact 0, which would hide a NaN.
                if (pair.facts.visible) return plain_probability(pair);
                return Near{0, std::numeric_limits<double>::denorm_min()};
            };
        }));
}

/// Where a weight may lie on either side of it, nothing is known.
void add_left_out(std::vector<BackwardDeviation>& list) {
    for (const int bits : {8, 10, 12, 14, 16, 20, 24})
        list.push_back(exchanged_step(
            fmt::format("weights_below_{}", bits), fmt::format("no weight below 2^-{}", bits),
            [least = std::ldexp(1.0, -bits)](const BackwardCall&, ModelSteps& s) {
                s.probability = [least](const ModelPair& pair) {
                    const Near p = plain_probability(pair);
                    if (p.value + p.error < least) return Near{};
                    return p.value - p.error < least ? Near{p.value, p.value + p.error} : p;
                };
            }));
}

struct OtherScale {
    const char *id, *says;
    double (*scale)(const BackwardCall&);
};

double root_of(std::int64_t dim) {
    return std::sqrt(static_cast<double>(dim));
}

constexpr OtherScale other_scales[] = {
    {"unscaled", "without the softmax scale", [](const BackwardCall&) { return 1.0; }},
    {"scaled_twice", "with the softmax scale twice",
     [](const BackwardCall& call) { return call.call.scale * call.call.scale; }},
    {"scale_default", "with the scale 1/sqrt(d) instead of the one asked for",
     [](const BackwardCall& call) { return 1 / root_of(call.problem().dim_qk); }},
    {"scale_inverse_dim", "with a scale of 1/d",
     [](const BackwardCall& call) { return 1 / static_cast<double>(call.problem().dim_qk); }},
    {"scale_value_dim", "with a scale of 1/sqrt(dv)",
     [](const BackwardCall& call) { return 1 / root_of(call.call.dim_v); }},
    {"scale_log2e", "with log2(e) in the scale, of scores of base 2",
     [](const BackwardCall& call) { return call.call.scale * std::numbers::log2e; }},
    {"scale_ln2", "with ln(2) in the scale, of scores of base 2",
     [](const BackwardCall& call) { return call.call.scale * std::numbers::ln2; }},
};

void add_parts(std::vector<BackwardDeviation>& list) {
    for (const auto& [id, says, scale] : other_scales)
        list.push_back(exchanged_step(fmt::format("weights_{}", id),
                                      fmt::format("weights recomputed {}", says),
                                      [scale = scale](const BackwardCall& call, ModelSteps& s) {
                                          if (call.call.scale != 0)
                                              s.parts.scale = scale(call) / call.call.scale;
                                      }));
    list.push_back(exchanged_step(
        "exponent_base_two", "weights 2^(S - LSE) where e^(S - LSE) is meant",
        [](const BackwardCall&, ModelSteps& s) {
            s.probability = [](const ModelPair& pair) {
                const Near p = plain_probability(pair);
                if (!(p.value > 0)) return p;
                const double x = std::pow(p.value, std::numbers::ln2);
                return Near{
                    x, x * (std::numbers::ln2 * p.error / p.value + 4 * pair.row.call.model.ua)};
            };
        }));
    list.push_back(exchanged_step("weights_uncapped", "weights recomputed without the soft cap",
                                  [](const BackwardCall&, ModelSteps& s) {
                                      s.parts.cap = false;
                                      s.slope = [](const ModelPair& pair) {
                                          const double cap = pair.row.call.problem().softcap;
                                          if (!(cap > 0)) return Near{1, 0};
                                          const double t = std::tanh(pair.biased / cap);
                                          return Near{1 - t * t, 30 * pair.row.call.model.ua};
                                      };
                                  }));
    list.push_back(
        exchanged_step("weights_unbiased", "weights recomputed without the additive mask",
                       [](const BackwardCall&, ModelSteps& s) { s.parts.mask = false; }));
    list.push_back(
        exchanged_step("weights_without_alibi", "weights recomputed without ALiBi",
                       [](const BackwardCall&, ModelSteps& s) { s.parts.alibi = false; }));
}

/// What a mistaken derivative of c tanh(x / c) is, of t = tanh(x / c).
struct OtherSlope {
    const char *id, *says;
    double (*of)(double t, double cap);
};

constexpr OtherSlope other_slopes[] = {
    {"slope_over_cap", "the soft cap's derivative divided by the cap",
     [](double t, double cap) { return (1 - t * t) / cap; }},
    {"slope_times_cap", "the soft cap's derivative multiplied by the cap",
     [](double t, double cap) { return (1 - t * t) * cap; }},
    {"slope_of_size", "1 - |tanh| where its derivative is meant",
     [](double t, double) { return 1 - std::abs(t); }},
    {"slope_is_tanh", "tanh where its derivative is meant", [](double t, double) { return t; }},
    {"slope_is_square", "tanh squared where the derivative is 1 less it",
     [](double t, double) { return t * t; }},
    {"slope_added", "1 + tanh squared where the derivative is 1 less it",
     [](double t, double) { return 1 + t * t; }},
};

void add_slopes(std::vector<BackwardDeviation>& list) {
    for (const OtherSlope& other : other_slopes)
        list.push_back(
            slope(other.id, other.says, [of = other.of](const ModelPair& pair, double cap) {
                // None of them moves faster with t than twice the right one does, but for a factor.
                const double factor = std::max({1.0, cap, 1 / cap});
                return Near{of(pair.capped.value / cap, cap), 2 * factor * plain_slope(pair).error};
            }));
    list.push_back(slope("slope_missing", "dS without the soft cap's derivative",
                         [](const ModelPair&, double) {
                             return Near{1, 0};
                         }));
    const auto square = [](Near t) { return Near{1, 0} - t * t; };
    list.push_back(slope("slope_of_biased", "the soft cap's derivative at the biased score",
                         [square](const ModelPair& pair, double cap) {
                             return square(1 / cap *
                                           rounded(pair.score, 2 * pair.row.call.model.ua, 0));
                         }));
    list.push_back(slope(
        "slope_of_uncapped", "the soft cap's derivative at the score before the cap",
        [square](const ModelPair& pair, double cap) {
            return square(1 / cap *
                          rounded({pair.biased, pair.capped.error}, 2 * pair.row.call.model.ua, 0));
        }));
    // The tanh of what tanh was taken of, with a bias that comes after it or without: errors add
    // up, each at most that of the right slope.
    for (const auto of : {&ModelPair::score, &ModelPair::capped})
        list.push_back(slope("slope_of_capped_twice",
                             "the soft cap's derivative at the capped score",
                             [of](const ModelPair& pair, double cap) {
                                 const double x = (pair.*of).value / cap, t = std::tanh(x),
                                              bias = 4 * pair.row.call.model.ua * std::abs(x);
                                 return Near{1 - t * t, 2 * plain_slope(pair).error + bias};
                             }));
    list.push_back(slope("slope_undivided",
                         "1 - s^2 as the soft cap's derivative, s not divided "
                         "by the cap",
                         [square](const ModelPair& pair, double) { return square(pair.capped); }));
    list.push_back(
        slope("slope_not_squared", "1 - tanh where its derivative is meant",
              [](const ModelPair& pair, double cap) {
                  return Near{1, 0} - 1 / cap * rounded(pair.capped, 9 * pair.row.call.model.ua, 0);
              }));
    list.push_back(
        slope("slope_twice", "the soft cap's derivative twice",
              [](const ModelPair& pair, double) { return plain_slope(pair) * plain_slope(pair); }));
}

}  // namespace

std::vector<BackwardDeviation> weight_deviations() {
    std::vector<BackwardDeviation> list;
    add_lse(list);
    add_hidden(list);
    add_slopes(list);
    add_parts(list);
    add_left_out(list);
    list.push_back(value_weight(
        "value_weight_squared", "dV of squared weights",
        [](const ModelPair& pair) { return rounded(pair.p * pair.p, pair.row.call.model.ua, 0); }));
    list.push_back(value_weight("value_weight_is_ds", "dV of dS where the weights are meant",
                                [](const ModelPair& pair) { return pair.ds; }));
    list.push_back(value_weight("value_weight_one", "dV without the weights", [](const ModelPair&) {
        return Near{1, 0};
    }));
    return list;
}

}  // namespace attest::diagnosis
