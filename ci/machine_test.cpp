#include "ci/machine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace attest::ci {
namespace {

TEST(Machine, AGpuIsNamedWithItsDriver) {
    const std::string folder = testing::TempDir() + "attest_nvidia_" + std::to_string(::getpid());
    EXPECT_EQ(gpu_in(folder), "");
    std::filesystem::create_directories(folder + "/gpus/0000:01:00.0");
    std::ofstream(folder + "/gpus/0000:01:00.0/information")
        << "Model: \t\t NVIDIA H100 PCIe\nIRQ:   \t\t 142\n";
    const auto told = [&](const std::string& line) {
        std::ofstream(folder + "/version")
            << "NVRM version: " << line << "\nGCC version:  gcc 12\n";
        return gpu_in(folder);
    };
    EXPECT_EQ(told("NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"),
              "NVIDIA H100 PCIe, driver 535.104.05");
    EXPECT_EQ(told("NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (root)"),
              "NVIDIA H100 PCIe, driver 550.54.15");
    EXPECT_EQ(told("of another form"), "NVIDIA H100 PCIe, driver unknown");
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace attest::ci
