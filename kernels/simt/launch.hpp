#pragma once
// Launching a kernel: simt::launch(kernel, grid, block, dynamic_bytes, stream, arguments...), and
// shared memory.

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "kernels/simt/block.hpp"
#include "kernels/simt/cudart.hpp"

namespace simt {

/// Runs every block of the grid to its end. Diagnostics are in last_report(). A launch fails where
/// one fails on a GPU: of a configuration it does not take, and where a block was stopped; a race
/// or an undefined read leaves it a success there too.
cudaError_t launch_blocks(const LaunchShape& shape, const std::function<void()>& body);

template <typename... P, typename... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t dynamic_bytes,
                   cudaStream_t, A&&... a) {
    const std::tuple<std::decay_t<P>...> arguments(static_cast<P>(a)...);
    return launch_blocks({grid, block, dynamic_bytes}, [&] { std::apply(kernel, arguments); });
}

/// What the translator turns kernel<<<grid, block, bytes, stream>>>(arguments) into.
struct Launcher {
    dim3 grid, block;
    std::size_t dynamic_bytes;
    cudaStream_t stream;
    template <typename... P, typename... A>
    void operator()(void (*kernel)(P...), A&&... a) const {
        remember_error(launch(kernel, grid, block, dynamic_bytes, stream, std::forward<A>(a)...));
    }
};
inline Launcher launcher(dim3 grid, dim3 block, std::size_t dynamic_bytes = 0,
                         cudaStream_t stream = nullptr) {
    return {grid, block, dynamic_bytes, stream};
}

/// Typed arrays out of dynamic shared memory; on a CPU each has its own red zone.
class SharedCarver {
public:
    template <typename T>
    T* take(std::size_t count, const char* name = "dynamic", Location at = Location::here()) {
        used_ = (used_ + 15) / 16 * 16 + count * sizeof(T);
        return static_cast<T*>(
            current_block()->dynamic_array(ordinal_++, count * sizeof(T), used_, name, at));
    }

private:
    std::size_t used_ = 0;
    int ordinal_ = 0;
};

/// All of the dynamic shared memory as one array: what `extern __shared__ T name[]` means.
template <typename T>
T* dynamic_shared(const char* name) {
    Block* block = current_block();
    const std::size_t bytes = block->dynamic_bytes();
    return static_cast<T*>(block->dynamic_array(0, bytes, bytes, name, {}));
}

}  // namespace simt

// __shared__ cannot be a C++ declaration: SIMT_SHARED(float, tile, [32][33]) is one on both sides.
#define SIMT_SHARED(T, name, ...)                             \
    using name##_simt_type = T __VA_ARGS__;                   \
    static const char name##_simt_key = 0;                    \
    name##_simt_type& name = *static_cast<name##_simt_type*>( \
        ::simt::current_block()->shared_array(&name##_simt_key, sizeof(name##_simt_type), #name))
#define SIMT_DYNAMIC_SHARED(name) ::simt::SharedCarver name
