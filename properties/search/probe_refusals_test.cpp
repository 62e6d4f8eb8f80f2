// What a kernel says of a refusal is told beside that refusal, and beside no other.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/search/capability.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/kernel.hpp"

namespace attest::search {
namespace {

/// Two rules, looked at in this order.
class TwoRules final : public Kernel {
public:
    TwoRules() {
        manifest_.name = "two";
        manifest_.formats = {kernel::Formats(Precision::f32)};
        manifest_.features =
            FeatureSet(Feature::causal, Feature::window, Feature::rope, Feature::gqa);
    }
    const kernel::Manifest& manifest() const noexcept override { return manifest_; }
    bool supports(const Problem& p, std::string* reason) override {
        const bool window = p.mask.window.limited() && !p.mask.causal,
                   turned = p.rope.style != RopeStyle::none && !p.mask.causal;
        if (reason != nullptr)
            *reason = window ? "a window needs causal" : turned ? "positions need causal" : "";
        return !window && !turned;
    }
    worker::CallResult forward(const Problem&, const TensorSet&) override { return {}; }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    kernel::Manifest manifest_;
};

TEST(ProbeRefusals, EachHasItsOwnReason) {
    TwoRules kernel;
    Capability capability = declared_capability(kernel.manifest());
    const std::vector<std::string> said = learn_refusals(kernel, capability);
    const auto told = [&](const std::string& beginning) {
        return std::ranges::any_of(
            said, [&](const std::string& one) { return one.starts_with(beginning); });
    };
    EXPECT_TRUE(told("refuses window without causal (a window needs causal), "));
    EXPECT_TRUE(told("refuses rope without causal (positions need causal), "));
    EXPECT_EQ(said.size(), 2u) << said.front();
}

}  // namespace
}  // namespace attest::search
