#pragma once
// A second thread that calls the kernel while a call is judged: the same problem on tensors of its
// own, in which q, k and v are zero. A kernel that keeps what it works on in one place for all its
// callers then mixes the two.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "kernels/interface/attest_kernel.h"

namespace attest::worker {

class Beside {
public:
    /// One call; a sentence where it did not end well.
    using MakeCall = std::function<std::string(const attest_call&)>;

    /// Copies the tensors of `call`, and returns when its thread makes the first call.
    Beside(const attest_call& call, MakeCall make_call);
    ~Beside() { end(); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

    /// Waits for the call under way; the sentence of the first that did not end well.
    std::string end();

private:
    void copy(const attest_call& call);
    void make_calls();

    struct Free {
        void operator()(void* memory) const noexcept;
    };
    std::unique_ptr<std::byte, Free> memory_;
    DLTensor tensors_[ATTEST_ROLE_COUNT] = {};
    attest_call call_;
    MakeCall make_call_;
    std::atomic<bool> begun_{false}, over_{false};
    std::string said_;
    std::thread thread_;
};

}  // namespace attest::worker
