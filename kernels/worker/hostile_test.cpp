// What a kernel does to its process, and to its judge, ends in a finding or a fresh process; never
// in the end of the host.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "kernels/worker/queue_time.hpp"
#include "kernels/worker/trouble_test.hpp"
#include "kernels/worker/worker_memory.hpp"
#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

using std::chrono::milliseconds;

class Hostile : public TroubleTest {
protected:
    Hostile() : TroubleTest("libhostile.so") {}
};

TEST_F(Hostile, AWorkspaceBeyondTheLimitIsNotLaidOut) {
    for (const auto& [kernel, size] : {std::pair{"one_tebibyte", "1 TiB"},
                                       {"four_exbibytes", "4 EiB"},
                                       {"all_there_is", "16 EiB"}}) {
        open(kernel);
        for (int side = 0; side < 2; ++side) {
            const CallResult result = call();
            EXPECT_EQ(result.outcome, Outcome::memory);
            EXPECT_EQ(sentence(result),
                      std::string("asked for a workspace of ") + size + ": 256 MiB are allowed");
        }
    }
    SessionOptions unlimited;
    unlimited.memory_bytes = 0;
    Session session(kernel::parse_kernel_spec(example("libhostile.so#2")), unlimited);
    EXPECT_EQ(session.forward(problem_, inputs_).outcome, Outcome::memory);
}

TEST_F(Hostile, TheSharedMemoryCannotBeTakenAway) {
    open("shrink_memory");
    expect_ok(call());
    open("grow_memory");
    expect_ok(call(), 1);  // it could, and harms nobody
    problem_.len_kv = 40'000;
    inputs_ = make_inputs({.problem = problem_, .values = {}});
    expect_ok(call(), 1);  // the host needs more, and finds it there
}

TEST_F(Hostile, AddressesAreNoMemory) {
    open("reserve_addresses");
    expect_ok(call());
}

TEST_F(Hostile, WhatManyShortCallsPileUpIsSeen) {
    for (const char* kernel : {"leak", "leak_shared"}) {
        open(kernel);
        CallResult result;
        int calls = 0;
        for (; calls < 200 && result.outcome == Outcome::ok; ++calls) result = call();
        EXPECT_EQ(result.outcome, Outcome::memory) << kernel;
        EXPECT_EQ(sentence(result), "ran out of memory: 256 MiB are allowed");
        EXPECT_GE(calls, 60);  // 64 calls of 4 MiB are allowed
        EXPECT_LE(calls, 90);
    }
}

TEST_F(Hostile, AWorkerThatIsKilledFromOutsideIsReplaced) {
    open("count_processors");
    const auto end_it = [this] {
        const int process = session_->process_id();
        if (process <= 0) throw std::runtime_error("no worker runs");  // -1 would mean everybody
        ::kill(process, SIGKILL);
    };
    for (int i = 0; i < 3; ++i) {
        end_it();
        EXPECT_EQ(call().outcome, Outcome::ok);
        end_it();
        EXPECT_TRUE(session_->supports(problem_, nullptr));
    }
    open("be_killed_once");
    expect_ok(call());
    open("kill_itself");
    const CallResult result = call();
    EXPECT_TRUE(killed_from_outside(result));
    const auto kills = kills_for_memory();
    EXPECT_EQ(sentence(result).substr(0, 75),
              "was killed by SIGKILL, which attest did not send: by itself, by a limit of ");
    EXPECT_EQ(kills, kills_for_memory()) << "meanwhile this machine ran out of memory";
}

TEST_F(Hostile, AThreadThatCrashesBetweenCallsIsNamedSo) {
    open("leave_a_thread_that_crashes");
    expect_ok(call());
    std::this_thread::sleep_for(milliseconds(500));
    const CallResult result = call();
    EXPECT_EQ(result.outcome, Outcome::crash);
    EXPECT_EQ(sentence(result).substr(0, 61),
              "wrote to address 0x8, which is in no tensor between calls, at");
}

TEST_F(Hostile, WhatDiesWhenAskedIsTold) {
    open("hang_in_supports");
    session_->set_timeout(milliseconds(200));
    try {
        session_->supports(problem_, nullptr);
        FAIL() << "nothing was thrown";
    } catch (const KernelDied& died) {
        EXPECT_EQ(died.result.outcome, Outcome::hang);
        EXPECT_EQ(sentence(died.result),
                  "did not return within 200 ms inside supports() or workspace()");
    }
    EXPECT_EQ(call().outcome, Outcome::hang);
}

TEST_F(Hostile, WhatCannotBeLoadedOnceIsTriedAgain) {
    open("fail_at_load_2");
    EXPECT_TRUE(killed_from_outside(call()));  // and loaded again each time
    session_->restart();
    EXPECT_NE(session_->process_id(), 0);
}

TEST_F(Hostile, WhatCannotBeLoadedAgainIsGone) {
    open("fail_from_load_2");
    try {
        call();
        FAIL() << "nothing was thrown";
    } catch (const KernelGone& gone) {
        EXPECT_NE(std::string(gone.what()).find("create() failed with code 9"), std::string::npos);
        ASSERT_FALSE(gone.details().empty());
        EXPECT_EQ(gone.details()[0], "it was loaded before; it could not be loaded again");
    }
    EXPECT_THROW(session_->restart(), KernelGone);
}

TEST_F(Hostile, OneProcessorIsOne) {
    open("count_processors");
    expect_ok(call(), processors());
    session_->use_processors(Processors::one);
    expect_ok(call(), processors());  // the process is what it was
    session_->restart();
    expect_ok(call(), 1);
    session_->use_processors(Processors::all);
    session_->restart();
    expect_ok(call(), processors());
}

/// Though it promises 64 bytes: it declares its features, and no layout.
TEST_F(Hostile, NumbersAHeadEndAtAGuardInEveryCall) {
    open("read_past_slopes");
    problem_.alibi = true;
    problem_.len_q = problem_.len_kv;
    inputs_ = make_inputs({.problem = problem_, .values = {}});
    for (const std::uint64_t first : {0, 1}) {
        session_->begin_case(first);
        const CallResult result = call();
        EXPECT_EQ(result.outcome, Outcome::crash);
        EXPECT_EQ(sentence(result).substr(0, 38), "read just past the end of alibi_slopes");
    }
}

TEST_F(Hostile, ADeathIsToldAsItWas) {
    for (const auto& [kernel, end] : {std::pair{"exit_with_7", "ended its process: exit(7)"},
                                      {"die_of_term", "died of SIGTERM"}}) {
        open(kernel);
        EXPECT_EQ(sentence(call()), end);
    }
}

pid_t busy(bool sleeping) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    if (sleeping) ::pause();
    ::sched_setaffinity(0, sizeof one, &one);
    for (volatile bool on = true; on;) {
    }
    return 0;
}

TEST(QueueTime, CountsWhatIsWaitedForAProcessorAlone) {
    if (!std::ifstream("/proc/self/schedstat")) GTEST_SKIP() << "this system does not tell";
    cpu_set_t mine, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);  // so that all children are on the same one
    const pid_t a = busy(false), b = busy(false), asleep = busy(true);
    ::sched_setaffinity(0, sizeof mine, &mine);
    const QueueTime of_a(a), of_asleep(asleep);
    std::this_thread::sleep_for(milliseconds(600));
    EXPECT_GE(of_a.waited(), milliseconds(100));  // half, but for what else runs there
    EXPECT_LE(of_asleep.waited(), milliseconds(50));
    for (const pid_t child : {a, b, asleep}) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
}

}  // namespace
}  // namespace attest::worker
