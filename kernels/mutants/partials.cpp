// Splits whose outputs are kept in bfloat16 until they are merged, as vLLM's paged attention keeps
// them in the format of q: right where it is declared, a planted bug where it is not.

#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

template <typename Real>
Real merge_of_bf16(const cpu::Parts<Real>& parts, const Real* sink, Real* merged) {
    parts.each_seen([&](std::int64_t part, Real* output) {
        const Real sum = parts.at.sum[part];
        for (std::int64_t c = 0; sum > 0 && c < parts.dim_v; ++c) {
            const auto mean = static_cast<float>(output[c] / sum);
            output[c] = static_cast<Real>(cpu::rounded(mean, cpu::Format::bf16)) * sum;
        }
    });
    return cpu::split::merge(parts, sink, merged);
}

constexpr cpu::DecodeSteps in_bf16{.merge_f32 = merge_of_bf16, .merge_f64 = merge_of_bf16};

}  // namespace

std::vector<PlantedBug> partials() {
    return {{{.id = "M496",
              .bug_class = "N4",
              .operation = "merge",
              .change = "outputs of splits in bfloat16 until they are merged",
              .trigger = "none: it is declared",
              .equivalent = true},
             in_bf16,
             R"("partials": "bf16", )"},
            {{.id = "M497",
              .bug_class = "N4",
              .operation = "merge",
              .change = "outputs of splits in bfloat16 until they are merged, undeclared",
              .trigger = "an output that is no number of bfloat16",
              .source = "https://github.com/vllm-project/vllm",
              .must = {"reference.output"},
              .diagnosis = "split_outputs_rounded"},
             in_bf16}};
}

}  // namespace attest::museum
