// Where threads of a block wait for each other: barriers and warp collectives.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/simt/block.hpp"
#include "kernels/simt/check.hpp"
#include "kernels/simt/switch.hpp"

namespace simt {

const char* name(Collective kind) {
    switch (kind) {
        case Collective::syncwarp:
            return "__syncwarp";
        case Collective::shuffle:
            return "__shfl_sync";
        case Collective::ballot:
            return "__ballot_sync";
        case Collective::vote:
            return "__all_sync or __any_sync";
        case Collective::ldmatrix:
            return "ldmatrix";
        case Collective::mma:
            return "mma";
    }
    return "a collective";
}

unsigned Block::barrier(bool predicate, const Location& location) {
    const InRuntime in_runtime;
    BlockThread& thread = self();
    thread.state = ThreadState::at_barrier;
    thread.location = location;
    ++arrived_;
    saying_yes_ += predicate ? 1 : 0;
    if (arrived_ == alive_) {
        release_barrier();
        push(thread);  // the last to arrive is scheduled again like the others
    }
    yield();
    return barrier_result_;
}

void Block::release_barrier() {
    ++report_.barriers;
    ++epoch_;
    const BlockThread* first = nullptr;
    for (const auto& t : threads_) {
        if (t->state != ThreadState::at_barrier) continue;
        if (first == nullptr) first = t.get();
        if (first->location.line != t->location.line ||
            std::strcmp(first->location.file, t->location.file) != 0) {
            report("divergent_barrier", "__syncthreads met at " + place(first->location) +
                                            " by thread " + std::to_string(first->linear) +
                                            " and at " + place(t->location) + " by thread " +
                                            std::to_string(t->linear));
            break;
        }
    }
    if (first != nullptr && alive_ < threads_.size() && options_.warn_exit_before_barrier)
        report(
            "exit_before_barrier",
            "some threads had ended when __syncthreads at " + place(first->location) + " completed",
            true);
    barrier_result_ = saying_yes_;
    arrived_ = saying_yes_ = 0;
    for (auto& t : threads_)
        if (t->state == ThreadState::at_barrier && t.get() != self_) push(*t);
}

/// The collective this lane belongs to: one that waits for it, or a fresh one.
OpenCollective& Block::joined(unsigned warp, std::uint32_t mask, Collective kind,
                              std::uint32_t me) {
    OpenCollective* unused = nullptr;
    for (OpenCollective& c : open_[warp]) {
        if (c.arrived == 0)
            unused = &c;
        else if (c.mask == mask && c.kind == kind && (c.arrived & me) == 0)
            return c;
    }
    OpenCollective& fresh = unused != nullptr ? *unused : open_[warp].emplace_back();
    fresh.mask = mask;
    fresh.kind = kind;
    return fresh;
}

/// The whole collective for the lane that completes it; null for the others, which are to wait.
OpenCollective* Block::arrive(std::uint32_t mask, Collective kind, const void* in, void* out,
                              const Location& location) {
    BlockThread& thread = self();
    ++report_.collectives;
    const std::uint32_t me = 1u << thread.lane;
    if ((mask & me) == 0) {
        report("bad_mask", "lane " + std::to_string(thread.lane) + " is not in its own mask at " +
                               place(location));
        mask |= me;
    }
    OpenCollective& meeting = joined(thread.warp, mask, kind, me);
    if (meeting.arrived == 0)
        meeting.location = location;
    else if (meeting.location.line != location.line)
        report("divergent_collective", std::string(name(kind)) + " met at " +
                                           place(meeting.location) + " and at " + place(location));
    meeting.arrived |= me;
    meeting.in[thread.lane] = in;
    meeting.out[thread.lane] = out;
    if (meeting.arrived == (mask & lanes_of(thread.warp))) return &meeting;
    thread.state = ThreadState::in_collective;
    thread.location = location;
    thread.waiting_kind = kind;
    return nullptr;
}

std::uint32_t Block::lanes_of(unsigned warp) const {
    const auto left = static_cast<unsigned>(threads_.size()) - warp * 32;
    return left >= 32 ? ~0u : (1u << left) - 1;
}

void Block::release(OpenCollective& whole) {
    BlockThread& thread = self();
    const std::uint32_t others = std::exchange(whole.arrived, 0u) & ~(1u << thread.lane);
    for (std::uint32_t left = others; left != 0; left &= left - 1)
        push(*threads_[thread.warp * 32 + static_cast<unsigned>(std::countr_zero(left))]);
    if (options_.schedule == Schedule::random && (random_() & 1u) != 0) {
        push(thread);
        yield();
    }
}

void Block::join_clocks(std::uint32_t lanes) {
    std::uint16_t joined[32]{};
    const unsigned base = self().warp * 32;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((lanes >> lane & 1u) != 0)
            for (int k = 0; k < 32; ++k)
                joined[k] = std::max(joined[k], threads_[base + lane]->clock[k]);
    for (unsigned lane = 0; lane < 32; ++lane) {
        if ((lanes >> lane & 1u) == 0) continue;
        BlockThread& thread = *threads_[base + lane];
        std::memcpy(thread.clock, joined, sizeof joined);
        ++thread.clock[lane];
    }
}

}  // namespace simt
