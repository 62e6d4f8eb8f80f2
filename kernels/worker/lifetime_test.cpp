// Workers live as long as their session, and never longer than their host; they leak nothing.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "kernels/worker/example_kernels_test.hpp"
#include "kernels/worker/protocol.hpp"
#include "kernels/worker/session.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

using std::chrono::milliseconds;

/// Field of /proc/PID/stat after the name: 'R', 'S', 'Z', ...; 0 where there is no such process.
char process_state(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');
    return name_end == std::string::npos ? '\0' : text[name_end + 2];
}

bool is_gone(pid_t pid) {
    const char state = process_state(pid);
    return state == '\0' || state == 'Z' || state == 'X';
}

bool is_gone_within(pid_t pid, milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < until) {
        if (is_gone(pid)) return true;
        std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
}

std::ptrdiff_t open_files() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
}

/// Resident private bytes of a process.
std::uint64_t private_bytes(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
    std::uint64_t size = 0, resident = 0, shared = 0;
    file >> size >> resident >> shared;
    return (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

ChosenKeys some_choice(std::int64_t len) {
    Problem p;
    p.len_q = p.len_kv = p.dim_qk = len;
    return make_choice(p);
}

TEST(Lifetime, AKilledHostLeavesNoWorker) {
    const std::string program = example("../worker/session_host");
    const std::string kernel = example("libmisbehaving.so#8");  // never_return
    const char* arguments[] = {program.c_str(), kernel.c_str(), nullptr};
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t host = 0;
    ASSERT_EQ(posix_spawn(&host, program.c_str(), &actions, nullptr, const_cast<char**>(arguments),
                          environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char text[32] = {};
    ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
    ::close(ends[0]);
    const pid_t worker = std::atoi(text);
    std::this_thread::sleep_for(milliseconds(200));  // into the call, where it reads no socket
    ASSERT_EQ(process_state(worker), 'R');

    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    EXPECT_TRUE(is_gone_within(worker, milliseconds(10000)));
}

/// The files a process has open besides the five that the protocol names.
std::vector<std::string> other_files(pid_t pid) {
    std::vector<std::string> names;
    for (const auto& file :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
        if (std::stoi(file.path().filename().string()) > protocol::memory_fd)
            names.push_back(std::filesystem::read_symlink(file).string());
    return names;
}

TEST(Lifetime, AWorkerHasNoFileOfItsHost) {
    const int inherited = ::open("/dev/full", O_WRONLY);  // not closed by exec
    const Session session(kernel::parse_kernel_spec("cpu_naive"), SessionOptions{});
    EXPECT_EQ(other_files(session.process_id()), std::vector<std::string>{});
    ::close(inherited);
}

TEST(Lifetime, WhatIsPreloadedKeepsItsFiles) {
    if (sanitized()) GTEST_SKIP() << "a sanitizer wants to be preloaded first";
    ::setenv("LD_PRELOAD", example("libpreloaded.so").c_str(), 1);
    const Session session(kernel::parse_kernel_spec("cpu_naive"), SessionOptions{});
    ::unsetenv("LD_PRELOAD");
    EXPECT_EQ(other_files(session.process_id()), std::vector<std::string>{"/dev/zero"});
}

TEST(Lifetime, AWorkerThatIsGivenTimeEndsByItself) {
    const std::string file =
        testing::TempDir() + "/output_of_a_worker_" + std::to_string(::getpid());
    ::setenv("ATTEST_WORKER_OUTPUT", file.c_str(), 1);
    const auto said = [&](milliseconds farewell) {
        std::filesystem::remove(file);
        Session(example_spec("libon_device.so"), {.farewell = farewell});
        std::string word;
        std::ifstream(file) >> word;
        return word;
    };
    EXPECT_EQ(said(milliseconds(60'000)), "goodbye");  // it does not take that long
    EXPECT_EQ(said(milliseconds(0)), "");
    ::unsetenv("ATTEST_WORKER_OUTPUT");
}

TEST(Lifetime, AWorkerOutlivesTheThreadThatOpenedItsSession) {
    std::unique_ptr<Session> session;
    std::thread([&] {
        session =
            std::make_unique<Session>(kernel::parse_kernel_spec("cpu_naive"), SessionOptions{});
    }).join();
    const pid_t worker = session->process_id();
    std::this_thread::sleep_for(milliseconds(100));
    const ChosenKeys choice = some_choice(4);
    EXPECT_EQ(wrong(choice, session->forward(choice.problem, choice.inputs)), "");
    EXPECT_EQ(session->process_id(), worker);
}

TEST(Lifetime, ADestroyedSessionLeavesNoWorker) {
    pid_t worker = 0;
    {
        const Session session(kernel::parse_kernel_spec("cpu_naive"), {});
        worker = session.process_id();
        EXPECT_FALSE(is_gone(worker));
    }
    EXPECT_TRUE(is_gone(worker));
}

TEST(Lifetime, RestartMeansAFreshProcess) {
    Session session(kernel::parse_kernel_spec("cpu_naive"), {});
    const pid_t before = session.process_id();
    session.restart();
    EXPECT_NE(session.process_id(), before);
    EXPECT_TRUE(is_gone(before));
    const ChosenKeys choice = some_choice(4);
    EXPECT_EQ(wrong(choice, session.forward(choice.problem, choice.inputs)), "");
}

TEST(Lifetime, ADeadWorkerIsReplacedBeforeTheNextCall) {
    Session session(kernel::parse_kernel_spec("cpu_naive"), {});
    const ChosenKeys choice = some_choice(4);
    for (int i = 0; i < 3; ++i) {
        const pid_t worker = session.process_id();
        ::kill(worker, SIGTERM);
        EXPECT_EQ(session.forward(choice.problem, choice.inputs).outcome, Outcome::crash);
        EXPECT_EQ(wrong(choice, session.forward(choice.problem, choice.inputs)), "");
        EXPECT_NE(session.process_id(), worker);
    }
}

TEST(Lifetime, TwoSessionsAtOnce) {
    const auto work = [](std::int64_t len) {
        Session session(kernel::parse_kernel_spec("cpu_naive"), {});
        const ChosenKeys choice = some_choice(len);
        for (int i = 0; i < 200; ++i) {
            EXPECT_EQ(wrong(choice, session.forward(choice.problem, choice.inputs)), "");
        }
    };
    std::thread other([&] { work(33); });
    work(17);
    other.join();
}

TEST(Lifetime, CallsAndRestartsLeakNothing) {
    Session session(kernel::parse_kernel_spec("cpu_naive"), {});
    const auto calls = [&](int count) {
        for (int i = 0; i < count; ++i) {
            const ChosenKeys choice = some_choice(1 + i % 40);
            ASSERT_EQ(wrong(choice, session.forward(choice.problem, choice.inputs)), "");
        }
    };
    session.restart();
    calls(400);
    const std::ptrdiff_t files = open_files();
    const std::uint64_t host = private_bytes(::getpid()),
                        worker = private_bytes(session.process_id());
    calls(2000);
    if (!sanitized()) {
        // A leak of a page a call would be 8 MB; allocators keep a few pages of slack.
        EXPECT_LT(private_bytes(::getpid()), host + (1 << 20));
        EXPECT_LT(private_bytes(session.process_id()), worker + (1 << 20));
    }
    for (int i = 0; i < 20; ++i) {
        session.restart();
        calls(1);
    }
    EXPECT_EQ(open_files(), files);
}

TEST(Lifetime, ALargeCallGivesItsMemoryBack) {
    Session session(kernel::parse_kernel_spec("cpu_naive"), {});
    Problem p;
    p.heads_q = p.heads_kv = 64;
    p.len_kv = 1024;
    p.dim_qk = 256;  // 64 MiB each of k and v
    const TensorSet inputs = make_inputs({.problem = p, .values = {}});
    ASSERT_EQ(session.forward(p, inputs).outcome, Outcome::ok);
    const auto shared_bytes = [] {
        std::ifstream file("/proc/self/statm");
        std::uint64_t size = 0, resident = 0, shared = 0;
        file >> size >> resident >> shared;
        return shared * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    };
    EXPECT_LT(shared_bytes(), 64u << 20);
    const ChosenKeys choice = some_choice(4);
    EXPECT_EQ(wrong(choice, session.forward(choice.problem, choice.inputs)), "");
}

}  // namespace
}  // namespace attest::worker
