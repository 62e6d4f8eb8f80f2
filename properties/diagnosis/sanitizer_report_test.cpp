// What compute-sanitizer prints, as its manual and its users show it, and what it is not.

#include "properties/diagnosis/sanitizer_report.hpp"

#include <gtest/gtest.h>

namespace attest::diagnosis {
namespace {

using Findings = std::vector<SanitizerFinding>;

SanitizerReport report(std::string text) {
    return read_sanitizer_report("========= COMPUTE-SANITIZER\n" + text);
}

TEST(SanitizerReport, AStrayWriteIsToldWithItsLineAndKernel) {
    const SanitizerReport r = report(
        "attest replay  mine 1\n"
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at oob_write(int *, int, int)+0xd0 in /src/oob_demo.cu:9\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "=========     Access at 0x7f241b0001e0 is out of bounds\n"
        "=========     and is 33 bytes after the nearest allocation at 0x7f241b000000 of size 448\n"
        "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
        "=========         Host Frame: main in oob_demo.cu:25 [0x8a81] in oob_demo\n"
        "========= \n"
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at oob_write(int *, int, int)+0xd0 in /src/oob_demo.cu:9\n"
        "=========     by thread (1,0,0) in block (0,0,0)\n"
        "========= Error: process didn't terminate successfully\n"
        "========= Target application returned an error\n"
        "========= ERROR SUMMARY: 2 errors\n");
    const Findings expected{{"Invalid __global__ write of size 4 bytes at oob_demo.cu:9",
                             "oob_write(int *, int, int)"}};
    EXPECT_EQ(r.findings, expected);
    EXPECT_EQ(r.errors, 2);
    EXPECT_EQ(r.trouble, "");
}

TEST(SanitizerReport, OtherReleasesWriteThePlaceOtherwise) {
    const auto place = [](const std::string& text) {
        const SanitizerReport r = report(
            "========= Invalid __shared__ read of size 2\n"
            "=========     at " +
            text + "\n");
        return r.findings.empty() ? SanitizerFinding{} : r.findings.front();
    };
    const std::string says = "Invalid __shared__ read of size 2";
    using F = SanitizerFinding;
    EXPECT_EQ(place("0x000000c8 in ../src/my_helper.cuh:75:void project<double>(double*, int)"),
              (F{says + " at my_helper.cuh:75", "void project<double>(double*, int)"}));
    EXPECT_EQ(place("unaligned_kernel():0x160 in memcheck_demo.cu:6"),
              (F{says + " at memcheck_demo.cu:6", "unaligned_kernel()"}));
    EXPECT_EQ(place("unaligned_kernel()+0x50"), (F{says, "unaligned_kernel()"}));
    EXPECT_EQ(place("0x1234 in SomeKernel"), (F{says, "SomeKernel"}));
    EXPECT_EQ(place("0x79d8"), (F{says, ""}));
    EXPECT_EQ(place("[clone k(int *, int *)] outlined()+0x11f0 in test.cu:42"),
              (F{says + " at test.cu:42", "[clone k(int *, int *)] outlined()"}));
}

TEST(SanitizerReport, ARaceNamesBothSides) {
    const SanitizerReport r = report(
        "========= Error: Race reported between Write access at sum(int *, int *)+0x90 in "
        "/src/block_error.cu:51\n"
        "=========     and Read access at sum(int *, int *)+0x100 in /src/block_error.cu:53 "
        "[508 hazards]\n"
        "=========\n"
        "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n");
    const Findings expected{
        {"Race reported between Write access at block_error.cu:51 and Read "
         "access at block_error.cu:53",
         "sum(int *, int *)"}};
    EXPECT_EQ(r.findings, expected);
    EXPECT_EQ(r.errors, 1);
}

TEST(SanitizerReport, BarriersAndReadsOfNothing) {
    const SanitizerReport r = report(
        "========= Barrier error detected. Divergent thread(s) in warp\n"
        "=========     at diverge(int *, int)+0xf0 in divergence.cu:79\n"
        "=========     by thread (37,0,0) in block (0,0,0)\n"
        "========= Uninitialized __global__ memory read of size 4 bytes\n"
        "=========     at add(int *)+0x70 in memset_error.cu:41\n"
        "=========     Address 0x7f3c7ec000fc\n"
        "========= Barrier called by threads starting at (32,0,0) in block (1,0,0), (active mask: "
        "0xffffffff) at kernel()+0x2b0 in app.cu:36\n"
        "========= ERROR SUMMARY: 3 errors\n");
    ASSERT_EQ(r.findings.size(), 3u);
    EXPECT_EQ(r.findings[0].says,
              "Barrier error detected. Divergent thread(s) in warp at divergence.cu:79");
    EXPECT_EQ(r.findings[1].kernel, "add(int *)");
    EXPECT_EQ(r.findings[2].says,
              "Barrier called by threads starting at (32,0,0) in block (1,0,0), (active mask: "
              "0xffffffff) at app.cu:36");
    EXPECT_EQ(r.findings[2].kernel, "kernel()");
}

TEST(SanitizerReport, TheToolsOwnTroubleIsNoFinding) {
    for (const char* trouble : {"Device not supported. Please refer to the \"Supported Devices\" "
                                "section of the sanitizer "
                                "documentation",
                                "Target application terminated before first instrumented API call",
                                "No attachable process found. compute-sanitizer timed-out."}) {
        const SanitizerReport r = report(std::string("========= Error: ") + trouble +
                                         "\n========= \n========= ERROR SUMMARY: 1 error\n");
        EXPECT_EQ(r.findings, Findings{});
        EXPECT_EQ(r.trouble, trouble);
    }
    EXPECT_EQ(report("========= Internal Sanitizer Error: The Sanitizer encountered an error while "
                     "launching flash and didn't track the launch. Errors might go undetected.\n"
                     "========= ERROR SUMMARY: 0 errors\n")
                  .trouble.substr(0, 24),
              "Internal Sanitizer Error");
}

TEST(SanitizerReport, RubbishIsNeitherAFindingNorClean) {
    EXPECT_FALSE(read_sanitizer_report("").errors);
    EXPECT_FALSE(report("").errors);
    EXPECT_FALSE(report("========= ERROR SUMMARY: many errors\n").errors);
    EXPECT_FALSE(report("========= ERROR SUMMARY: -1 errors\n").errors);
    const SanitizerReport r =
        report("========= at  in :\n=========     at in at +0x in :0x\n========= \xff\n=====\n");
    EXPECT_EQ(r.findings, Findings{});
    EXPECT_EQ(r.trouble, "at  in :");
    std::string text = report("").trouble;
    for (int n = 0; n < 2000; ++n) {  // any bytes of these are read without harm
        text += "= at+0x:in \n"[n * n * 7 % 12];
        (void)read_sanitizer_report("========= " + text);
    }
}

}  // namespace
}  // namespace attest::diagnosis
