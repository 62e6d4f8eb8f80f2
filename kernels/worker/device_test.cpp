// Kernels that declare CUDA memory, over a stand-in for the CUDA runtime: what the worker does is
// the same on a GPU, where ci/gpu runs it.

#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/worker/example_kernels_test.hpp"
#include "reference/problem/errors.hpp"

namespace attest {
namespace {

Problem dense_problem() {
    Problem p;
    p.len_q = 3;
    p.len_kv = 5;
    p.dim_qk = p.dim_v = 16;
    p.want_lse = false;
    return p;
}

struct Device {
    Session session;
    Problem problem = dense_problem();
    TensorSet inputs = make_inputs({.problem = problem, .values = {}});

    explicit Device(int index)
        : session(test::example_spec("libon_device.so#" + std::to_string(index)), {}) {}
    CallResult call() { return session.forward(problem, inputs); }
};

TEST(DeviceMemory, OutputsComeBackFromBothSidesOfTheGuards) {
    Device device(0);
    for (int n = 0; n < 4; ++n) {
        const CallResult result = device.call();
        ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
        EXPECT_FALSE(result.fault) << result.fault->sentence;
        EXPECT_FALSE(result.outputs_unwritten);
        const Tensor& o = result.outputs[Role::o];
        for (std::int64_t c = 0; c < o.size(); ++c) EXPECT_EQ(o.get(c), 1) << c;
    }
}

TEST(DeviceMemory, AWriteBehindAnOutputIsSeen) {
    Device device(1);
    const CallResult flush = device.call();  // behind o its pages end
    EXPECT_EQ(flush.outcome, Outcome::error);
    EXPECT_EQ(flush.reason, "wrote behind the pages of o");
    const CallResult slack = device.call();  // behind o its last page goes on
    ASSERT_TRUE(slack.fault.has_value());
    EXPECT_EQ(slack.fault->kind, Fault::Kind::write_outside);
    EXPECT_EQ(slack.fault->tensor, Role::o);
}

TEST(DeviceMemory, AChangedInputIsNamed) {
    const CallResult result = Device(2).call();
    EXPECT_EQ(result.outcome, Outcome::error);
    EXPECT_EQ(result.reason, "changed its input q");
}

TEST(DeviceMemory, ALostContextIsAVerdictAndTheNextCallGetsAFreshProcess) {
    Device device(3);
    const int before = device.session.process_id();
    for (int n = 0; n < 2; ++n) {
        const CallResult result = device.call();
        EXPECT_EQ(result.outcome, Outcome::crash);
        ASSERT_TRUE(result.fault.has_value());
        EXPECT_EQ(result.fault->sentence,
                  "lost its GPU context: the kernel: CUDA error 700, an illegal memory access was "
                  "encountered");
    }
    EXPECT_TRUE(device.session.supports(device.problem, nullptr));
    EXPECT_NE(device.session.process_id(), before);
}

TEST(DeviceMemory, AnUnwrittenOutputIsSeen) {
    const CallResult result = Device(4).call();
    EXPECT_EQ(result.outcome, Outcome::ok);
    EXPECT_TRUE(result.outputs_unwritten);
}

TEST(DeviceMemory, WithoutADeviceThereIsOneLine) {
    ::setenv("ATTEST_TEST_NO_DEVICE", "1", 1);
    try {
        Device device(0);
        ADD_FAILURE() << "it was loaded";
    } catch (const BadInput& e) {
        EXPECT_NE(
            std::string(e.what()).find("it wants its tensors in CUDA memory: no device is there"),
            std::string::npos)
            << e.what();
    }
    ::unsetenv("ATTEST_TEST_NO_DEVICE");
}

}  // namespace
}  // namespace attest
