#include "kernels/mutants/museum.hpp"

#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "kernels/interface/builtin.hpp"

namespace attest {
namespace {

TEST(Museum, EveryRowHasOneKernelAndEveryKernelOneRow) {
    std::set<std::string> rows, kernels;
    for (const Mutant& mutant : museum()) {
        EXPECT_TRUE(rows.insert("mutant:" + std::string(mutant.id)).second) << mutant.id;
    }
    for (const BuiltinKernel& kernel : mutant_kernels()) {
        EXPECT_TRUE(kernels.insert(std::string(kernel.id)).second) << kernel.id;
    }
    EXPECT_EQ(rows, kernels);
    EXPECT_GE(rows.size(), 30u);
}

TEST(Museum, RowsSayWhatIsAskedOfThem) {
    for (const Mutant& mutant : museum()) {
        EXPECT_FALSE(mutant.change.empty()) << mutant.id;
        EXPECT_FALSE(mutant.trigger.empty()) << mutant.id;
        EXPECT_EQ(mutant.equivalent, mutant.must.empty()) << mutant.id;
        EXPECT_TRUE(mutant.kernel == "cpu_flash_plain" || mutant.kernel == "cpu_decode" ||
                    mutant.kernel.starts_with("simt_flash"));
        for (const std::string_view law : mutant.must) {
            EXPECT_NE(law.find('.'), std::string_view::npos) << mutant.id << ": " << law;
        }
    }
}

TEST(Museum, KernelsCarryTheirOwnNameInTheManifest) {
    std::set<const void*> bodies;
    for (const BuiltinKernel& kernel : mutant_kernels()) {
        EXPECT_FALSE(kernel.summary.empty());
        if (kernel.api == nullptr) continue;  // in a plug-in: ci's museum asks it
        EXPECT_NE(std::string_view(kernel.api->manifest).find(kernel.id), std::string_view::npos);
        EXPECT_NE(kernel.api->forward, nullptr);
        EXPECT_NE(kernel.api->workspace, nullptr);
        EXPECT_TRUE(bodies.insert(reinterpret_cast<const void*>(kernel.api->forward)).second)
            << kernel.id << " shares its body with another";
    }
}

}  // namespace
}  // namespace attest
