#include <set>
#include <string>
#include <string_view>
#include <variant>

#include <gtest/gtest.h>

#include "kernels/interface/builtin.hpp"
#include "kernels/mutants/planted.hpp"

namespace attest::museum {

std::vector<PlantedBug> planted_bugs();

namespace {

TEST(Museum, RowsSayWhatIsAskedOfThem) {
    std::set<std::string_view> ids;
    for (const kernel::BuiltinKernel& kernel : mutant_kernels()) {
        ASSERT_NE(kernel.mutant, nullptr) << kernel.id;
        const kernel::Mutant& mutant = *kernel.mutant;
        EXPECT_EQ(kernel.id, "mutant:" + std::string(mutant.id));
        EXPECT_EQ(kernel.summary, mutant.change);
        EXPECT_EQ(kernel.cases, 0) << "a planted bug is not judged as a correct kernel";
        EXPECT_TRUE(ids.insert(mutant.id).second) << mutant.id;
        EXPECT_FALSE(mutant.change.empty()) << mutant.id;
        EXPECT_FALSE(mutant.trigger.empty()) << mutant.id;
        EXPECT_EQ(mutant.equivalent, mutant.must.empty()) << mutant.id;
        EXPECT_TRUE(mutant.kernel == "cpu_flash_plain" || mutant.kernel == "cpu_decode" ||
                    mutant.kernel == "cpu_naive" || mutant.kernel == "cpu_flash" ||
                    mutant.kernel.starts_with("simt_flash"));
        for (const std::string_view law : mutant.must) {
            EXPECT_NE(law.find('.'), std::string_view::npos) << mutant.id << ": " << law;
        }
    }
    EXPECT_GE(ids.size(), 111u);
}

TEST(Museum, KernelsCarryTheirOwnNameInTheManifest) {
    for (const kernel::BuiltinKernel& kernel : mutant_kernels()) {
        if (kernel.api == nullptr) continue;  // in a plug-in: ci's museum asks it
        EXPECT_NE(std::string_view(kernel.api->manifest).find(kernel.id), std::string_view::npos);
        EXPECT_NE(kernel.api->forward, nullptr);
        EXPECT_NE(kernel.api->workspace, nullptr);
    }
}

/// A row that exchanges nothing is the correct kernel under another name.
TEST(Museum, EveryRowExchangesAStep) {
    for (const PlantedBug& bug : planted_bugs()) {
        EXPECT_NE(bug.change, decltype(bug.change)(cpu::FlashSteps{})) << bug.about.id;
        EXPECT_NE(bug.change, decltype(bug.change)(cpu::DecodeSteps{})) << bug.about.id;
        EXPECT_NE(bug.change, decltype(bug.change)(cpu::BackwardSteps<float>{})) << bug.about.id;
        EXPECT_NE(bug.change, decltype(bug.change)(RoundedBackward{})) << bug.about.id;
    }
}

}  // namespace
}  // namespace attest::museum
