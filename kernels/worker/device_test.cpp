// Kernels that declare CUDA memory, over a stand-in for the CUDA runtime: what the worker does is
// the same on a GPU, where ci/gpu runs it.

#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/worker/example_kernels_test.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

Problem dense_problem() {
    Problem p;
    p.len_q = 3;
    p.len_kv = 5;
    p.dim_qk = p.dim_v = 16;
    p.want_lse = false;
    return p;
}

enum DeviceKernel {
    write_ones,
    write_behind,
    change_an_input,
    lose_the_context,
    write_nothing,
    look_behind,
    look_before,
    use_the_default_stream,
    use_the_first_calls_stream,
    leave_the_first_calls_result,
    write_ones_where_aligned
};

/// A variable of the environment, for the workers that are started while this lives.
struct EnvironmentSetting {
    const char* variable;
    EnvironmentSetting(const char* name, const char* value) : variable(name) {
        ::setenv(name, value, 1);
    }
    ~EnvironmentSetting() { ::unsetenv(variable); }
};

struct DeviceSession {
    Session session;
    Problem problem = dense_problem();

    explicit DeviceSession(DeviceKernel kernel)
        : session(example_spec("libon_device.so#" + std::to_string(kernel)), {}) {}
    CallResult call() {
        return session.forward(problem, make_inputs({.problem = problem, .values = {}}));
    }
    void expect_ones() {
        const CallResult result = call();
        ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
        EXPECT_FALSE(result.fault) << result.fault->sentence;
        EXPECT_FALSE(result.outputs_unwritten);
        const Tensor& o = result.outputs[Role::o];
        for (std::int64_t c = 0; c < o.size(); ++c) EXPECT_EQ(o.get(c), 1) << c;
    }
    /// The call ends the worker, and says this.
    void expect_lost(const std::string& says) {
        const int before = session.process_id();
        const CallResult result = call();
        EXPECT_EQ(result.outcome, Outcome::crash);
        ASSERT_TRUE(result.fault.has_value());
        EXPECT_EQ(result.fault->sentence, "lost its GPU context: " + says);
        EXPECT_TRUE(session.supports(problem, nullptr));
        EXPECT_NE(session.process_id(), before);
    }
};

constexpr const char* illegal =
    "the kernel: CUDA error 700, an illegal memory access was encountered";

TEST(DeviceMemory, OutputsComeBackFromBothSidesOfTheZones) {
    DeviceSession device(write_ones);
    for (int n = 0; n < 4; ++n) device.expect_ones();
}

TEST(DeviceMemory, AWriteBehindAnOutputIsSeen) {
    DeviceSession device(write_behind);
    const CallResult flush = device.call();  // behind o its pages end
    EXPECT_EQ(flush.outcome, Outcome::error);
    EXPECT_EQ(flush.reason, "wrote behind the pages of o");
    const CallResult slack = device.call();  // behind o its last page goes on
    ASSERT_TRUE(slack.fault.has_value());
    EXPECT_EQ(slack.fault->kind, Fault::Kind::write_outside);
    EXPECT_EQ(slack.fault->tensor, Role::o);
}

TEST(DeviceMemory, AChangedInputIsNamed) {
    const CallResult result = DeviceSession(change_an_input).call();
    EXPECT_EQ(result.outcome, Outcome::error);
    EXPECT_EQ(result.reason, "changed its input q");
}

TEST(DeviceMemory, ALostContextIsAVerdictAndTheNextCaseIsJudgedAfresh) {
    DeviceSession device(lose_the_context);
    for (int n = 0; n < 2; ++n) {
        device.problem.len_q = 2;
        device.expect_ones();
        device.problem.len_q = 3;
        device.expect_lost(illegal);
    }
    device.problem.len_q = 4;
    device.expect_ones();
}

TEST(DeviceMemory, AnUnwrittenOutputIsSeen) {
    const CallResult result = DeviceSession(write_nothing).call();
    EXPECT_EQ(result.outcome, Outcome::ok);
    EXPECT_TRUE(result.outputs_unwritten);
}

