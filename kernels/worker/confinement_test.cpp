// A kernel stays in its process, and what it hides there is seen.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "kernels/worker/trouble_test.hpp"

namespace attest::worker {
namespace {

class Confined : public TroubleTest {
protected:
    Confined() : TroubleTest("libescapes.so") {}
};

/// Whether this machine gives what the kernel is to meet; says so where it does not.
#define NEEDS(barrier)                               \
    if (!session_->barriers().has(Barrier::barrier)) \
    GTEST_SKIP() << "this machine has no barrier " #barrier

TEST_F(Confined, NothingOfTheHostIsWithinReach) {
    ::setenv("HOSTILE_HOST", std::to_string(::getpid()).c_str(), 1);
    for (const char* attack : {"signal_the_host", "trace_the_host", "read_the_host",
                               "limit_the_host", "open_a_socket", "gain_rights"}) {
        open(attack);
        NEEDS(processes);
        NEEDS(proc);
        NEEDS(system_calls);
        NEEDS(rights);
        SCOPED_TRACE(attack);
        expect_ok(call(), 0);
        options_.confinement.confined = false;
        open(attack);
        EXPECT_NE(call().outputs[Role::o].to_doubles()[0], 0) << "it is no attack";
        options_.confinement.confined = true;
    }
}

TEST_F(Confined, TheMachineIsNotItsToChange) {
    open("change_the_system");
    NEEDS(files);
    expect_ok(call(), 0);
}

TEST_F(Confined, TheResultsAreNotItsToWrite) {
    const std::string folder = file_ + ".results";
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/verdict") << "violated";
    ::setenv("HOSTILE_FILE", folder.c_str(), 1);
    options_.confinement.results = folder;
    open("write_into_the_folder");
    NEEDS(results);
    expect_ok(call(), 0);
    EXPECT_TRUE(std::filesystem::exists(folder + "/verdict"));
    std::filesystem::remove_all(folder);
}

TEST_F(Confined, WritesStayBelowTheFoldersForTemporaryFiles) {
    const std::string folder = std::filesystem::current_path() / "hostile_writes";
    std::error_code failure;
    std::filesystem::create_directory(folder, failure);
    if (failure) GTEST_SKIP() << "this process may not write in the build folder either";
    std::ofstream(folder + "/verdict") << "violated";
    ::setenv("HOSTILE_FILE", folder.c_str(), 1);
    open("write_into_the_folder");
    NEEDS(files);
    // A checkout in /tmp is in such a folder itself.
    expect_ok(call(), folder.starts_with("/tmp/") ? 7 : 0);
    std::filesystem::remove_all(folder);
}

TEST_F(Confined, NoChildOutlivesIt) {
    open("leave_children_in_sessions_of_their_own");
    NEEDS(processes);
    expect_ok(call());
    const int file = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    EXPECT_NE(::flock(file, LOCK_EX | LOCK_NB), 0);  // a child holds it
    session_.reset();
    EXPECT_EQ(::flock(file, LOCK_EX | LOCK_NB), 0);
    ::close(file);
}

TEST_F(Confined, TheEnvironmentIsSmall) {
    ::setenv("HOSTILE_TOKEN", "secret", 1);
    ::setenv("PYTHON_TOKEN", "secret", 1);
    open("see_the_environment");
    expect_ok(call(), 0);
    options_.confinement.variables.push_back("HOSTILE_TOKEN");
    open("see_the_environment");
    expect_ok(call(), 1);
    options_.confinement.confined = false;
    open("see_the_environment");
    EXPECT_EQ(session_->barriers().bits(), 0u);
    expect_ok(call(), 3);
    ::unsetenv("HOSTILE_TOKEN");
    ::unsetenv("PYTHON_TOKEN");
}

TEST(Environment, WhatIsWithheldAndNamedIsTold) {
    ::setenv("HOSTILE_DIR", "/tmp", 1);
    using Names = std::vector<std::string>;
    EXPECT_EQ(withheld_variables("KeyError: 'HOSTILE_DIR'", {}),
              Names{"it is not given HOSTILE_DIR; --env HOSTILE_DIR does so"});
    EXPECT_EQ(withheld_variables("no HOSTILE_DIRECTORY, no MY_HOSTILE_DIR, no PATH", {}), Names{});
    EXPECT_EQ(withheld_variables("HOSTILE_DIR", {.variables = {"HOSTILE_DIR"}}), Names{});
    EXPECT_EQ(withheld_variables("HOSTILE_DIR", {.confined = false}), Names{});
    ::unsetenv("HOSTILE_DIR");
    EXPECT_EQ(withheld_variables("HOSTILE_DIR", {}), Names{});
}

TEST_F(Confined, NothingTellsItWhoAsks) {
    ::setenv("ATTEST_WORKER_OUTPUT", "/dev/null", 1);
    open("know_the_judge");
    NEEDS(processes);
    expect_ok(call(), 0);
    options_.confinement.confined = false;
    open("know_the_judge");
    EXPECT_EQ(static_cast<int>(call().outputs[Role::o].to_doubles()[0]) & 1, 1) << "its program";
    ::unsetenv("ATTEST_WORKER_OUTPUT");
}

TEST_F(Confined, AHandlerThatHidesReadsIsSeen) {
    open("handle_faults_once");  // as a library does that is set up when it is first used
    expect_ok(call(), 1);
    open("handle_faults");
    const CallResult result = call();
    EXPECT_EQ(result.outcome, Outcome::crash);
    EXPECT_EQ(sentence(result).substr(0, 43), "put a handler of its own in the judge's pla");
}

}  // namespace
}  // namespace attest::worker
