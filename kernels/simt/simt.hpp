#pragma once
// One source, two worlds: nvcc makes real CUDA of it, any C++ compiler a checked program on this
// CPU.
#if defined(__CUDACC__)
#include "kernels/simt/device.hpp"
#else
#include "kernels/simt/collectives.hpp"
#include "kernels/simt/half_pairs.hpp"
#include "kernels/simt/intrinsics.hpp"
#include "kernels/simt/launch.hpp"
#include "kernels/simt/tensor_core.hpp"
#endif