TEST(DeviceMemory, AKernelMayUseTheDefaultStream) {
    DeviceSession device(use_the_default_stream);
    for (int n = 0; n < 4; ++n) device.expect_ones();
}

TEST(DeviceMemory, WhatRestsOnAnEarlierCallIsSeen) {
    for (DeviceKernel kernel : {use_the_first_calls_stream, leave_the_first_calls_result}) {
        DeviceSession device(kernel);
        device.expect_ones();
        const CallResult result = device.call();
        EXPECT_EQ(result.outcome, Outcome::ok) << kernel;
        EXPECT_TRUE(result.outputs_unwritten) << kernel;
    }
}

TEST(DeviceGuards, OutputsComeBackFromRoomsThatGrow) {
    const EnvironmentSetting guards("CUDA_STAND_IN_GUARDS", "");
    DeviceSession device(write_ones);
    for (std::int64_t len : {3, 3, 4000, 4000, 5, 70000, 70000, 5}) {
        device.problem.len_q = len;
        device.expect_ones();
    }
}

TEST(DeviceGuards, AlignmentIsThatOfTheHost) {
    for (const char* guarded : {"CUDA_STAND_IN_GUARDS", "CUDA_STAND_IN_NOTHING"}) {
        const EnvironmentSetting guards(guarded, "");
        DeviceSession device(write_ones_where_aligned);
        device.problem.dim_qk = device.problem.dim_v = 5;
        for (std::int64_t len : {1, 2, 3, 7, 300}) {
            device.problem.len_q = len;
            device.expect_ones();
        }
    }
}

TEST(DeviceGuards, WhatReachesPastATensorLosesTheContext) {
    const EnvironmentSetting guards("CUDA_STAND_IN_GUARDS", "");
    for (DeviceKernel kernel : {write_behind, look_behind}) {
        DeviceSession device(kernel);
        device.expect_lost(std::string(illegal) + "; each tensor ends at a guard page");
    }
    DeviceSession device(look_before);
    device.expect_ones();
    device.expect_lost(std::string(illegal) + "; each tensor begins at a guard page");
}

TEST(DeviceGuards, OnTheOtherSideLiesAZone) {
    const EnvironmentSetting guards("CUDA_STAND_IN_GUARDS", "");
    DeviceSession device(write_behind);
    device.problem.len_q = 64;  // of 16 elements: a page
    device.session.begin_case(1);
    const CallResult result = device.call();
    EXPECT_EQ(result.outcome, Outcome::error);
    EXPECT_EQ(result.reason, "wrote behind the pages of o");
}

TEST(DeviceGuards, WhereTheDriverRefusesThereAreZonesAlone) {
    DeviceSession without(look_behind);
    without.expect_ones();
    const EnvironmentSetting guards("CUDA_STAND_IN_GUARDS", ""),
        room("CUDA_STAND_IN_MEMORY", "6000000");
    DeviceSession device(write_behind);
    device.problem.dim_v = 1;
    device.problem.len_q = 80000;  // q takes 5 MB, and with guards 8 MiB
    EXPECT_EQ(device.call().reason, "wrote behind the pages of o");
}

TEST(DeviceMemory, ADeviceThatIsFullAccusesNobody) {
    const EnvironmentSetting room("CUDA_STAND_IN_MEMORY", "1000000");
    DeviceSession device(write_ones);
    device.expect_ones();
    device.problem.len_q = 80000;
    const CallResult result = device.call();
    EXPECT_EQ(result.outcome, Outcome::refused);
    EXPECT_EQ(result.reason, "the device has no 9 MiB for the tensors");
    device.problem.len_q = 3;
    device.expect_ones();
}

TEST(DeviceMemory, WithoutADeviceThereIsOneLine) {
    const EnvironmentSetting none("CUDA_STAND_IN_NO_DEVICE", "1");
    try {
        DeviceSession device(write_ones);
        ADD_FAILURE() << "it was loaded";
    } catch (const BadInput& e) {
        EXPECT_NE(
            std::string(e.what()).find("it wants its tensors in CUDA memory: no device is there"),
            std::string::npos)
            << e.what();
    }
}

}  // namespace
}  // namespace attest::worker
