// Planted bugs in what becomes of NaN.

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {

std::vector<PlantedBug> nonfinite() {
    return {{{.id = "M060",
              .bug_class = "N7",
              .operation = "flash forward",
              .change = "the maximum drops a NaN and so does the comparison behind it",
              .trigger = "NaN in a visible key",
              .must = {"hygiene.nonfinite"}},
             cpu::FlashSteps{.largest =
                                 [](const cpu::PlainRow& row) {
                                     float max = cpu::minus_infinity;
                                     for (std::int64_t j = 0; j < row.keys; ++j)
                                         if (!row.hidden[j] && row.scores[j] > max)
                                             max = row.scores[j];
                                     return max;
                                 },
                             .weight =
                                 [](const cpu::PlainRow&, float score, float frame) {
                                     return score <= frame ? std::exp(score - frame) : 0.0f;
                                 }}},
            {{.id = "M498",
              .bug_class = "N7",
              .operation = "flash forward",
              .change = "a NaN is stored as infinity where the output is narrowed",
              .trigger = "NaN in a visible key or value, output in f16 or bf16",
              .must = {"hygiene.nonfinite"}},
             cpu::FlashSteps{.store = [](const cpu::PlainRow& row, float* output, float lse) {
                 const cpu::Call& call = row.block.call;
                 const bool narrowed = call.o.format != cpu::Format::f32;
                 for (std::int64_t c = 0; narrowed && c < call.problem.dim_v; ++c)
                     if (std::isnan(output[c])) output[c] = -cpu::minus_infinity;
                 cpu::plain::store(row, output, lse);
             }}},
            {{.id = "M499",
              .bug_class = "N7",
              .operation = "flash forward",
              .change = "a visible key whose weight is 0 is passed over",
              .trigger = "NaN or infinity in a visible value whose weight underflows",
              .must = {"hygiene.nonfinite"}},
             cpu::FlashSteps{
                 .add_value = [](const cpu::PlainRow& row, float weight, const float* value) {
                     if (weight != 0) cpu::plain::add_value(row, weight, value);
                 }}}};
}

}  // namespace attest::museum
