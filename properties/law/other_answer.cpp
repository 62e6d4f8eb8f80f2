#include "properties/law/other_answer.hpp"

#include <utility>

namespace attest::law {

OtherAnswer same_shape(const Run& call, bound::Expected expected) {
    const Tensor& output = call.output();
    OtherAnswer other;
    other.expected = std::move(expected);
    other.flat = [&output](const Row& row, std::int64_t channel) {
        return output.flat(row.batch, row.head, row.query, channel);
    };
    return other;
}

Judgement not_the_other(const Run& call, const OtherAnswer& other) {
    const Problem& problem = call.problem();
    const Precision format = call.output_format();
    std::int64_t compared = 0;
    for (const RowMatch& match : defined_rows(call)) {
        const Row& row = match.first;
        std::int64_t apart = 0, foreign = 0, first = 0;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const std::int64_t at = call.output().flat(row.batch, row.head, row.query, c);
            const Admitted own = admitted(call.expected_output(at), format);
            const Admitted others = admitted(
                other.expected.output[static_cast<std::size_t>(other.flat(row, c))], format);
            if (certain_change(own, others) == 0) continue;
            if (apart++ == 0) first = c;
            const double observed = call.output().get(at);
            foreign += observed >= others.low && observed <= others.high ? 1 : 0;
        }
        // One number alone may lie in the other interval by accident.
        if (apart < 2) continue;
        compared += apart;
        if (foreign < apart) continue;
        const std::int64_t at = call.output().flat(row.batch, row.head, row.query, first);
        const bound::ExpectedElement& asked = call.expected_output(at);
        Violation v;
        v.problem = other.sentence(row);
        v.index = {row.batch, row.head, row.query, first};
        v.element_name = "output of " + name_of(problem, row);
        v.expected = asked.value;
        v.observed = call.output().get(at);
        v.bound = asked.bound + asked.error;
        v.ratio = bound::error_ratio(v.observed, asked, format);
        return violated(std::move(v), compared);
    }
    return nothing_compared(compared, 0, "both specifications give the same answers here");
}

}  // namespace attest::law
