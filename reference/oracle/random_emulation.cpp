#include <iterator>

#include "reference/oracle/emulated_kernel.hpp"
#include "reference/problem/counter.hpp"

namespace attest::oracle {

Emulation random_emulation(std::uint64_t number) {
    const auto bit = [&](std::uint64_t which) { return counter_bits(number, 78, which) % 2 == 0; };
    Emulation how;
    constexpr std::int64_t tiles[] = {0, 1, 4, 16};
    how.tile = tiles[counter_bits(number, 79, 0) % 4];
    how.splits = bit(0) ? 1 : 3;
    how.merge_by_lse = bit(1);
    how.base_two = bit(2);
    how.backwards = bit(3);
    how.lanes = bit(4);
    how.fused = bit(5);
    how.round_weights = bit(6);
    how.sum_rounded = how.round_weights && bit(7);
    how.normalise_first = how.tile == 0 && how.splits == 1 && !how.sum_rounded && bit(8);
    how.sink_afterwards = bit(9);
    how.sum_tiles = how.tile > 0 && bit(10);
    constexpr std::int64_t blocks[] = {0, 0, 0, 4, 8, 16};
    // In one of three, one or two steps.
    const auto step = [&](std::uint64_t which, NumberFormat& format) {
        constexpr NumberFormat formats[] = {NumberFormat::f16, NumberFormat::bf16};
        if (counter_bits(number, 81, which) % 8 == 0)
            format = formats[counter_bits(number, 82, which) % 2];
    };
    if (counter_bits(number, 83, 0) % 3 == 0) {
        step(0, how.scores);
        step(1, how.query);
        step(2, how.rotation);
        step(3, how.bias);
        if (how.splits > 1) step(7, how.partials);
        if (counter_bits(number, 81, 4) % 8 == 0) how.epsilon = 0x1p-20;
        how.centred_keys = counter_bits(number, 81, 5) % 8 == 0;
        how.centred_values = counter_bits(number, 81, 6) % 8 == 0;
    }
    constexpr Operands operands[] = {Operands::tf32, Operands::tf32, Operands::f16, Operands::bf16,
                                     Operands::f32};
    if (counter_bits(number, 84, 0) % 8 == 0) {
        how.operands = operands[counter_bits(number, 84, 1) % std::size(operands)];
        how.cut = counter_bits(number, 84, 2) % 2 == 0;
    }
    if (!how.normalise_first) how.unit_block = blocks[counter_bits(number, 80, 0) % 6];
    return how;
}

Numerics declared(const Emulation& how) {
    Numerics numerics;
    numerics.weights = how.round_weights ? NumberFormat::same : NumberFormat::f64;
    numerics.sum_weights = how.sum_rounded ? SumWeights::rounded : SumWeights::unrounded;
    numerics.tile = how.tile;
    numerics.matrix_unit = how.unit_block > 0;
    numerics.sum_chunk = how.sum_tiles && how.splits == 1 ? how.tile : 0;
    numerics.scores = how.scores;
    numerics.query = how.query;
    numerics.rotation = how.rotation;
    numerics.bias = how.bias;
    numerics.partials = how.partials;
    numerics.operands = how.operands;
    numerics.gradient_heads = how.gradient_heads;
    numerics.epsilon = how.epsilon;
    numerics.centred_keys = how.centred_keys;
    numerics.centred_values = how.centred_values;
    return numerics;
}

}  // namespace attest::oracle
