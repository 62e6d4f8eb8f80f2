// Planted bugs of the rounding that a backward declares: P before dV, dS before dQ and dK.

#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted_backward.hpp"

namespace attest::museum {
namespace {

using Steps = cpu::BackwardSteps<float>;
using Pair = cpu::BackPair<float>;

bool is_half(const Pair& pair) {
    const cpu::Format format = pair.row.call.format_q;
    return format == cpu::Format::f16 || format == cpu::Format::bf16;
}

float to_format(const Pair& pair, float x) {
    return is_half(pair) ? cpu::rounded(x, pair.row.call.format_q) : x;
}

float rounded_weight(const Pair& pair) {
    return to_format(pair, cpu::plain::value_weight(pair));
}

float rounded_dx(const Pair& pair, float dx) {
    return to_format(pair, dx);
}

/// A cast that keeps the upper bits.
float truncated_weight(const Pair& pair) {
    const float weight = cpu::plain::value_weight(pair);
    if (!is_half(pair)) return weight;
    const std::uint32_t lost = pair.row.call.format_q == cpu::Format::f16 ? 13 : 16;
    const std::uint32_t kept = std::bit_cast<std::uint32_t>(weight) >> lost << lost;
    return to_format(pair, std::bit_cast<float>(kept));
}

}  // namespace

std::vector<PlantedBug> backward_rounding() {
    return {
        {backward_bug("M484", "N4", "P is not rounded before dV, as it is declared to be",
                      "f16 or bf16", "", {"gradients.structure"}),
         RoundedBackward{Steps{.score_gradient = rounded_dx}}},
        {backward_bug("M485", "N4", "dS is not rounded before dQ and dK, as it is declared to be",
                      "f16 or bf16", "", {"gradients.structure"}),
         RoundedBackward{Steps{.value_weight = rounded_weight}}},
        {backward_bug("M486", "N4", "P is cut off before dV, not rounded to nearest", "f16 or bf16",
                      "", {"reference.gradients", "gradients.structure"}),
         RoundedBackward{Steps{.value_weight = truncated_weight, .score_gradient = rounded_dx}}},
    };
}

}  // namespace attest::museum
