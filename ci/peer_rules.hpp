#pragma once
// How others decide whether an attention kernel is right: one comparison of outputs on random
// normal inputs. What attest's laws are measured against.

#include <array>
#include <span>
#include <string_view>

namespace attest::ci {

inline constexpr std::size_t peer_rule_count = 4;
inline constexpr std::array<std::string_view, peer_rule_count> peer_rules = {
    "torch.allclose", "FlashAttention", "ggml NMSE 5e-4", "KernelBench 1e-2"};

/// Which of the rules accept an output. `naive`: that of a plain kernel of the same formats.
std::array<bool, peer_rule_count> accepted_by_peers(std::span<const double> expected,
                                                    std::span<const double> observed,
                                                    std::span<const double> naive);

}  // namespace attest::ci
