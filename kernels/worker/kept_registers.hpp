#pragma once
// A function must leave some registers as its caller had them: it saves them on its stack and takes
// them back at its end. One that wrote past an array there hands over other ones, and its caller
// goes on with addresses that are none.

#include <cstddef>

#include "kernels/interface/attest_kernel.h"

namespace attest::worker {

/// forward, backward or append.
using KernelFunction = int (*)(void* state, const attest_call* call, char* error,
                               std::size_t capacity);

/// Calls it; afterwards the registers are what they were. By the serving thread alone. Exceptions
/// pass.
int call_and_keep(KernelFunction operation, void* state, const attest_call* call, char* error,
                  std::size_t capacity);

/// Whether the last call left other registers. Never but on x86-64.
bool registers_were_lost() noexcept;

}  // namespace attest::worker
