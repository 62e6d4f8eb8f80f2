// Where threads of a block wait for each other: barriers and warp collectives.
#include <algorithm>
#include <cstring>

#include "kernels/simt/block.hpp"
#include "kernels/simt/check.hpp"

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

/// True for the lane that completes the collective; the others come back when it has been
/// completed.
bool Block::arrive(std::uint32_t mask, Collective kind, const void* in, void* out,
                   const Location& location, OpenCollective& whole) {
    const InRuntime in_runtime;
    BlockThread& thread = self();
    ++report_.collectives;
    const std::uint32_t me = 1u << thread.lane;
    if ((mask & me) == 0) {
        report("bad_mask", "lane " + std::to_string(thread.lane) + " is not in its own mask at " +
                               place(location));
        mask |= me;
    }
    auto& open = open_[thread.warp];
    auto found = std::find_if(open.begin(), open.end(), [&](const OpenCollective& c) {
        return c.mask == mask && c.kind == kind && (c.arrived & me) == 0;
    });
    if (found == open.end()) {
        OpenCollective fresh;
        fresh.mask = mask;
        fresh.kind = kind;
        fresh.location = location;
        found = open.insert(open.end(), fresh);
    } else if (found->location.line != location.line) {
        report("divergent_collective", std::string(name(kind)) + " met at " +
                                           place(found->location) + " and at " + place(location));
    }
    found->arrived |= me;
    found->in[thread.lane] = in;
    found->out[thread.lane] = out;
    const auto lanes_left = static_cast<unsigned>(threads_.size()) - thread.warp * 32;
    const std::uint32_t lanes = lanes_left >= 32 ? ~0u : (1u << lanes_left) - 1;
    if (found->arrived == (mask & lanes)) {
        whole = *found;
        open.erase(found);
        return true;
    }
    thread.state = ThreadState::in_collective;
    thread.location = location;
    thread.waiting_mask = mask;
    thread.waiting_kind = kind;
    yield();
    return false;
}

void Block::release(const OpenCollective& whole) {
    const InRuntime in_runtime;
    BlockThread& thread = self();
    for (unsigned lane = 0; lane < 32; ++lane) {
        if ((whole.arrived >> lane & 1u) == 0) continue;
        BlockThread& other = *threads_[thread.warp * 32 + lane];
        if (&other != &thread) push(other);
    }
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
