// Deviations of dS = P (dP - D) and of D, the row's sum of dO times O; those of dP are in
// product_deviations.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

using DeltaOf = std::function<Near(const ModelRow&)>;
using DsOf = std::function<Near(const ModelPair&)>;

BackwardDeviation delta(std::string id, std::string says, DeltaOf value) {
    return {.id = std::move(id),
            .says = std::move(says),
            .change = [value = std::move(value)](const BackwardCall&, ModelSteps& s) {
                s.delta = value;
            }};
}

BackwardDeviation ds(std::string id, std::string says, DsOf value) {
    return {
        .id = std::move(id),
        .says = std::move(says),
        .change = [value = std::move(value)](const BackwardCall&, ModelSteps& s) { s.ds = value; }};
}

/// sum_c f(dO_c, O_c).
template <typename Term>
Near sum_of_terms(const ModelRow& row, Term term_of) {
    return sum_of_channels(
        row, [&](std::size_t c) { return term_of(row.facts.d_o[c], row.facts.output[c]); });
}

/// sum_c dO_c f(O_c), of a dO that may be rounded.
template <typename Change>
Near delta_with(const ModelRow& row, Change change, Precision of_d_o = Precision::f64) {
    return sum_of_terms(row, [&](double d_o, Near o) { return round_to(d_o, of_d_o) * change(o); });
}

Near narrowed(Near x, RoundsTo narrow, const Problem& problem) {
    const auto format = format_in(narrow, problem);
    return format ? rounded_to(x, *format) : x;
}

/// exp(x), to within two units of the accumulator beside what x is off by.
Near exponential(Near x) {
    const double e = std::exp(x.value);
    return {e, e * std::expm1(std::min(x.error, 700.0))};
}

void add_delta_values(std::vector<BackwardDeviation>& list) {
    for (const bool of_lse_too : {false, true})
        list.push_back(exchanged_step("delta_omitted", "dS = P dP: delta is left out",
                                      [of_lse_too](const BackwardCall&, ModelSteps& s) {
                                          s.delta = [](const ModelRow&) { return Near{}; };
                                          if (of_lse_too) s.d_lse = s.delta;
                                      }));
    for (const bool of_lse_too : {false, true})
        list.push_back(exchanged_step("delta_past_first_length",
                                      "no delta in rows past the length of the first sequence",
                                      [of_lse_too](const BackwardCall& call, ModelSteps& s) {
                                          const auto& lens = call.problem().mask.lens_q;
                                          if (lens.empty()) return;
                                          s.delta = [end = lens.front()](const ModelRow& row) {
                                              return row.i < end ? row.delta : Near{};
                                          };
                                          if (of_lse_too)
                                              s.d_lse = [end = lens.front()](const ModelRow& row) {
                                                  return row.i < end ? row.facts.d_lse : Near{};
                                              };
                                      }));
    list.push_back(delta("delta_added", "dS = P (dP + delta)",
                         [](const ModelRow& row) { return -row.delta; }));
    list.push_back(delta("delta_twice", "twice the delta",
                         [](const ModelRow& row) { return 2.0 * row.delta; }));
    list.push_back(
        delta("delta_half", "half the delta", [](const ModelRow& row) { return 0.5 * row.delta; }));
    list.push_back(delta("delta_of_d_o", "a delta of dO alone, without O", [](const ModelRow& row) {
        return delta_with(row, [](Near) { return Near{1, 0}; });
    }));
    list.push_back(delta("delta_of_o", "a delta of O alone, without dO", [](const ModelRow& row) {
        Near sum;
        for (const Near& o : row.facts.output)
            sum = sum +
                  rounded(o, static_cast<double>(row.facts.d_o.size() + 2) * row.call.model.ua, 0);
        return sum;
    }));
    list.push_back(delta("delta_mean", "a delta that is the mean over channels instead of the sum",
                         [](const ModelRow& row) {
                             return 1.0 / static_cast<double>(row.facts.d_o.size()) * row.delta;
                         }));
    list.push_back(delta("delta_scaled", "a delta multiplied by the softmax scale",
                         [](const ModelRow& row) { return row.call.call.scale * row.delta; }));
    list.push_back(
        delta("delta_not_negative", "a delta that is never below 0", [](const ModelRow& row) {
            return row.delta.value < 0 ? Near{0, row.delta.error} : row.delta;
        }));
    list.push_back(
        delta("delta_absolute", "the size of delta, without its sign",
              [](const ModelRow& row) { return row.delta.value < 0 ? -row.delta : row.delta; }));
    list.push_back(delta(
        "delta_unnormalised", "a delta of O before it is divided by the row's sum",
        [](const ModelRow& row) { return exponential(row.lse - largest_score(row)) * row.delta; }));
}

