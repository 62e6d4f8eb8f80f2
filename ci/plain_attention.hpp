#pragma once
// Attention in double without any bound, as fast as one writes it without effort: Eigen's products
// and an exp that compilers vectorise. What the oracle's speed is measured against, compiled once
// an instruction set.

#include <cstdint>
#include <string>

namespace attest::ci {

struct PlainCall {
    const double *q = nullptr, *k = nullptr, *v = nullptr;  // [len_q, dim], [len_kv, dim] twice
    std::int64_t len_q = 0, len_kv = 0, dim = 0;
    double scale = 1;
    double* out = nullptr;  // [len_q, dim]
};

using PlainAttention = void (*)(const PlainCall&);

/// The one for an instruction set by Highway's name; the portable one where there is no other.
PlainAttention plain_attention(const std::string& instruction_set);

}  // namespace attest::ci
