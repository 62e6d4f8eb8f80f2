// One micro kernel for each diagnosis, and a clean counterpart that must stay silent, under every
// schedule.
#include "kernels/simt/micro.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/simt/check.hpp"
#include "kernels/simt/cudart.hpp"
#include "kernels/simt/options.hpp"

namespace {

constexpr std::size_t elements = micro_blocks * micro_threads;

struct MicroOutcome {
    std::set<std::string> kinds;
    std::string text;
    std::vector<float> output;
    int code = 0;
};

MicroOutcome run(const char* name, simt::Schedule schedule, std::uint64_t seed) {
    float* o = nullptr;
    EXPECT_EQ(cudaMalloc(&o, elements * sizeof(float)), cudaSuccess);
    const std::vector<float> zeros(elements, 0.0f);
    cudaMemcpy(o, zeros.data(), elements * sizeof(float), cudaMemcpyHostToDevice);
    simt::options().schedule = schedule;
    simt::options().seed = seed;
    simt::clear_report();
    MicroOutcome outcome;
    outcome.code = launch_micro(name, o);
    outcome.output.resize(elements);
    cudaMemcpy(outcome.output.data(), o, elements * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(o);
    for (const simt::Diagnostic& d : simt::last_report().diagnostics) {
        outcome.kinds.insert(d.kind);
        outcome.text += d.kind + ": " + d.text + "\n";
    }
    return outcome;
}

struct Expectation {
    const char* kernel;
    const char* fast;     ///< the kind every build reports, or nothing
    const char* checked;  ///< the kind the checked build reports besides
};

constexpr Expectation defects[] = {
    {"barrier_in_both_branches", "divergent_barrier", ""},
    {"shuffle_in_one_branch", "deadlock", ""},
    {"shuffle_outside_own_mask", "bad_mask", ""},
    {"blocks_write_one_place", "", "global_race"},
    {"add_without_atomic", "", "global_race"},
    {"write_past_buffer", "global_red_zone", "global_out_of_bounds"},
    {"missing_syncwarp", "", "shared_race"},
    {"write_past_shared", "shared_red_zone", "shared_out_of_bounds"},
    {"read_undefined_shared", "", "shared_undefined"},
    {"too_little_dynamic", "shared_limit", ""},
    {"copy_not_awaited", "async_unwaited", "async_race"},
    {"exit_before_barrier", "exit_before_barrier", ""},
    {"last_block_by_position", "", "global_race"},
    {"too_much_dynamic", "launch_configuration", ""},
};
constexpr const char* clean[] = {"barrier_for_all",    "arithmetic_of_pairs", "shuffle_among_half",
                                 "add_with_atomic",    "present_syncwarp",    "enough_dynamic",
                                 "copy_awaited",       "reduce_by_votes",     "last_block_counted",
                                 "registers_as_words", "reduce_by_tiles"};
constexpr simt::Schedule schedules[] = {simt::Schedule::round_robin, simt::Schedule::reverse,
                                        simt::Schedule::random, simt::Schedule::warp_greedy};

TEST(simt_runtime, every_defect_is_named) {
    for (const Expectation& e : defects)
        for (const simt::Schedule schedule : schedules) {
            const MicroOutcome outcome = run(e.kernel, schedule, 1);
            if (*e.fast != '\0') {
                EXPECT_TRUE(outcome.kinds.count(e.fast)) << e.kernel << "\n" << outcome.text;
            }
            if (*e.checked != '\0' && simt::checker() != nullptr) {
                EXPECT_TRUE(outcome.kinds.count(e.checked)) << e.kernel << "\n" << outcome.text;
                EXPECT_NE(outcome.text.find("micro.cu:"), std::string::npos)
                    << e.kernel << ": no line in\n"
                    << outcome.text;
            }
        }
}

TEST(simt_runtime, clean_counterparts_are_silent_and_the_same_to_the_bit) {
    for (const char* name : clean) {
        const MicroOutcome first = run(name, simt::Schedule::round_robin, 1);
        EXPECT_EQ(first.text, "") << name;
        EXPECT_EQ(first.code, cudaSuccess) << name;
        for (const simt::Schedule schedule : schedules)
            for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                const MicroOutcome outcome = run(name, schedule, seed);
                EXPECT_EQ(outcome.text, "") << name;
                EXPECT_EQ(outcome.output, first.output) << name;
            }
    }
}

bool is_one_everywhere(const MicroOutcome& outcome) {
    return std::all_of(outcome.output.begin(), outcome.output.end(),
                       [](float x) { return x == 1.0f; });
}

TEST(simt_runtime, votes_and_shuffles_mean_what_cuda_says) {
    EXPECT_TRUE(is_one_everywhere(run("reduce_by_votes", simt::Schedule::random, 7)));
    EXPECT_TRUE(is_one_everywhere(run("arithmetic_of_pairs", simt::Schedule::random, 7)));
    EXPECT_TRUE(is_one_everywhere(run("reduce_by_tiles", simt::Schedule::random, 7)));
    EXPECT_NE(run("tile_without_one", simt::Schedule::random, 7).text, "");
}

TEST(simt_runtime, registers_hold_what_was_written_as_another_type) {
    EXPECT_TRUE(is_one_everywhere(run("registers_as_words", simt::Schedule::random, 7)));
}

/// As on a GPU, whose host code goes on: of a race it hears nothing.
TEST(simt_runtime, what_a_gpu_does_not_notice_does_not_fail_the_launch) {
    for (const char* kernel :
         {"missing_syncwarp", "blocks_write_one_place", "add_without_atomic",
          "read_undefined_shared", "copy_not_awaited", "last_block_by_position"}) {
        const MicroOutcome outcome = run(kernel, simt::Schedule::random, 1);
        EXPECT_EQ(outcome.code, cudaSuccess) << kernel;
        EXPECT_EQ(cudaGetLastError(), cudaSuccess) << kernel;
        if (simt::checker() != nullptr) {
            EXPECT_NE(outcome.text, "") << kernel;
        }
    }
}

TEST(simt_runtime, a_misaligned_access_ends_the_launch) {
    if (simt::checker() == nullptr) GTEST_SKIP() << "the fast build does not look";
#ifdef __clang__  // it does not look where a struct is copied whole
    const std::vector<const char*> kernels = {"one_of_four_misaligned"};
#else
    const std::vector<const char*> kernels = {"one_of_four_misaligned", "four_at_once_misaligned"};
#endif
    for (const char* kernel : kernels)
        for (const simt::Schedule schedule : schedules) {
            const MicroOutcome outcome = run(kernel, schedule, 1);
            EXPECT_EQ(outcome.kinds, std::set<std::string>{"misaligned"}) << outcome.text;
            EXPECT_NE(outcome.text.find("at micro.cu:"), std::string::npos) << outcome.text;
            EXPECT_EQ(outcome.code, cudaErrorLaunchFailure);
        }
    EXPECT_EQ(run("barrier_for_all", schedules[0], 1).text, "");
}

TEST(simt_runtime, a_warning_does_not_fail_the_launch) {
    EXPECT_EQ(run("exit_before_barrier", simt::Schedule::round_robin, 1).code, cudaSuccess);
}

}  // namespace
