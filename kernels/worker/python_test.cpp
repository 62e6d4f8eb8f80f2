// Python kernels that misbehave.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/worker/example_kernels_test.hpp"
#include "kernels/worker/session.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

using std::chrono::milliseconds;

class Python : public testing::Test {
protected:
    Python() {
        EXPECT_EQ(::chdir(example("").c_str()), 0);
        problem_.len_q = 3;
        problem_.len_kv = 5;
        problem_.dim_qk = 4;
        inputs_ = make_inputs({.problem = problem_, .values = {}});
    }

    CallResult call(const std::string& function, std::uint64_t number = 0) {
        session_ = std::make_unique<Session>(
            kernel::parse_kernel_spec("python:misbehaving:" + function),
            SessionOptions{.timeout = milliseconds(20000), .memory_bytes = 256u << 20});
        for (std::uint64_t i = 0; i < number; ++i) session_->forward(problem_, inputs_);
        return session_->forward(problem_, inputs_);
    }

    void expect_error(const CallResult& result, const std::string& reason) {
        EXPECT_EQ(name(result.outcome), "error");
        EXPECT_EQ(result.reason, reason);
        EXPECT_NE(session_->process_id(), 0);
    }

    Problem problem_;
    TensorSet inputs_;
    std::unique_ptr<Session> session_;
};

TEST_F(Python, ReturningOnlyTheOutput) {
    const CallResult result = call("returns_only_o");
    EXPECT_EQ(result.outcome, Outcome::ok) << result.reason;
    EXPECT_TRUE(result.outputs.has(Role::o));
    EXPECT_FALSE(result.outputs.has(Role::lse));
    EXPECT_FALSE(result.outputs_unwritten);
}

/// Slopes are alibi_slopes as an input, and d_slopes as a gradient.
TEST_F(Python, GradientsComeBackUnderTheirNames) {
    problem_.len_q = problem_.len_kv;
    problem_.alibi = problem_.want_grad = true;
    inputs_ = make_inputs({.problem = problem_, .values = {}});
    Session session(kernel::parse_kernel_spec("python:gradient_of_slopes"), {});
    const CallResult forward = session.forward(problem_, inputs_);
    ASSERT_EQ(forward.outcome, Outcome::ok) << forward.reason;
    inputs_.put(Role::o, forward.outputs[Role::o]);
    for (const auto& wanted : {std::vector{Role::d_q, Role::d_slopes}, {Role::d_slopes}}) {
        const CallResult result = session.backward(problem_, inputs_, wanted);
        ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
        EXPECT_EQ(result.outputs.has(Role::d_q), wanted.size() == 2);
        EXPECT_EQ(result.outputs[Role::d_slopes].get(0), 3 * inputs_[Role::alibi_slopes].get(0));
    }
    // Where the LSE has a gradient the framework is given it with dO.
    problem_.lse_grad = true;
    inputs_.put(Role::lse, forward.outputs[Role::lse]);
    Tensor& d_lse =
        inputs_.put(Role::d_lse, Tensor(ElementType::f32, *shape_of(problem_, Role::lse)));
    for (std::int64_t at = 0; at < d_lse.size(); ++at) d_lse.set(at, 2);
    const CallResult result = session.backward(problem_, inputs_, {Role::d_slopes});
    ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
    EXPECT_EQ(
        result.outputs[Role::d_slopes].get(0),
        round_to(3 * inputs_[Role::alibi_slopes].get(0) + 2.0 * static_cast<double>(d_lse.size()),
                 Precision::f32));
}

TEST_F(Python, SaysWhatItIsMadeOf) {
    call("returns_only_o");
    std::string names;
    for (const auto& [name, digest] : session_->manifest().sources) names += name + "\n";
    EXPECT_NE(names.find("Python 3."), std::string::npos) << names;
    EXPECT_NE(names.find("numpy "), std::string::npos) << names;
    EXPECT_NE(names.find("misbehaving\n"), std::string::npos) << names;
    EXPECT_EQ(names.find("attest_worker"), std::string::npos) << names;
}

TEST_F(Python, FillingInPlace) {
    const CallResult result = call("fills_in_place");
    EXPECT_EQ(result.outcome, Outcome::ok) << result.reason;
    EXPECT_TRUE(result.outputs.has(Role::lse));
    EXPECT_FALSE(result.outputs_unwritten);
}

TEST_F(Python, LeavingAnOutputUnwritten) {
    for (std::uint64_t side : {0, 1}) {
        const CallResult result = call("leaves_output_unwritten", side);
        EXPECT_TRUE(result.outputs_unwritten);
        EXPECT_EQ(result.unwritten_role, Role::o);
        EXPECT_EQ(result.unwritten_index, 0);
    }
}

TEST_F(Python, Raising) {
    expect_error(call("raises"), "ValueError: the tile does not fit (misbehaving.py:28)");
}

