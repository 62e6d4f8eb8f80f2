#pragma once
// What the CPU kernels share of supports(): saying no with a reason.

#include <cstddef>

#include "kernels/interface/attest_kernel.h"

namespace attest::cpu {

/// What a kernel does; everything else of the ABI's forward call it does. Ring buffers none
/// of them do, nor gradients over a cache in pages.
struct Offer {
    bool documents = true, paged = true, ring = true, splits = true, rope = true, f64 = true;
    bool gradients = false, dropout = false;
};

/// The answer of supports(): 1, or 0 with a reason in the kernel's terms.
int answer(const Offer& offer, const attest_problem* problem, char* reason,
           std::size_t reason_cap) noexcept;

int fail(char* error, std::size_t error_cap, const char* text) noexcept;  ///< returns 1

}  // namespace attest::cpu
