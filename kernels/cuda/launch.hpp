#pragma once
// The launchers: all that host code links against. Each returns a CUDA error code, 0 for success.

#include <cstddef>

#include "kernels/cuda/params.hpp"

namespace attest::cuda {

int launch_naive(ElementFormat element, const Params& p, void* stream);
int launch_flash(ElementFormat element, const Params& p, void* stream);
int launch_flash_mma(ElementFormat element, const Params& p, void* stream);  ///< f16 and bf16
int launch_decode(ElementFormat element, const Params& p,
                  void* stream);  ///< clears p.arrivals itself

/// Of launch_flash: dq by one kernel, dk and dv by another; or all by one, dq with atomics, which
/// clears p.d_q_sum itself.
int launch_flash_backward(ElementFormat element, const Params& p, void* stream);
int launch_flash_atomic_backward(ElementFormat element, const Params& p, void* stream);

/// The planted bug of this number (planted_bugs.hpp): head dimensions up to 64 alone, flash in f32,
/// mma in bf16.
int launch_planted(std::size_t number, const Params& p, void* stream);
int launch_planted_backward(std::size_t number, const Params& p, void* stream);

}  // namespace attest::cuda
