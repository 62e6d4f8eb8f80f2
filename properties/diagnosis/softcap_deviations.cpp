// A soft cap taken wrongly: left out, in another place, of another curve.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

bool capped(const Specification& s) {
    return s.problem.softcap > 0;
}
bool has_additive(const Specification& s) {
    return s.problem.mask.tensor.kind == MaskKind::additive;
}

std::string declared_softcap(const Specification& s) {
    return s.dialect.softcap == SoftcapPlace::before_bias ? "before_bias: S = cap(scale q.k) + bias"
                                                          : "after_bias: S = cap(scale q.k + bias)";
}

std::vector<Deviation> caps_misplaced() {
    return {
        {.id = "softcap_before_scale",
         .says = "the soft cap taken before the scale",
         // c tanh(x / c) scale = (c scale) tanh(scale x / (c scale)): a cap of c scale.
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             const double scale = effective_scale(s.problem);
             if (!capped(s) || scale == 1 || !(scale > 0)) return std::nullopt;
             Specification out = s;
             out.problem.softcap = s.problem.softcap * scale;
             return out;
         }},
        {.id = "softcap_ignored",
         .says = "no soft cap at all",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             if (!capped(s)) return std::nullopt;
             Specification out = s;
             out.problem.softcap = 0;
             return out;
         }},
        // c tanh(scale c q.k / c), and 1 tanh(scale / c q.k / 1).
        {.id = "softcap_undivided",
         .says = "a soft cap c tanh(S) without the division by c",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             if (!capped(s)) return std::nullopt;
             return with_scale(s, effective_scale(s.problem) * s.problem.softcap);
         }},
        {.id = "softcap_unmultiplied",
         .says = "a soft cap tanh(S / c) that is not multiplied by c",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             if (!capped(s)) return std::nullopt;
             Specification out = with_scale(s, effective_scale(s.problem) / s.problem.softcap);
             out.problem.softcap = 1;
             return out;
         }},
        {.id = "softcap_other_place",
         .says = "the soft cap on the other side of the bias",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             const bool biased =
                 s.problem.mask.tensor.kind == MaskKind::additive || s.problem.alibi;
             if (!capped(s) || !biased) return std::nullopt;
             Specification out = s;
             out.dialect.softcap = s.dialect.softcap == SoftcapPlace::before_bias
                                       ? SoftcapPlace::after_bias
                                       : SoftcapPlace::before_bias;
             return out;
         },
         .declares =
             [](const Specification& s) {
                 const bool before = s.dialect.softcap == SoftcapPlace::before_bias;
                 return declared_softcap(s) + "; by design? declare dialect: softcap " +
                        (before ? "after_bias" : "before_bias");
             }},
    };
}

/// A score before its cap, and the two biases that are added to it.
struct Uncapped {
    double score = 0, alibi = 0, mask = 0;
};
double cap_of(double x, double cap) {
    return cap * std::tanh(x / cap);
}
using CappedOf = double (*)(const Uncapped& x, double cap);

double alibi_of(const Specification& s, const MaskPlace& p) {
    if (!s.problem.alibi) return 0;
    const bool from_end =
        s.dialect.causal == CausalAlignment::bottom_right || s.problem.cache.present;
    const std::int64_t off = from_end ? p.len_kv - p.len_q : 0;
    return -s.inputs[Role::alibi_slopes].get(p.head) *
           static_cast<double>(std::abs(p.row + off - p.column));
}

// Scores are made as if the cap stood before the bias, and what they lack is added behind it. The
// scores before the cap are those of the call without it, without mask and biases.
Deviation capped_otherwise(std::string id, std::string says, bool (*has)(const Specification&),
                           CappedOf wanted) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [has, wanted](const Specification& s) -> std::optional<Specification> {
                if (!capped(s) || !has(s)) return std::nullopt;
                const double cap = s.problem.softcap;
                Specification plain = s, early = s;
                plain.problem.softcap = 0;
                plain.problem.mask.tensor = {};
                plain.inputs.erase(Role::mask);
                plain.problem.alibi = false;
                plain.inputs.erase(Role::alibi_slopes);
                early.dialect.softcap = SoftcapPlace::before_bias;
                const auto rows = rows_of(plain);
                return with_bias(early, [&](const MaskPlace& p) {
                    const std::int64_t row =
                        (p.batch * s.problem.heads_q + p.head) * s.problem.len_q + p.query;
                    const oracle::RowDetail& detail = (*rows)[static_cast<std::size_t>(row)];
                    const Uncapped x{detail.scores[static_cast<std::size_t>(p.key)], alibi_of(s, p),
                                     has_additive(s) ? mask_value(s, p) : 0};
                    if (!std::isfinite(x.mask)) return 0.0;  // hidden
                    return wanted(x, cap) - cap_of(x.score, cap) - x.alibi - x.mask;
                });
            },
            .declares = declared_softcap};
}

