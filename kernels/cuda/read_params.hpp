#pragma once
// The ABI's call, read into Params: no values, only addresses, strides and numbers.

#include "kernels/cuda/params.hpp"
#include "kernels/interface/attest_kernel.h"

namespace attest::cuda {

/// What a kernel of this folder can do beyond what all of them can.
struct CudaOffer {
    bool f32 = true, rope = false, splits = false, cache = true, backward = false;
};

/// 1, or 0 with a reason in the kernel's terms.
int answer(const CudaOffer& offer, const attest_problem* problem, char* reason,
           std::size_t reason_cap);

/// False where a tensor the problem needs is absent.
bool read_params(const attest_call* call, Params& params, ElementFormat& element);

/// Bytes of d_q_sum where gradients are wanted.
std::size_t d_query_sum_bytes(const attest_problem& problem);

/// Floats and counters a decode launch needs in its workspace; 0 splits is this kernel's choice.
std::int64_t chosen_splits(const attest_problem& problem);
std::size_t decode_workspace_bytes(const attest_problem& problem);
void place_workspace(const attest_call* call, Params& params);

}  // namespace attest::cuda
