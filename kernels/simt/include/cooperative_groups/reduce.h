#pragma once
// The name CUDA sources know: on a CPU it is the SIMT runtime, with or without a toolkit.
#include "kernels/simt/cooperative_groups.hpp"
#include "kernels/simt/simt.hpp"
