// Every way a kernel can go wrong is noticed, named, and survived: on both sides of the guards.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/worker/example_kernels_test.hpp"
#include "kernels/worker/session.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

using std::chrono::milliseconds;

constexpr std::array names = {"well_behaved",         "read_past_k",
                              "write_past_o",         "read_before_q",
                              "write_before_lse",     "write_input",
                              "write_past_workspace", "write_between_rows",
                              "never_return",         "use_all_memory",
                              "follow_wild_pointer",  "call_exit",
                              "call_abort",           "leave_a_child_and_exit",
                              "overflow_stack",       "divide_by_zero",
                              "return_error",         "leave_output_unwritten",
                              "throw_runtime_error",  "throw_bad_alloc",
                              "refuse_everything",    "crash_in_supports",
                              "crash_in_create",      "fail_in_create",
                              "read_workspace"};

class Misbehaving : public testing::Test {
protected:
    Misbehaving() {
        problem_.heads_q = problem_.heads_kv = 2;
        problem_.len_q = 3;
        problem_.len_kv = 5;
        problem_.dim_qk = 7;
        inputs_ = make_inputs({.problem = problem_, .values = {}});
    }

    void open(std::string_view kernel) {
        const auto at = std::find(names.begin(), names.end(), kernel) - names.begin();
        const std::string library = example("libmisbehaving.so");
        session_ = std::make_unique<Session>(
            kernel::parse_kernel_spec(library + "#" + std::to_string(at)),
            SessionOptions{.timeout = milliseconds(5000), .memory_bytes = 256u << 20});
        ASSERT_EQ(session_->manifest().name, kernel);
    }

    CallResult call(std::uint64_t number) {
        session_->begin_case();
        for (std::uint64_t i = 0; i < number; ++i) last_ = session_->forward(problem_, inputs_);
        last_ = session_->forward(problem_, inputs_);
        return last_;
    }
    CallResult flush_right() { return call(0); }
    CallResult flush_left() { return call(1); }

    /// A fault that killed the worker; the next call finds a new one.
    void expect_death(const CallResult& result, Outcome outcome, Fault::Kind kind,
                      const std::string& sentence) {
        EXPECT_EQ(name(result.outcome), name(outcome));
        ASSERT_TRUE(result.fault.has_value());
        EXPECT_EQ(result.fault->kind, kind);
        EXPECT_EQ(result.fault->sentence.substr(0, sentence.size()), sentence);
        EXPECT_EQ(session_->process_id(), 0);
    }

    void expect_tensor(Role role, std::int64_t offset) {
        ASSERT_TRUE(last_.fault.has_value());
        EXPECT_EQ(last_.fault->tensor, role);
        EXPECT_EQ(last_.fault->offset_bytes, offset);
        EXPECT_EQ(last_.fault->before, offset < 0);
    }

    Problem problem_;
    TensorSet inputs_;
    std::unique_ptr<Session> session_;
    CallResult last_;
};

TEST_F(Misbehaving, AWellBehavedKernelIsNotAccused) {
    open("well_behaved");
    for (const CallResult& result : {flush_right(), flush_left()}) {
        EXPECT_EQ(result.outcome, Outcome::ok);
        EXPECT_FALSE(result.fault.has_value());
        EXPECT_FALSE(result.outputs_unwritten);
    }
}

TEST_F(Misbehaving, ReadingPastTheEnd) {
    open("read_past_k");
    const std::int64_t bytes = 2 * 5 * 7 * 4;
    expect_death(flush_right(), Outcome::crash, Fault::Kind::read_outside,
                 "read 64 bytes past the end of k, at libmisbehaving.so+0x");
    expect_tensor(Role::k, bytes + 64);
    EXPECT_EQ(last_.fault->signal, "SIGSEGV");
    // On the other side of its pages the same read finds canary, and harms nobody.
    EXPECT_EQ(session_->forward(problem_, inputs_).outcome, Outcome::ok);
}

TEST_F(Misbehaving, WritingPastTheEnd) {
    open("write_past_o");
    expect_death(flush_right(), Outcome::crash, Fault::Kind::write_outside,
                 "wrote just past the end of o");
    expect_tensor(Role::o, 2 * 3 * 7 * 4);
    last_ = session_->forward(problem_, inputs_);  // the odd call
    EXPECT_EQ(last_.outcome, Outcome::ok);
    expect_tensor(Role::o, 2 * 3 * 7 * 4);
}

TEST_F(Misbehaving, ReadingBeforeTheStart) {
    open("read_before_q");
    EXPECT_EQ(flush_right().outcome, Outcome::ok);
    expect_death(flush_left(), Outcome::crash, Fault::Kind::read_outside, "read 4 bytes before q");
    expect_tensor(Role::q, -4);
}

TEST_F(Misbehaving, WritingBeforeTheStart) {
    open("write_before_lse");
    EXPECT_EQ(flush_right().outcome, Outcome::ok);
    EXPECT_EQ(last_.fault->kind, Fault::Kind::write_outside);
    EXPECT_EQ(last_.fault->sentence, "wrote 8 bytes before lse");
    expect_tensor(Role::lse, -8);
    expect_death(flush_left(), Outcome::crash, Fault::Kind::write_outside,
                 "wrote 8 bytes before lse");
}

TEST_F(Misbehaving, WritingToAnInput) {
    open("write_input");
    for (std::uint64_t side : {0, 1}) {
        expect_death(call(side), Outcome::crash, Fault::Kind::write_input,
                     "wrote to its input v at byte 8");
        expect_tensor(Role::v, 8);
    }
}