constexpr double most_of_exp = 44.36;  // exp(2x) is infinite in f32 beyond half of log(FLT_MAX)

bool has_cap_before_bias(const Specification& s) {
    return s.dialect.softcap == SoftcapPlace::before_bias;
}
// Where the bias that is to change its side of the cap is there.
bool has_alibi_to_move(const Specification& s) {
    return has_cap_before_bias(s) ? s.problem.alibi : has_additive(s);
}
bool has_tensor_to_move(const Specification& s) {
    return has_cap_before_bias(s) ? has_additive(s) : s.problem.alibi;
}

struct OtherCap {
    const char *id, *says;
    double factor;
};
constexpr OtherCap other_caps[] = {
    {"softcap_twice", "a soft cap of twice the one given", 2},
    {"softcap_halved", "a soft cap of half the one given", 0.5},
    {"softcap_times_log2e", "a soft cap multiplied by log2(e)", std::numbers::log2e},
    {"softcap_times_ln2", "a soft cap multiplied by ln(2)", std::numbers::ln2},
};

Deviation of_other_cap(const OtherCap& other) {
    return {.id = other.id,
            .says = other.says,
            .respecify =
                [factor = other.factor](const Specification& s) -> std::optional<Specification> {
                if (!capped(s)) return std::nullopt;
                Specification out = s;
                out.problem.softcap *= factor;
                return out;
            }};
}

}  // namespace

std::vector<Deviation> softcap_deviations() {
    // What moves one of two biases stands before what moves both: where there is one they agree.
    std::vector<Deviation> list;
    list.push_back(capped_otherwise(
        "softcap_over_alibi", "a soft cap over scores and ALiBi", has_alibi_to_move,
        [](const Uncapped& x, double cap) { return cap_of(x.score + x.alibi, cap) + x.mask; }));
    list.push_back(capped_otherwise(
        "softcap_over_bias_tensor", "a soft cap over scores and additive mask", has_tensor_to_move,
        [](const Uncapped& x, double cap) { return cap_of(x.score + x.mask, cap) + x.alibi; }));
    for (Deviation& d : caps_misplaced()) list.push_back(std::move(d));
    for (const OtherCap& other : other_caps) list.push_back(of_other_cap(other));
    list.push_back(capped_otherwise("softcap_clipped", "scores clipped at the cap, without a tanh",
                                    has_cap_before_bias, [](const Uncapped& x, double cap) {
                                        return std::clamp(x.score, -cap, cap) + x.alibi + x.mask;
                                    }));
    std::vector<Deviation> overflowing;
    overflowing.push_back(capped_otherwise(
        "softcap_overflows",
        "a tanh of the soft cap made of exp(2x): NaN where a score is above 44 times the cap",
        has_cap_before_bias, [](const Uncapped& x, double cap) {
            return x.score / cap > most_of_exp ? std::nan("")
                                               : cap_of(x.score, cap) + x.alibi + x.mask;
        }));
    overflowing.push_back(capped_otherwise(
        "softcap_overflows_below",
        "a tanh of the soft cap made of exp(-2x): NaN where a score is below -44 times the cap",
        has_cap_before_bias, [](const Uncapped& x, double cap) {
            return x.score / cap < -most_of_exp ? std::nan("")
                                                : cap_of(x.score, cap) + x.alibi + x.mask;
        }));
    for (Deviation& d : overflowing) {
        d.declares = {};  // of the place of the cap, which is right
        list.push_back(std::move(d));
    }
    list.push_back(
        capped_otherwise("softcap_rational", "a soft cap x / (1 + |x| / c) without a tanh",
                         has_cap_before_bias, [](const Uncapped& x, double cap) {
                             return x.score / (1 + std::abs(x.score) / cap) + x.alibi + x.mask;
                         }));
    return list;
}

}  // namespace attest::diagnosis
