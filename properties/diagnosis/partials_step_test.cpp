// Outputs of splits that are kept in a narrower format: told from sums that are rounded on the way,
// and from weights that are.

#include <gtest/gtest.h>

#include <cmath>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/step_experiment.hpp"

namespace attest::diagnosis {
namespace {

/// Parts of so many keys, each of whose outputs is rounded, over the sum of its weights or not.
Answer parts_of(std::size_t keys, bool divided, Precision format) {
    return row_by_row([=](const std::vector<double>& below, const std::vector<double>& values) {
        RowAnswer answer;
        for (std::size_t first = 0; first < below.size(); first += keys) {
            double sum = 0, output = 0;
            for (std::size_t j = first; j < std::min(below.size(), first + keys); ++j) {
                sum += std::exp(below[j]);
                output += std::exp(below[j]) * values[j];
            }
            answer.sum += sum;
            answer.output +=
                divided ? sum * round_to(output / sum, format) : round_to(output, format);
        }
        answer.output /= answer.sum;
        return answer;
    });
}

Answer weights_in(Precision format) {
    return row_by_row(
        [format](const std::vector<double>& below, const std::vector<double>& values) {
            RowAnswer answer;
            for (std::size_t j = 0; j < below.size(); ++j) {
                answer.sum += std::exp(below[j]);
                answer.output += round_to(std::exp(below[j]), format) * values[j];
            }
            answer.output /= answer.sum;
            return answer;
        });
}

bool refuted(Answer answer, const char* id) {
    Actor actor(std::move(answer));
    return step_refuted(actor, parse_case("b1 hq2 hkv2 tq4 tk16 d8 f32"), id);
}

TEST(PartialsStep, IsBorneOutByRoundedParts) {
    for (const bool divided : {true, false}) {
        EXPECT_FALSE(refuted(parts_of(16, divided, Precision::bf16), "step_partials_bf16"));
        EXPECT_FALSE(refuted(parts_of(16, divided, Precision::f16), "step_partials_f16"));
        EXPECT_TRUE(refuted(parts_of(16, divided, Precision::bf16), "step_partials_f16"));
    }
}

TEST(PartialsStep, IsRefutedByWhatIsRoundedElsewhere) {
    // A sum that is rounded after each key is no part of one.
    EXPECT_TRUE(refuted(weights_in(Precision::bf16), "step_partials_bf16"));
    const Answer key_by_key =
        row_by_row([](const std::vector<double>& below, const std::vector<double>& values) {
            RowAnswer answer;
            for (std::size_t j = 0; j < below.size(); ++j) {
                answer.sum += std::exp(below[j]);
                answer.output =
                    round_to(answer.output + std::exp(below[j]) * values[j], Precision::bf16);
            }
            answer.output /= answer.sum;
            return answer;
        });
    EXPECT_TRUE(refuted(key_by_key, "step_partials_bf16"));
}

}  // namespace
}  // namespace attest::diagnosis