TEST_F(Python, ReturningAnotherShapeOrType) {
    expect_error(call("returns_wrong_shape"), "o has shape (1, 1, 3), asked for is (1, 1, 3, 4)");
    expect_error(call("returns_wrong_dtype"), "o has dtype float64, asked for is float32");
}

TEST_F(Python, WritingToAnInput) {
    expect_error(call("writes_input"),
                 "ValueError: assignment destination is read-only (misbehaving.py:40)");
}

TEST_F(Python, EndingTheProcess) {
    const CallResult result = call("calls_os_exit");
    EXPECT_EQ(result.outcome, Outcome::crash);
    ASSERT_TRUE(result.fault.has_value());
    EXPECT_EQ(result.fault->kind, Fault::Kind::exit_called);
    EXPECT_EQ(result.fault->exit_code, 3);
    expect_error(call("calls_sys_exit"), "SystemExit: 3 (misbehaving.py:48)");
}

TEST_F(Python, ClosedDescriptorsAreNoExit) {
    for (const char* name : {"closes_the_memory", "leads_the_memory_elsewhere", "hangs_up",
                             "hears_nobody", "speaks_to_nobody"}) {
        const CallResult result = call(name);
        EXPECT_EQ(result.outcome, Outcome::crash) << name;
        EXPECT_EQ(result.reason,
                  "closed the descriptors of its process that the judge speaks through, or ended "
                  "its process: exit(97)")
            << name;
    }
}

TEST_F(Python, ASocketThatDoesNotWaitIsWaitedFor) {
    for (int i = 0; i < 3; ++i) {
        const CallResult result =
            i == 0 ? call("waits_for_nothing") : session_->forward(problem_, inputs_);
        EXPECT_EQ(result.outcome, Outcome::ok) << result.reason;
        std::this_thread::sleep_for(milliseconds(50));  // the worker finds nothing to read
    }
}

TEST_F(Python, ReadingPastTheEnd) {
    const CallResult result = call("reads_past_k");
    EXPECT_EQ(result.outcome, Outcome::crash);
    ASSERT_TRUE(result.fault.has_value());
    EXPECT_EQ(result.fault->signal, "SIGSEGV");
}

TEST_F(Python, WritingBeforeTheStart) {
    const CallResult result = call("writes_before_o");
    EXPECT_EQ(result.outcome, Outcome::ok) << result.reason;
    ASSERT_TRUE(result.fault.has_value());
    EXPECT_EQ(result.fault->sentence, "wrote 4 bytes before o");
    EXPECT_EQ(call("writes_before_o", 1).outcome, Outcome::crash);
}

TEST_F(Python, NeverReturning) {
    call("fills_in_place");
    session_ =
        std::make_unique<Session>(kernel::parse_kernel_spec("python:misbehaving:never_returns"),
                                  SessionOptions{.timeout = milliseconds(500)});
    EXPECT_EQ(session_->forward(problem_, inputs_).outcome, Outcome::hang);
}

TEST_F(Python, UsingAllMemory) {
    EXPECT_EQ(call("uses_all_memory").outcome, Outcome::memory);
}

TEST_F(Python, ASecondThreadCallsBesideTheFirst) {
    EXPECT_EQ(call("one_at_a_time").outcome, Outcome::ok);
    const CallResult result = session_->forward_beside(problem_, inputs_);
    EXPECT_EQ(name(result.outcome), "error");
    EXPECT_NE(result.reason.find("RuntimeError: busy"), std::string::npos) << result.reason;
}

TEST_F(Python, RoundsToBfloat16AsEverybodyDoes) {
    // Every sign and exponent with the least, the middle and the greatest kept fraction, and what
    // is cut off below, at and above a tie.
    std::vector<std::uint32_t> bits;
    for (std::uint32_t upper = 0; upper < 0x10000; upper += 0x80) {
        for (std::uint32_t kept : {0x00u, 0x01u, 0x40u, 0x7Eu, 0x7Fu}) {
            for (std::uint32_t cut : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
                bits.push_back((upper | kept) << 16 | cut);
            }
        }
    }
    problem_ = {};
    problem_.len_q = static_cast<std::int64_t>(bits.size());
    problem_.format_kv = problem_.format_o = Precision::bf16;
    problem_.want_lse = false;
    inputs_ = make_inputs({.problem = problem_, .values = {}});
    for (std::size_t i = 0; i < bits.size(); ++i) {
        inputs_[Role::q].set_bits(static_cast<std::int64_t>(i), bits[i]);
    }
    Session session(kernel::parse_kernel_spec("python:narrowing:forward"), {});
    const CallResult result = session.forward(problem_, inputs_);
    ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
    const Tensor& o = result.outputs[Role::o];
    for (std::int64_t i = 0; i < o.size(); ++i) {
        const double value = inputs_[Role::q].get(i);
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(o.get(i)));
        } else {
            ASSERT_EQ(o.bits(i), encode(value, Precision::bf16)) << value;
        }
    }
}

}  // namespace
}  // namespace attest::worker
