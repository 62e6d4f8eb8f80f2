#include "properties/law/other_answer.hpp"

#include <algorithm>
#include <utility>

namespace attest::law {

namespace {

/// From the interval; NaN lies nowhere.
double distance(double observed, const Admitted& interval) {
    if (observed < interval.low) return interval.low - observed;
    if (observed > interval.high) return observed - interval.high;
    return observed - observed;
}

/// 0 in the asked interval, 1 half-way to the other one.
double side_ratio(double observed, const Admitted& own, const Admitted& foreign) {
    const double near = distance(observed, own), far = distance(observed, foreign);
    return near == 0 ? 0 : 2 * near / (near + far);
}

}  // namespace

OtherAnswer same_shape(const Run& call, bound::Expected expected) {
    const Tensor& output = call.output();
    OtherAnswer other;
    other.expected = std::move(expected);
    other.flat = [&output](const Row& row, std::int64_t channel) {
        return output.flat(row.batch, row.head, row.query, channel);
    };
    return other;
}

Verdict not_the_other(const Run& call, const OtherAnswer& other) {
    const Problem& problem = call.problem();
    const Precision format = call.output_format();
    std::int64_t compared = 0;
    double worst = 0;
    for (const RowMatch& match : defined_rows(call))
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const Row& row = match.first;
            const std::int64_t at = call.output().flat(row.batch, row.head, row.query, c);
            const bound::ExpectedElement& asked = call.expected_output(at);
            const bound::ExpectedElement& instead =
                other.expected.output[static_cast<std::size_t>(other.flat(row, c))];
            const Admitted own = admitted(asked, format), foreign = admitted(instead, format);
            if (certain_change(own, foreign) == 0) continue;
            ++compared;
            const double observed = call.output().get(at);
            if (distance(observed, own) < distance(observed, foreign)) {
                worst = std::max(worst, side_ratio(observed, own, foreign));
                continue;
            }
            Violation v;
            v.problem = other.sentence(row);
            v.index = {row.batch, row.head, row.query, c};
            v.element_name = "output of " + name_of(problem, row);
            v.expected = asked.value;
            v.observed = observed;
            v.bound = asked.bound + asked.error;
            v.ratio = bound::error_ratio(observed, asked, format);
            return violated(std::move(v), compared);
        }
    return nothing_compared(compared, worst, "both specifications give the same answers here");
}

}  // namespace attest::law
