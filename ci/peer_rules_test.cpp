// Others' rules, each on both sides of its threshold.

#include "ci/peer_rules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace attest::ci {
namespace {

/// The rules that accept 1000 outputs of 1, `off` of which differ by `error`.
std::string accepts(double error, int off = 1000, bool bf16 = false, double naive_error = 1) {
    const std::vector<double> expected(1000, 1);
    std::vector<double> observed = expected, naive = expected;
    for (int n = 0; n < off; ++n) observed[static_cast<std::size_t>(n)] += error;
    naive.front() += naive_error;
    const auto accepted = accepted_by_peers({expected, observed, naive, bf16});
    std::string text;
    for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
        text += (text.empty() || !accepted[rule] ? "" : ", ") +
                std::string(accepted[rule] ? peer_rules[rule] : "");
    return text;
}

TEST(PeerRules, EachHasItsThreshold) {
    EXPECT_EQ(
        accepts(0.9e-5),
        "torch.allclose, FlashAttention, ggml NMSE 5e-4, KernelBench 1e-2, cuDNN 2e-2, oneDNN");
    EXPECT_EQ(accepts(1.1e-5),
              "FlashAttention, ggml NMSE 5e-4, KernelBench 1e-2, cuDNN 2e-2, oneDNN");
    EXPECT_EQ(accepts(1.4e-3, 1000, false, 0.6e-3),
              "ggml NMSE 5e-4, KernelBench 1e-2, cuDNN 2e-2, oneDNN");
    EXPECT_EQ(accepts(1.5e-3), "FlashAttention, ggml NMSE 5e-4, KernelBench 1e-2, cuDNN 2e-2");
    EXPECT_EQ(accepts(0.022), "FlashAttention, ggml NMSE 5e-4, cuDNN 2e-2");
    EXPECT_EQ(accepts(0.0225), "FlashAttention, cuDNN 2e-2");
    EXPECT_EQ(accepts(3), "");
}

TEST(PeerRules, OneDnnLetsTwoInAThousandBeOff) {
    EXPECT_NE(accepts(0.029, 2).find("oneDNN"), std::string::npos);
    EXPECT_EQ(accepts(0.029, 3).find("oneDNN"), std::string::npos);
    EXPECT_EQ(accepts(0.031, 1).find("oneDNN"), std::string::npos);
    EXPECT_NE(accepts(0.0078, 1000, true).find("oneDNN"), std::string::npos);
    EXPECT_EQ(accepts(0.0080, 1000, true).find("oneDNN"), std::string::npos);
}

TEST(PeerRules, OneNanIsSeenByAllButOneDnn) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(accepts(nan, 1), "oneDNN");
    EXPECT_EQ(accepts(nan, 3), "");
}

}  // namespace
}  // namespace attest::ci
