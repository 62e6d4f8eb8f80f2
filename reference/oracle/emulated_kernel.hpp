#pragma once
// Kernels of many structures, written in float or double for the tests of the bounds: correct ones
// (naive, online softmax of any tile, split and merged, forwards and backwards, base 2, P rounded
// before or after it is normalised), and the same with one defect. They share the list of visible
// keys with the oracle, since what is tested here is arithmetic.

#include <cstdint>
#include <vector>

#include "reference/problem/case.hpp"
#include "reference/problem/dialect.hpp"

namespace attest::oracle {

struct Emulation {
    std::int64_t tile = 0;  ///< 0: one tile, naive
    std::int64_t splits = 1;
    bool merge_by_lse = false;
    bool base_two = false;
    bool backwards = false;        ///< keys from last to first
    bool lanes = false;            ///< sums in 8 interleaved parts
    bool fused = false;            ///< std::fma
    bool normalise_first = false;  ///< P = w / l before the second product (naive alone)
    bool round_weights = false;    ///< to the format of q
    bool sum_rounded = false;
    bool rounded_ds = false;     ///< backward: gradients of mask and slopes add up dS as rounded
    bool sum_tiles = false;      ///< a tile is summed by itself, then added to the rest
    bool aligned_tiles = false;  ///< tiles are [t tile, (t+1) tile) of the keys, not of the visible
    bool sink_afterwards = false;  ///< O times sigmoid(L - sink)
    /// Steps rounded coarser, as Numerics declares them.
    NumberFormat scores = NumberFormat::unrounded, query = NumberFormat::unrounded;
    NumberFormat rotation = NumberFormat::unrounded, bias = NumberFormat::unrounded;
    NumberFormat partials = NumberFormat::unrounded;  ///< of splits
    Operands operands = Operands::unrounded;
    bool cut = false;                                       ///< TF32 is made by cutting off
    NumberFormat gradient_heads = NumberFormat::unrounded;  ///< backward
    double epsilon = 0;
    bool centred_keys = false, centred_values = false;
    std::int64_t unit_block = 0;  ///< products a matrix unit adds at a time; 0: none
};

/// Structure `number` of a fixed sequence of all of them.
Emulation random_emulation(std::uint64_t number);

enum class EmulatedDefect : std::uint8_t {
    none,
    scale_off,  ///< scale times 1 + 2^-12
    last_key_lost,
    sum_in_bf16,
    exp_off,       ///< relative error of 2^-13
    rescale_lost,  ///< O is not rescaled at the last tile
    truncated,     ///< output rounded toward zero
};

struct Observed {
    std::vector<double> output, lse;  // rounded to the problem's formats
};

Observed emulate(const Case& tried, const Dialect& dialect, const TensorSet& inputs,
                 const Emulation& how, EmulatedDefect defect = EmulatedDefect::none);

/// The numerics such a kernel declares.
Numerics declared(const Emulation& how);

}  // namespace attest::oracle
