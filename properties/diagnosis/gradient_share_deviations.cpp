// Deviations of backward whose query heads each leave a share of dK and dV in the format that these
// come in, where a group has several: rounded before they are added up, or as their sum grows. And
// gradients that are cut off instead of rounded.

#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

enum class RoundedShares : std::uint8_t { shares, growing_sum, both };

/// dK and dV of one query head of each group.
Predicted share_of(const BackwardCall& call, std::int64_t member) {
    ModelSteps alone;
    alone.into_keys = [member](const BackwardCall& c, std::int64_t h) {
        return h % c.call.group == member;
    };
    return run_backward(call, alone);
}

void round_heads(const BackwardCall& call, Predicted& out, RoundedShares what) {
    constexpr Role roles[] = {Role::d_k, Role::d_v};
    for (const Role role : roles) out[role].assign(out[role].size(), {});
    for (std::int64_t member = 0; member < call.call.group; ++member) {
        Predicted own = share_of(call, member);
        for (const Role role : roles) {
            const Precision format = law::gradient_format(call.problem(), role);
            std::vector<Near>& sum = out[role];
            for (std::size_t n = 0; n < sum.size(); ++n) {
                const Near share = own[role][n];
                sum[n] = sum[n] +
                         (what == RoundedShares::growing_sum ? share : rounded_to(share, format));
                if (what != RoundedShares::shares) sum[n] = rounded_to(sum[n], format);
                sum[n] = rounded(sum[n], call.model.ua, 0);
            }
        }
    }
}

BackwardDeviation heads_rounded(const char* id, const char* says, RoundedShares what) {
    return exchanged_step(id, says, [what](const BackwardCall& call, ModelSteps& s) {
        if (call.call.group == 1) return;
        s.afterwards = [what](const BackwardCall& c, Predicted& out) { round_heads(c, out, what); };
    });
}

/// A group's heads taken two at a time, the last of an odd number twice.
void add_last_head_again(const BackwardCall& call, Predicted& out) {
    if (call.call.group % 2 == 0 || call.call.group == 1) return;
    Predicted own = share_of(call, call.call.group - 1);
    for (const Role role : {Role::d_k, Role::d_v})
        for (std::size_t n = 0; n < out[role].size(); ++n)
            out[role][n] = rounded(out[role][n] + own[role][n], 2 * call.model.ua, 0);
}

Near number_cut_off(Near x, Precision format) {
    const double low = cut_off(x.value - x.error, format),
                 high = cut_off(x.value + x.error, format);
    return {(low + high) / 2, std::abs(high - low) / 2};
}

/// What every gradient is finished with.
void cut_gradients_off(const BackwardCall& call, Predicted& out) {
    for (const Role role : gradient_roles)
        for (Near& x : out[role])
            if (std::isfinite(most(x)))
                x = number_cut_off(x, law::gradient_format(call.problem(), role));
}

}  // namespace

std::vector<BackwardDeviation> gradient_share_deviations() {
    return {heads_rounded("heads_rounded_apart",
                          "dK and dV of each query head rounded to their format before a group's "
                          "are added up",
                          RoundedShares::shares),
            heads_rounded("heads_rounded_as_added",
                          "dK and dV rounded to their format whenever a query head's are added",
                          RoundedShares::growing_sum),
            heads_rounded("heads_rounded_and_as_added",
                          "dK and dV of each query head rounded to their format, and again "
                          "whenever they are added to a group's",
                          RoundedShares::both),
            exchanged_step(
                "last_head_twice",
                "dK and dV with the last query head of a group of an odd number twice",
                [](const BackwardCall&, ModelSteps& s) { s.afterwards = add_last_head_again; }),
            {.id = "gradients_cut_off",
             .says = "gradients cut off instead of rounded",
             .change = [](const BackwardCall&, ModelSteps& s) { s.afterwards = cut_gradients_off; },
             .in_forward = "output_cut_off"}};
}

}  // namespace attest::diagnosis
