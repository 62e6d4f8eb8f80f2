#pragma once
// What a call may touch, told to the checker: its own tensors and workspace.

#include <cstdint>

#include "kernels/interface/attest_kernel.h"
#include "kernels/simt/check.hpp"

namespace attest_cuda {

class Buffers {
public:
    explicit Buffers(const attest_call* call);
    ~Buffers();
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

private:
    void add(void* p, std::int64_t bytes, const char* name, bool defined);

    void* known_[ATTEST_ROLE_COUNT + 1] = {};
    int count_ = 0;
};

}  // namespace attest_cuda
