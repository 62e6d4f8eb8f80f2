#pragma once
// One call across attest's ABI, run on this runtime: what a plug-in's forward() needs besides
// the launch itself.
//
//     const simt::AttestCall watched(*call);
//     ... launch ...
//     return watched.finish(code, error, error_cap);

#include <cstddef>
#include <cstdint>

#include "kernels/interface/attest_kernel.h"

namespace simt {

/// Chooses the schedule of this thread's launches and tells the checker what the call may touch.
class AttestCall {
public:
    explicit AttestCall(const attest_call& call);
    ~AttestCall();
    AttestCall(const AttestCall&) = delete;
    AttestCall& operator=(const AttestCall&) = delete;

    /// What forward() returns: not 0 where the runtime found something, whatever the values are.
    int finish(int code, char* error, std::size_t error_cap) const;

private:
    void add(void* p, std::int64_t bytes, const char* name, bool defined);

    void* known_[ATTEST_ROLE_COUNT + 1] = {};
    int count_ = 0;
};

}  // namespace simt
