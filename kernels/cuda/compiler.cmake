# The kernels here and the oracle's rows, on a GPU: where that is asked for. nvcc takes minutes, and who has no GPU
# needs none of it.
if(ATTEST_CUDA)
    enable_language(CUDA)
    # CMake 3.25 does not know the flag of nvcc 12 and later.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # the worker asks the same one for memory
    string(APPEND CMAKE_CUDA_FLAGS " -Werror=all-warnings --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra")
endif()