/// Of some channels, or of rounded numbers.
void add_delta_sums(std::vector<BackwardDeviation>& list) {
    list.push_back(delta(
        "delta_key_channels", "a delta of as many channels as keys have", [](const ModelRow& row) {
            std::int64_t c = 0;
            const std::int64_t kept = row.call.problem().dim_qk;
            return delta_with(row, [&](Near o) { return c++ < kept ? o : Near{}; });
        }));
    for (const std::int64_t lane : {2, 4, 8, 16, 32, 64})
        list.push_back(delta(
            fmt::format("delta_channels_{}", lane),
            fmt::format("a delta without the last dv mod {} channels", lane),
            [lane](const ModelRow& row) {
                std::size_t c = 0;
                const std::size_t kept = row.facts.d_o.size() / static_cast<std::size_t>(lane) *
                                         static_cast<std::size_t>(lane);
                return delta_with(row, [&](Near o) { return c++ < kept ? o : Near{}; });
            }));
    for (const std::int64_t kept : {1, 32, 64, 96, 128, 192, 256})
        list.push_back(delta(fmt::format("delta_first_{}_channels", kept),
                             fmt::format("a delta of the first {} channels alone", kept),
                             [kept](const ModelRow& row) {
                                 std::int64_t c = 0;
                                 return delta_with(row,
                                                   [&](Near o) { return c++ < kept ? o : Near{}; });
                             }));
    for (const RoundsTo narrow : narrow_or_own)
        list.push_back(delta("delta_" + id_of(narrow), "delta rounded to " + words_of(narrow),
                             [narrow](const ModelRow& row) {
                                 return narrowed(row.delta, narrow, row.call.problem());
                             }));
    for (const RoundsTo narrow : narrow_or_own) {
        const auto add = [&](const char* id, const char* says,
                             Near (*of)(const ModelRow&, Precision)) {
            list.push_back(
                delta(id + id_of(narrow), says + words_of(narrow), [=](const ModelRow& row) {
                    const auto format = format_in(narrow, row.call.problem());
                    return format ? of(row, *format) : row.delta;
                }));
        };
        add("delta_of_output_", "a delta of O rounded to ", [](const ModelRow& row, Precision f) {
            return delta_with(row, [f](Near o) { return rounded_to(o, f); });
        });
        add("delta_of_products_", "a delta whose products and sum are rounded to ",
            [](const ModelRow& row, Precision f) {
                return rounded_to(
                    sum_of_terms(row, [f](double d_o, Near o) { return rounded_to(d_o * o, f); }),
                    f);
            });
        add("delta_of_both_", "a delta of dO and O rounded to ",
            [](const ModelRow& row, Precision f) {
                return delta_with(
                    row, [f](Near o) { return rounded_to(o, f); }, f);
            });
    }
}

/// The scale comes in before delta is taken off, and nowhere else. A bias gradient may be right.
void add_scaled_product(std::vector<BackwardDeviation>& list) {
    const auto scaled = [](const ModelPair& pair) {
        return plain_ds(pair, 1 / pair.row.call.call.scale * pair.row.delta);
    };
    const char* id = "ds_scaled_product";
    const char* says = "dS = P (scale dP - delta), scaled no further";
    list.push_back(exchanged_step(id, says, [scaled](const BackwardCall&, ModelSteps& s) {
        s.stored = [scaled](const ModelPair& pair, Near) {
            return rounded(scaled(pair) * plain_slope(pair), 2 * pair.row.call.model.ua, 0);
        };
    }));
    list.push_back(exchanged_step(id, says, [scaled](const BackwardCall&, ModelSteps& s) {
        s.ds = scaled;
        s.mask_term = [](const ModelPair& pair, Near term) {
            return pair.row.call.call.scale * term;
        };
    }));
}

}  // namespace

std::vector<BackwardDeviation> delta_deviations() {
    std::vector<BackwardDeviation> list;
    add_delta_values(list);
    add_delta_sums(list);
    list.push_back(ds("delta_unweighted", "dS = P dP - delta, delta without its weight",
                      [](const ModelPair& pair) { return pair.p * pair.dp - pair.row.delta; }));
    list.push_back(ds("delta_unweighted", "dS = P dP - delta, delta without its weight",
                      [](const ModelPair& pair) {
                          return pair.p * (pair.dp + pair.row.facts.d_lse) - pair.row.facts.delta;
                      }));
    list.push_back(ds("ds_unweighted", "dS = dP - delta, without the weight",
                      [](const ModelPair& pair) { return pair.dp - pair.row.delta; }));
    list.push_back(ds("ds_weight_squared", "dS with the weight squared", [](const ModelPair& pair) {
        return pair.p * plain_ds(pair, pair.row.delta);
    }));
    list.push_back(ds("ds_diagonal", "dS = P (1 - P) dP, the diagonal of softmax's Jacobian alone",
                      [](const ModelPair& pair) {
                          return rounded(
                              pair.p * ((Near{1, 0} - pair.p) * pair.dp + pair.row.facts.d_lse),
                              3 * pair.row.call.model.ua, 0);
                      }));
    list.push_back(
        ds("ds_diagonal_twice", "dS = P (1 - P) (dP - delta)", [](const ModelPair& pair) {
            const Near slope = rounded(Near{1, 0} - pair.p, pair.row.call.model.ua, 0);
            return rounded(slope * plain_ds(pair, pair.row.delta), pair.row.call.model.ua, 0);
        }));
    add_scaled_product(list);
    for (const RoundsTo narrow : narrow_or_own) {
        list.push_back(ds("ds_" + id_of(narrow), "dS rounded to " + words_of(narrow),
                          [narrow](const ModelPair& pair) {
                              return narrowed(plain_ds(pair, pair.row.delta), narrow,
                                              pair.row.call.problem());
                          }));
        // With the soft cap's derivative.
        list.push_back(exchanged_step("ds_" + id_of(narrow), "dS rounded to " + words_of(narrow),
                                      [narrow](const BackwardCall&, ModelSteps& s) {
                                          s.stored = [narrow](const ModelPair& pair, Near dx) {
                                              return narrowed(dx, narrow, pair.row.call.problem());
                                          };
                                      }));
        list.push_back(ds("dp_" + id_of(narrow), "dP rounded to " + words_of(narrow),
                          [narrow](const ModelPair& pair) {
                              return pair.p * (narrowed(pair.dp, narrow, pair.row.call.problem()) -
                                               pair.row.delta);
                          }));
    }
    return list;
}

}  // namespace attest::diagnosis
