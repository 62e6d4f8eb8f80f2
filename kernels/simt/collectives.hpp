#pragma once
// CUDA's barriers, shuffles, votes and atomics, by their CUDA names.

#include <atomic>
#include <cstring>
#include <type_traits>

#include "kernels/simt/block.hpp"

namespace simt {

struct ShuffleOperand {
    unsigned char value[16];
    int source;
};
/// Each lane takes `bytes` from its source lane; reading a lane that does not take part is
/// reported.
void shuffle(unsigned mask, ShuffleOperand& mine, void* out, std::size_t bytes,
             const Location& location);
void sync_warp(unsigned mask, const Location& location);
unsigned ballot(unsigned mask, bool predicate, Collective kind, const Location& location);

template <typename T>
T shuffle_value(unsigned mask, T value, int source, const Location& location) {
    static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
    ShuffleOperand mine;
    std::memcpy(mine.value, &value, sizeof value);
    mine.source = source;
    T out = value;
    shuffle(mask, mine, &out, sizeof(T), location);
    return out;
}

inline int lane_id() {
    return static_cast<int>(current_block()->self().lane);
}

}  // namespace simt

inline void __syncthreads(simt::Location at = simt::Location::here()) {
    simt::current_block()->barrier(false, at);
}
inline int __syncthreads_count(int predicate, simt::Location at = simt::Location::here()) {
    return static_cast<int>(simt::current_block()->barrier(predicate != 0, at));
}
inline int __syncthreads_or(int predicate, simt::Location at = simt::Location::here()) {
    return simt::current_block()->barrier(predicate != 0, at) != 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate, simt::Location at = simt::Location::here()) {
    return simt::current_block()->barrier(predicate == 0, at) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = ~0u, simt::Location at = simt::Location::here()) {
    simt::sync_warp(mask, at);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              simt::Location at = simt::Location::here()) {
    const int lane = simt::lane_id();
    return simt::shuffle_value(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), at);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32,
                  simt::Location at = simt::Location::here()) {
    const int lane = simt::lane_id(), source = lane ^ flip;
    const bool outside = source >= (lane & ~(width - 1)) + width;
    return simt::shuffle_value(mask, value, outside ? lane : source, at);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   simt::Location at = simt::Location::here()) {
    const int lane = simt::lane_id(), by = static_cast<int>(delta);
    return simt::shuffle_value(mask, value, (lane & (width - 1)) + by >= width ? lane : lane + by,
                               at);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 simt::Location at = simt::Location::here()) {
    const int lane = simt::lane_id(), by = static_cast<int>(delta);
    return simt::shuffle_value(mask, value, (lane & (width - 1)) < by ? lane : lane - by, at);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              simt::Location at = simt::Location::here()) {
    return simt::ballot(mask, predicate != 0, simt::Collective::ballot, at);
}
inline int __any_sync(unsigned mask, int predicate, simt::Location at = simt::Location::here()) {
    return simt::ballot(mask, predicate != 0, simt::Collective::vote, at) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, simt::Location at = simt::Location::here()) {
    return simt::ballot(mask, predicate == 0, simt::Collective::vote, at) == 0 ? 1 : 0;
}

template <typename T, typename Combine>
T simt_atomic_update(T* p, Combine combine) {
    std::atomic_ref<T> cell(*p);
    T seen = cell.load();
    while (!cell.compare_exchange_weak(seen, combine(seen))) {
    }
    return seen;
}
template <typename T>
T atomicAdd(T* p, std::type_identity_t<T> v) {
    return simt_atomic_update(p, [v](T x) { return static_cast<T>(x + v); });
}
template <typename T>
T atomicSub(T* p, std::type_identity_t<T> v) {
    return simt_atomic_update(p, [v](T x) { return static_cast<T>(x - v); });
}
template <typename T>
T atomicMax(T* p, std::type_identity_t<T> v) {
    return simt_atomic_update(p, [v](T x) { return x < v ? v : x; });
}
template <typename T>
T atomicMin(T* p, std::type_identity_t<T> v) {
    return simt_atomic_update(p, [v](T x) { return v < x ? v : x; });
}
template <typename T>
T atomicOr(T* p, std::type_identity_t<T> v) {
    return simt_atomic_update(p, [v](T x) { return static_cast<T>(x | v); });
}
template <typename T>
T atomicAnd(T* p, std::type_identity_t<T> v) {
    return simt_atomic_update(p, [v](T x) { return static_cast<T>(x & v); });
}
template <typename T>
T atomicExch(T* p, std::type_identity_t<T> v) {
    return std::atomic_ref<T>(*p).exchange(v);
}
template <typename T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
    std::atomic_ref<T>(*p).compare_exchange_strong(expected, desired);
    return expected;
}
/// atomicInc wraps to zero past the limit: the counter of "the last block combines".
inline unsigned atomicInc(unsigned* p, unsigned limit) {
    return simt_atomic_update(p, [limit](unsigned x) { return x >= limit ? 0u : x + 1; });
}
inline void __threadfence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void __threadfence_block() {
    __threadfence();
}
inline void __threadfence_system() {
    __threadfence();
}
