#pragma once
// The CPU kernels, behind the border; registered in kernels.cpp.

#include "kernels/interface/attest_kernel.h"

namespace attest::kernel {

extern const attest_kernel_api naive_api;
extern const attest_kernel_api flash_api;
extern const attest_kernel_api flash_plain_api;
extern const attest_kernel_api decode_api;

}  // namespace attest::kernel
