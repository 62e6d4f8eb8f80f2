#pragma once
// The launcher of the runtime's own test kernels (micro.cu).

inline constexpr int micro_blocks = 4, micro_threads = 64;

/// Runs the named kernel on o, a device buffer of micro_blocks * micro_threads floats; a CUDA error
/// code.
int launch_micro(const char* name, float* o);
