#pragma once
// What the tests of kernels that make trouble have in common.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "kernels/worker/example_kernels_test.hpp"
#include "kernels/worker/session.hpp"

namespace attest::worker {

/// A kernel of a library of those that make trouble, in a process of its own.
class TroubleTest : public testing::Test {
protected:
    explicit TroubleTest(std::string library) : library_(std::move(library)) {
        problem_.heads_q = problem_.heads_kv = 3;
        problem_.len_q = 2;
        problem_.len_kv = 5;
        problem_.dim_qk = 7;
        inputs_ = make_inputs({.problem = problem_, .values = {}});
        ::setenv("HOSTILE_FILE", file_.c_str(), 1);
        options_.timeout = std::chrono::milliseconds(5000);
        options_.memory_bytes = 256u << 20;
        options_.confinement.variables = {"HOSTILE_FILE", "HOSTILE_HOST"};
        std::filesystem::remove(file_);
    }
    ~TroubleTest() override { ::unsetenv("HOSTILE_FILE"); }

    void open(const std::string& kernel) {
        for (int index = 0;; ++index) {
            session_ = std::make_unique<Session>(
                kernel::parse_kernel_spec(example(library_ + "#") + std::to_string(index)),
                options_);
            if (session_->manifest().name == kernel) break;
            std::filesystem::remove(file_);
        }
    }
    CallResult call() { return session_->forward(problem_, inputs_); }

    void expect_ok(const CallResult& result, double value = 0) {
        ASSERT_EQ(name(result.outcome), name(Outcome::ok)) << result.reason;
        EXPECT_FALSE(result.fault);
        for (const double o : result.outputs[Role::o].to_doubles()) ASSERT_EQ(o, value);
    }
    static std::string sentence(const CallResult& result) {
        return result.fault ? result.fault->sentence : "no fault";
    }

    std::string library_;
    std::string file_ = testing::TempDir() + "/trouble_" + std::to_string(::getpid());
    SessionOptions options_;
    Problem problem_;
    TensorSet inputs_;
    std::unique_ptr<Session> session_;
};

}  // namespace attest::worker
