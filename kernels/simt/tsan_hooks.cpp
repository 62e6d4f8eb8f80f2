// The functions that code compiled with -fsanitize=thread calls at every load and store. The real
// libtsan is not linked: ours send each access, with the address of the instruction, to the
// checker. Names and signatures are the compiler's.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simt/check.hpp"

namespace {

void tell(const volatile void* p, std::size_t n, bool write, bool atomic, const void* pc) {
    if (reinterpret_cast<std::uintptr_t>(p) - simt::stack_low < simt::stack_bytes) return;
    if (simt::runtime_depth != 0 || simt::checker() == nullptr) return;
    const simt::InRuntime in_runtime;
    simt::checker()->access(const_cast<const void*>(p), n, write, atomic, pc);
}

constexpr int order = __ATOMIC_SEQ_CST;

}  // namespace

#define HOOK extern "C" __attribute__((noinline))
#define FROM __builtin_return_address(0)

#define ACCESS(N)                                  \
    HOOK void __tsan_read##N(void* p) {            \
        tell(p, N, false, false, FROM);            \
    }                                              \
    HOOK void __tsan_write##N(void* p) {           \
        tell(p, N, true, false, FROM);             \
    }                                              \
    HOOK void __tsan_unaligned_read##N(void* p) {  \
        tell(p, N, false, false, FROM);            \
    }                                              \
    HOOK void __tsan_unaligned_write##N(void* p) { \
        tell(p, N, true, false, FROM);             \
    }                                              \
    HOOK void __tsan_read_write##N(void* p) {      \
        tell(p, N, true, false, FROM);             \
    }                                              \
    HOOK void __tsan_volatile_read##N(void* p) {   \
        tell(p, N, false, true, FROM);             \
    }                                              \
    HOOK void __tsan_volatile_write##N(void* p) {  \
        tell(p, N, true, true, FROM);              \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

HOOK void __tsan_read_range(void* p, unsigned long n) {
    tell(p, n, false, false, FROM);
}
HOOK void __tsan_write_range(void* p, unsigned long n) {
    tell(p, n, true, false, FROM);
}
/// Called by each instrumented unit before any of its code runs.
HOOK void __tsan_init() {
    simt::install_checker(simt::shadow_memory());
}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}
HOOK void __tsan_vptr_update(void**, void*) {}
HOOK void __tsan_vptr_read(void**) {}

HOOK void* __tsan_memcpy(void* to, const void* from, std::size_t n) {
    tell(from, n, false, false, FROM);
    tell(to, n, true, false, FROM);
    return std::memcpy(to, from, n);
}
HOOK void* __tsan_memmove(void* to, const void* from, std::size_t n) {
    tell(from, n, false, false, FROM);
    tell(to, n, true, false, FROM);
    return std::memmove(to, from, n);
}
HOOK void* __tsan_memset(void* to, int value, std::size_t n) {
    tell(to, n, true, false, FROM);
    return std::memset(to, value, n);
}

#define FETCH(B, T, NAME)                                             \
    HOOK T __tsan_atomic##B##_fetch_##NAME(volatile T* p, T v, int) { \
        tell(p, sizeof(T), true, true, FROM);                         \
        return __atomic_fetch_##NAME(p, v, order);                    \
    }
#define ATOMIC(B, T)                                                                              \
    HOOK T __tsan_atomic##B##_load(const volatile T* p, int) {                                    \
        tell(p, sizeof(T), false, true, FROM);                                                    \
        return __atomic_load_n(p, order);                                                         \
    }                                                                                             \
    HOOK void __tsan_atomic##B##_store(volatile T* p, T v, int) {                                 \
        tell(p, sizeof(T), true, true, FROM);                                                     \
        __atomic_store_n(p, v, order);                                                            \
    }                                                                                             \
    HOOK T __tsan_atomic##B##_exchange(volatile T* p, T v, int) {                                 \
        tell(p, sizeof(T), true, true, FROM);                                                     \
        return __atomic_exchange_n(p, v, order);                                                  \
    }                                                                                             \
    FETCH(B, T, add)                                                                              \
    FETCH(B, T, sub)                                                                              \
    FETCH(B, T, and)                                                                              \
    FETCH(B, T, or) FETCH(B, T, xor)                                                              \
        HOOK int __tsan_atomic##B##_compare_exchange_strong(volatile T* p, T* e, T v, int, int) { \
        tell(p, sizeof(T), true, true, FROM);                                                     \
        return __atomic_compare_exchange_n(p, e, v, 0, order, order);                             \
    }                                                                                             \
    HOOK int __tsan_atomic##B##_compare_exchange_weak(volatile T* p, T* e, T v, int, int) {       \
        tell(p, sizeof(T), true, true, FROM);                                                     \
        return __atomic_compare_exchange_n(p, e, v, 0, order, order);                             \
    }                                                                                             \
    HOOK T __tsan_atomic##B##_compare_exchange_val(volatile T* p, T e, T v, int, int) {           \
        tell(p, sizeof(T), true, true, FROM);                                                     \
        __atomic_compare_exchange_n(p, &e, v, 0, order, order);                                   \
        return e;                                                                                 \
    }
ATOMIC(8, std::uint8_t)
ATOMIC(16, std::uint16_t)
ATOMIC(32, std::uint32_t)
ATOMIC(64, std::uint64_t)

HOOK void __tsan_atomic_thread_fence(int) {}
HOOK void __tsan_atomic_signal_fence(int) {}
