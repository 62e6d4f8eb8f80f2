#include "properties/diagnosis/deviation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/diagnosis/rounded_step.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/undropped.hpp"
#include "reference/problem/errors.hpp"

namespace attest::diagnosis {

namespace {

using ElementList = std::vector<bound::ExpectedElement>;

/// Every number is allowed what `more` is beyond `less`.
void allow(ElementList& numbers, const ElementList& more, const ElementList& less) {
    for (std::size_t n = 0; n < numbers.size() && n < more.size() && n < less.size(); ++n)
        if (std::isfinite(numbers[n].bound) && std::isfinite(more[n].bound))
            numbers[n].bound += std::max(0.0, more[n].bound - less[n].bound);
}

// The roundings of 1/(1-p) are a part of the truth's bound that the formula does not know of.
std::optional<bound::Expected> answer_under_dropout(const Deviation& deviation,
                                                    const Specification& asked,
                                                    const bound::Expected& truth) {
    const oracle::Undropped spread(asked.problem, asked.inputs);
    Specification plain{spread.problem(), asked.dialect, asked.numerics, spread.inputs()};
    plain.problem.dropout = {};
    const bound::Expected plain_truth =
        oracle::attend(plain.problem, plain.dialect, plain.numerics, plain.inputs);
    std::optional<bound::Expected> own = deviation.formula(plain, plain_truth);
    if (!own) return std::nullopt;
    bound::Expected folded = spread.folded(std::move(*own));
    allow(folded.output, truth.output, spread.folded(plain_truth).output);
    return folded;
}

}  // namespace

std::span<const Deviation> deviations() {
    static const std::vector<Deviation> list = [] {
        std::vector<Deviation> all;
        for (auto part :
             {lse_deviations(), rounded_log_sums(), mask_deviations(), head_deviations(),
              cache_deviations(), position_deviations(), hidden_deviations(), hidden_at_scores(),
              maximum_deviations(), output_deviations(), score_deviations(), online_deviations(),
              rounding_deviations(), input_deviations()})
            all.insert(all.end(), part.begin(), part.end());
        return all;
    }();
    return list;
}

std::optional<bound::Expected> predict(const Deviation& deviation, const Specification& asked,
                                       const bound::Expected& truth) {
    try {
        if (deviation.formula)
            return asked.problem.dropout.p > 0 && !deviation.takes_dropout
                       ? answer_under_dropout(deviation, asked, truth)
                       : deviation.formula(asked, truth);
        const std::optional<Specification> other = deviation.respecify(asked);
        if (!other) return std::nullopt;
        return oracle::attend(other->problem, other->dialect, other->numerics, other->inputs);
    } catch (const BadInput&) {
        return std::nullopt;  // the deviation makes a problem of this call that has no meaning
    }
}

}  // namespace attest::diagnosis