TEST_F(Misbehaving, WritingPastTheWorkspace) {
    open("write_past_workspace");
    for (std::uint64_t side : {0, 1}) {
        EXPECT_EQ(call(side).outcome, Outcome::ok);
        ASSERT_TRUE(last_.fault.has_value());
        EXPECT_TRUE(last_.fault->workspace);
        EXPECT_EQ(last_.fault->offset_bytes, 100);
        EXPECT_EQ(last_.fault->sentence, "wrote just past the end of the workspace");
    }
}

TEST_F(Misbehaving, WritingBetweenTheRows) {
    problem_.layout_o.row_pad = 2;
    open("write_between_rows");
    for (std::uint64_t side : {0, 1}) {
        EXPECT_EQ(call(side).outcome, Outcome::ok);
        ASSERT_TRUE(last_.fault.has_value());
        EXPECT_EQ(last_.fault->kind, Fault::Kind::write_outside);
        EXPECT_EQ(last_.fault->sentence, "wrote between the rows of o, at byte 28");
    }
}

TEST_F(Misbehaving, NeverReturning) {
    open("never_return");
    session_->set_timeout(milliseconds(300));
    for (int side = 0; side < 2; ++side) {
        expect_death(session_->forward(problem_, inputs_), Outcome::hang, Fault::Kind::signal,
                     "did not return within 300 ms");
    }
}

TEST_F(Misbehaving, UsingAllMemory) {
    open("use_all_memory");
    session_->set_timeout(milliseconds(60000));
    expect_death(flush_right(), Outcome::memory, Fault::Kind::signal,
                 "ran out of memory: 256 MiB are allowed");
}

TEST_F(Misbehaving, FailingToAllocateInCpp) {
    open("throw_bad_alloc");
    EXPECT_EQ(flush_right().outcome, Outcome::memory);
}

TEST_F(Misbehaving, FollowingAWildPointer) {
    open("follow_wild_pointer");
    expect_death(flush_right(), Outcome::crash, Fault::Kind::outside_all,
                 "wrote to address 0x8, which is in no tensor, at libmisbehaving.so+0x");
    EXPECT_FALSE(last_.fault->tensor.has_value());
}

TEST_F(Misbehaving, EndingTheProcess) {
    open("call_exit");
    expect_death(flush_right(), Outcome::crash, Fault::Kind::exit_called,
                 "ended its process: exit(0)");
}

TEST_F(Misbehaving, LeavingAChildBehind) {
    // The child holds the socket open, so the end of the worker is seen by its process alone.
    open("leave_a_child_and_exit");
    const auto start = std::chrono::steady_clock::now();
    expect_death(flush_right(), Outcome::crash, Fault::Kind::exit_called,
                 "ended its process: exit(7)");
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(4000));
    EXPECT_EQ(last_.fault->exit_code, 7);
}

TEST_F(Misbehaving, Aborting) {
    open("call_abort");
    expect_death(flush_right(), Outcome::crash, Fault::Kind::abort_called, "called abort()");
    EXPECT_EQ(last_.fault->signal, "SIGABRT");
}

TEST_F(Misbehaving, OverflowingTheStack) {
    open("overflow_stack");
    expect_death(flush_right(), Outcome::crash, Fault::Kind::stack_overflow, "ran out of stack");
}

TEST_F(Misbehaving, DividingByZero) {
    open("divide_by_zero");
    expect_death(flush_right(), Outcome::crash, Fault::Kind::signal, "died of SIGFPE");
}

TEST_F(Misbehaving, ReturningAnError) {
    open("return_error");
    EXPECT_EQ(flush_right().outcome, Outcome::error);
    EXPECT_EQ(last_.reason, "the tile does not fit: 96 KiB of shared memory are needed");
    EXPECT_FALSE(last_.fault.has_value());
}

TEST_F(Misbehaving, LeavingAnOutputUnwritten) {
    open("leave_output_unwritten");
    for (std::uint64_t side : {0, 1}) {
        EXPECT_EQ(call(side).outcome, Outcome::ok);
        EXPECT_TRUE(last_.outputs_unwritten);
        EXPECT_EQ(last_.unwritten_role, Role::o);
        EXPECT_EQ(last_.unwritten_index, 2 * 3 * 7 - 1);
    }
}

TEST_F(Misbehaving, AnsweringWithWhatTheWorkspaceHeld) {
    open("read_workspace");
    for (std::uint64_t side : {0, 1}) {
        EXPECT_EQ(call(side).outcome, Outcome::ok);
        EXPECT_TRUE(last_.workspace_read);
        EXPECT_FALSE(last_.outputs_unwritten);
    }
    open("leave_output_unwritten");
    EXPECT_EQ(call(0).outcome, Outcome::ok);
    EXPECT_FALSE(last_.workspace_read);
}

TEST_F(Misbehaving, LettingAnExceptionOut) {
    open("throw_runtime_error");
    EXPECT_EQ(flush_right().outcome, Outcome::crash);
    ASSERT_TRUE(last_.fault.has_value());
    EXPECT_EQ(last_.fault->kind, Fault::Kind::exception);
    EXPECT_EQ(last_.fault->sentence,
              "let an exception cross the border: std::runtime_error: no such tile");
}

TEST_F(Misbehaving, RefusingEverything) {
    open("refuse_everything");
    EXPECT_EQ(flush_right().outcome, Outcome::refused);
    EXPECT_EQ(last_.reason, "not today");
}

TEST_F(Misbehaving, CrashingWhenAsked) {
    open("crash_in_supports");
    EXPECT_THROW(session_->supports(problem_, nullptr), KernelDied);
    expect_death(flush_right(), Outcome::crash, Fault::Kind::outside_all,
                 "wrote to address 0x8, which is in no tensor inside supports()");
}

}  // namespace
}  // namespace attest::worker
