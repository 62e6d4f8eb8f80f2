// A kernel is one process with the worker that speaks for it. What it says in the worker's name
// harms nobody but itself: the host believes its own wait and what lies in the memory.

#include <gtest/gtest.h>

#include <thread>

#include "kernels/worker/trouble_test.hpp"

namespace attest::worker {
namespace {

using std::chrono::milliseconds;

class Forgery : public TroubleTest {
protected:
    Forgery() : TroubleTest("libforgeries.so") {}
};

TEST_F(Forgery, AnEndIsWhatWaitingForTheProcessSays) {
    open("forge_by_other_descriptors");
    if (!session_->barriers().has(Barrier::processes)) GTEST_SKIP() << "nobody looks after it";
    expect_ok(call(), 0);
    expect_ok(call(), 0);
}

TEST_F(Forgery, LastWordsAreThoseOfOneThatDiesSo) {
    open("forge_a_fault");
    EXPECT_EQ(sentence(call()).substr(0, 53),
              "closed the descriptors of its process that the judge ");
    open("forge_a_fault_and_exit");
    const CallResult result = call();
    EXPECT_EQ(sentence(result), "ended its process: exit(3)");
    EXPECT_EQ(result.fault->exit_code, 3);
}

TEST_F(Forgery, ALoadErrorAfterTheLoadIsNone) {
    open("forge_a_load_error");
    for (int i = 0; i < 2; ++i) expect_ok(call());
}

TEST_F(Forgery, WhoTakesAProblemDoesNotRefuseTheCall) {
    open("forge_one_refusal");
    const CallResult result = call();
    EXPECT_EQ(name(result.outcome), name(Outcome::error));
    EXPECT_EQ(result.reason,
              "it refused a call that its manifest and supports() take: the kernel has no such "
              "operation");
}

TEST_F(Forgery, OutputsAreLookedAtWhateverIsSaidOfThem) {
    open("forge_one_answer");
    const CallResult result = call();
    EXPECT_EQ(name(result.outcome), name(Outcome::ok));
    EXPECT_TRUE(result.outputs.has(Role::o));
}

TEST_F(Forgery, AnAnswerThatNobodyAskedForIsTheKernelsOwn) {
    const std::string spoke =
        "spoke in its worker's name, or wrote over its stack: an answer came that nobody had "
        "asked for";
    for (const char* kernel : {"forge_answers", "forge_a_refusal", "forge_an_empty_answer"}) {
        open(kernel);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(sentence(call()), spoke) << kernel;
    }
    for (const char* kernel : {"forge_one_refusal", "forge_one_answer"}) {
        open(kernel);
        EXPECT_NE(sentence(call()), spoke) << kernel;
        const CallResult result = call();  // the worker's own answer to the first call
        EXPECT_EQ(sentence(result), spoke) << kernel;
        EXPECT_EQ(name(result.outcome), name(Outcome::crash));
    }
}

TEST_F(Forgery, NonsenseOnItsSocketIsNoEnd) {
    open("speak_nonsense");  // with a message of no bytes
    const int process = session_->process_id();
    for (int i = 0; i < 2; ++i) expect_ok(call(), 0);
    EXPECT_EQ(session_->process_id(), process);
}

TEST_F(Forgery, BarriersAreToldOnce) {
    open("forge_barriers");
    const std::uint32_t held = session_->barriers().bits();
    expect_ok(call());
    session_->restart();
    expect_ok(call());
    EXPECT_EQ(session_->barriers().bits(), held);
    options_.confinement.confined = false;
    open("forge_barriers");
    EXPECT_EQ(session_->barriers().bits(), 0u);
}

TEST_F(Forgery, WhoHangsUpIsNotKilledFromOutside) {
    for (const char* kernel : {"hang_up_and_go_on", "lead_the_socket_elsewhere"}) {
        open(kernel);
        const CallResult result = call();
        EXPECT_EQ(sentence(result).substr(0, 53),
                  "closed the descriptors of its process that the judge ");
        EXPECT_FALSE(killed_from_outside(result));
    }
}

class Schemes : public TroubleTest {
protected:
    Schemes() : TroubleTest("libschemes.so") {}
};

TEST_F(Schemes, ALimitOfItsOwnIsNoLackOfMemory) {
    options_.timeout = milliseconds(60'000);
    open("limit_its_own_time");
    const CallResult result = call();
    EXPECT_NE(name(result.outcome), name(Outcome::memory));
    EXPECT_EQ(sentence(result).substr(0, 50), "was killed by SIGKILL, which attest did not send: ");
}

TEST_F(Schemes, AHandlerThatWasGivenBackIsSeen) {
    open("handle_faults_and_give_back");
    EXPECT_EQ(sentence(call()).substr(0, 43), "put a handler of its own in the judge's pla");
}

TEST_F(Schemes, AnAlarmBetweenCallsIsNamedSo) {
    open("set_an_alarm_for_later");
    expect_ok(call());
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(sentence(call()), "died of SIGALRM between calls");
}

TEST_F(Schemes, WhoTakesAwayItsOutputIsToldSo) {
    open("unmap_its_output");
    expect_ok(call());
    const CallResult result = call();
    EXPECT_EQ(sentence(result).substr(0, 73),
              "had unmapped or protected o, whose memory is the judge's, in an earlier c");
}

TEST_F(Schemes, AStackThatIsGoneHasNotRunOut) {
    for (const char* kernel : {"unmap_its_stack", "protect_its_stack"}) {
        open(kernel);
        const CallResult result = call();
        EXPECT_EQ(sentence(result).substr(0, 46), "had unmapped or protected the stack it runs on")
            << kernel << ": " << sentence(result);
        EXPECT_EQ(name(result.fault->kind), name(Fault::Kind::signal));
    }
    open("shorten_its_stack");
    const CallResult result = call();
    EXPECT_EQ(sentence(result).substr(0, 16), "ran out of stack");
    EXPECT_EQ(name(result.fault->kind), name(Fault::Kind::stack_overflow));
}

}  // namespace
}  // namespace attest::worker
