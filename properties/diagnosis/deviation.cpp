#include "properties/diagnosis/deviation.hpp"

#include "properties/diagnosis/rounded_step.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"

namespace attest::diagnosis {

std::span<const Deviation> deviations() {
    static const std::vector<Deviation> list = [] {
        std::vector<Deviation> all;
        for (auto part :
             {lse_deviations(), rounded_log_sums(), mask_deviations(), head_deviations(),
              cache_deviations(), position_deviations(), hidden_deviations(), maximum_deviations(),
              output_deviations(), score_deviations(), online_deviations(), rounding_deviations(),
              input_deviations()})
            all.insert(all.end(), part.begin(), part.end());
        return all;
    }();
    return list;
}

std::optional<bound::Expected> predict(const Deviation& deviation, const Specification& asked,
                                       const bound::Expected& truth) {
    try {
        if (deviation.formula) return deviation.formula(asked, truth);
        const std::optional<Specification> other = deviation.respecify(asked);
        if (!other) return std::nullopt;
        return oracle::attend(other->problem, other->dialect, other->numerics, other->inputs);
    } catch (const BadInput&) {
        return std::nullopt;  // the deviation makes a problem of this call that has no meaning
    }
}

}  // namespace attest::diagnosis
