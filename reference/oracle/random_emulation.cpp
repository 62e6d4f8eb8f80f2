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
    return numerics;
}

}  // namespace attest::oracle
