#pragma once
// How others decide whether an attention kernel is right: one comparison of outputs on random
// normal inputs. What attest's laws are measured against.

#include <array>
#include <span>
#include <string_view>

namespace attest::ci {

inline constexpr std::size_t peer_rule_count = 6;
inline constexpr std::array<std::string_view, peer_rule_count> peer_rules = {
    "torch.allclose",   "FlashAttention", "ggml NMSE 5e-4",
    "KernelBench 1e-2", "cuDNN 2e-2",     "oneDNN"};

/// Outputs of one call in one order.
struct Outputs {
    std::span<const double> expected, observed;
    std::span<const double> naive;  ///< of a plain kernel of the same formats
    bool bf16 = false;              ///< they are stored so
};

/// Which of the rules accept them.
std::array<bool, peer_rule_count> accepted_by_peers(const Outputs& outputs);

}  // namespace attest::ci
