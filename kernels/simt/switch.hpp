#pragma once
// From one simulated thread to the next. Inline, since a processor does not foresee a return behind
// a switch: the fewer there are, the faster. For the runtime's own sources alone.

#include "kernels/simt/block.hpp"
#include "kernels/simt/check.hpp"

namespace simt {

/// Whoever is switched to keeps where the one before goes on.
inline void Block::resumed(boost::context::fiber&& from) {
    (left_ != nullptr ? left_->fiber : caller_) = std::move(from);
}

/// From the thread that runs, or the OS thread, to next; null: to the OS thread.
[[gnu::always_inline]] inline void Block::switch_to(BlockThread* next) {
    BlockThread* const me = self_;
    if (next == me) return;
    left_ = me;
    self_ = next;
    if (next == nullptr) return resumed(std::move(caller_).resume());
    ::threadIdx = next->index;
    stack_low = reinterpret_cast<std::uintptr_t>(next->stack.get());
    resumed(std::move(next->fiber).resume());
}

/// Comes back when the thread's turn has come again.
[[gnu::always_inline]] inline void Block::yield() {
    const bool enough = ++report_.switches - switches_at_start_ > options_.switches_max;
    switch_to(enough ? nullptr : pop());
}

template <typename Complete>
void Block::collect(std::uint32_t mask, Collective kind, const void* in, void* out,
                    const Location& location, Complete complete) {
    const InRuntime in_runtime;
    OpenCollective* whole = arrive(mask, kind, in, out, location);
    if (whole == nullptr) return yield();
    complete(*whole);
    release(*whole);
}

}  // namespace simt
