// Why a kernel ended is told in the words of whoever knows: what it printed, its debug information,
// the signs of life it still gave.

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "kernels/worker/printed.hpp"
#include "kernels/worker/trouble_test.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

using std::chrono::milliseconds;

class Endings : public TroubleTest {
protected:
    Endings() : TroubleTest("libendings.so") {}

    std::string ending(const std::string& kernel) {
        open(kernel);
        last_ = call();
        EXPECT_EQ(name(last_.outcome), name(Outcome::crash)) << last_.reason;
        EXPECT_EQ(session_->process_id(), 0);
        return sentence(last_);
    }
    void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
        std::size_t at = 0;
        for (const std::string& part : parts) {
            at = text.find(part, at);
            ASSERT_NE(at, std::string::npos)
                << '"' << part << "\" is not, in this order, in: " << text;
        }
    }

    CallResult last_;
};

const bool has_addr2line = std::system("addr2line --version > /dev/null 2>&1") == 0;

TEST_F(Endings, AThreadThatLeavesIsNoAbort) {
    EXPECT_EQ(ending("leave_the_thread"),
              "called pthread_exit() or was cancelled: the thread is the judge's");
}

TEST_F(Endings, WhoSpeaksOfAThreadHasNotLeftIt) {
    EXPECT_EQ(ending("speak_of_a_thread"),
              "ended its process: exit(3); it had printed: FATAL: exception not rethrown");
}

TEST_F(Endings, AnExceptionThatNobodyCaughtIsQuoted) {
    expect_parts(ending("throw_in_a_thread"),
                 {"called abort(), at libendings.so+0x",
                  "; it had printed: terminate called after throwing an instance of "
                  "'std::runtime_error': no such tile"});
}

TEST_F(Endings, AnAssertionIsQuoted) {
    expect_parts(ending("fail_an_assertion"),
                 {"called abort(), at libendings.so+0x", "; it had printed: ", "endings.cpp:",
                  "Assertion `c == nullptr && \"the tile fits\"' failed."});
    expect_parts(last_.printed, {"tile 7\n", "Assertion"});
}

TEST_F(Endings, WhoExitsHasTheLastWord) {
    EXPECT_EQ(ending("exit_with_a_reason"),
              "ended its process: exit(3); it had printed: CUDA error: no kernel image");
}

TEST_F(Endings, ClosedDescriptorsAreNoExit) {
    for (const char* name : {"close_all", "close_the_memory", "lead_the_memory_elsewhere",
                             "hang_up", "hear_nobody", "speak_to_nobody"})
        EXPECT_EQ(ending(name),
                  "closed the descriptors of its process that the judge speaks through, or ended "
                  "its process: exit(97)")
            << name;
}

TEST_F(Endings, ASocketThatDoesNotWaitIsWaitedFor) {
    open("wait_for_nothing");
    const int process = session_->process_id();
    for (int i = 0; i < 3; ++i) {
        expect_ok(call());
        std::this_thread::sleep_for(milliseconds(50));  // the worker finds nothing to read
    }
    EXPECT_EQ(session_->process_id(), process);
}

TEST_F(Endings, ATextTooLongIsNoStack) {
    expect_parts(ending("write_past_the_text"),
                 {"wrote past the end of its text: 4095 bytes are given"});
}

TEST_F(Endings, TheDirectionFlagIsTakenBack) {
#if defined(__x86_64__)
    open("turn_the_direction");
    for (int i = 0; i < 2; ++i) {
        const CallResult result = call();
        EXPECT_EQ(name(result.outcome), name(Outcome::error));
        expect_parts(result.reason, {"returned with the direction flag set"});
    }
#endif
}

// The worker goes on with its own: what follows is no answer that nobody asked for.
TEST_F(Endings, RegistersThatAreTheCallersAreTakenBack) {
#if defined(__x86_64__)
    open("lose_registers");
    const int process = session_->process_id();
    for (int i = 0; i < 2; ++i) {
        const CallResult result = call();
        EXPECT_EQ(name(result.outcome), name(Outcome::error));
        expect_parts(result.reason, {"came back without the registers that a function keeps"});
    }
    EXPECT_EQ(session_->process_id(), process);
#endif
}

TEST_F(Endings, AJumpIsNoRead) {
    expect_parts(ending("jump_to_nothing"), {"jumped to address 0x0, where no code is"});
}

TEST_F(Endings, ThePlaceIsToldAsItsAuthorWroteIt) {
    expect_parts(ending("read_in_a_template"),
                 {"read from address 0x10, which is in no tensor, at libendings.so+0x",
                  "(float tiles::load<float>(float const volatile*)"});
    if (has_addr2line) expect_parts(sentence(last_), {", endings.cpp:", ")"});
}

TEST_F(Endings, WhatIsPrintedIsKeptAndHarmless) {
    open("print_escapes");
    for (int i = 0; i < 2; ++i) {  // of each call its own
        const CallResult result = call();
        expect_ok(result);
        EXPECT_EQ(result.printed.find('\x1b'), std::string::npos);
        EXPECT_EQ(result.printed.find('\a'), std::string::npos);
        expect_parts(result.printed, {"[31mred\nsecond ", "line"});
    }
    open("print_much");
    const CallResult result = call();
    expect_ok(result);
    expect_parts(result.printed, {"xxx", "\nthe last line"});
    EXPECT_LT(result.printed.size(), 10'000u);
}

TEST_F(Endings, ASecondThreadCallsBesideTheFirst) {
    open("one_at_a_time");
    expect_ok(call());
    const CallResult result = session_->forward_beside(problem_, inputs_);
    EXPECT_EQ(name(result.outcome), name(Outcome::error));
    expect_parts(result.reason, {"busy"});
    expect_ok(call());
}

TEST_F(Endings, WithoutASignOfLifeACallIsHung) {
    for (const char* kernel : {"go_round", "wait_for_ever"}) {
        open(kernel);
        session_->set_timeout(milliseconds(600'000), milliseconds(500));
        const CallResult result = call();
        EXPECT_EQ(name(result.outcome), name(Outcome::hang));
        EXPECT_EQ(sentence(result), "did not return, and showed no sign of life for 500 ms");
    }
}

TEST_F(Endings, WhatGetsSomewhereHasItsWholeLimit) {
    open("start_slowly");
    session_->set_timeout(milliseconds(600'000), milliseconds(500));
    expect_ok(call());
}

TEST(Printed, TheTellingLineIsTheReasonOrTheLast) {
    EXPECT_EQ(telling_line(""), "");
    EXPECT_EQ(telling_line("one\ntwo\n\nthree\n"), "two; three");
    EXPECT_EQ(telling_line("a: Assertion `x' failed.\nAborted\n"), "a: Assertion `x' failed.");
    EXPECT_EQ(telling_line("terminate called without an active exception\n"),
              "terminate called without an active exception");
    EXPECT_EQ(last_lines("\x1b[1mone\n \ntwo"), "?[1mone\ntwo");
}

}  // namespace
}  // namespace attest::worker
