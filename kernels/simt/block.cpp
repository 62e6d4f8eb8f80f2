#include "kernels/simt/block.hpp"

#include <algorithm>
#include <boost/context/preallocated.hpp>
#include <cstring>
#include <memory>

#include "kernels/simt/check.hpp"
#include "kernels/simt/switch.hpp"

SIMT_THREAD_LOCAL uint3 threadIdx{}, blockIdx{};
SIMT_THREAD_LOCAL dim3 blockDim{}, gridDim{};

namespace simt {

SIMT_THREAD_LOCAL int runtime_depth = 0;
SIMT_THREAD_LOCAL std::uintptr_t stack_low = 0;
SIMT_THREAD_LOCAL Block* running_block = nullptr;

namespace {

Checker* installed_checker = nullptr;

/// Stacks belong to BlockThread, which uses them again.
struct KeepStack {
    void deallocate(boost::context::stack_context&) noexcept {}
};

}  // namespace

Checker* checker() {
    return installed_checker;
}
void install_checker(Checker* checker) {
    installed_checker = checker;
}

std::string place(const Location& location) {
    const char* slash = std::strrchr(location.file, '/');
    return std::string(slash != nullptr ? slash + 1 : location.file) + ":" +
           std::to_string(location.line);
}

Block::Block() = default;

Block::~Block() {
    stop_all();
}

void Block::stop_all() {
    quitting_ = true;
    left_ = nullptr;
    for (auto& thread : threads_)
        if (thread->fiber) static_cast<void>(std::move(thread->fiber).resume());
    quitting_ = false;
    threads_.clear();
}

void Block::report(const std::string& kind, const std::string& text, bool warning, bool race) {
    constexpr std::size_t kept = 64;
    const Diagnostic diagnostic{kind, text, warning, race};
    auto& list = report_.diagnostics;
    if (list.size() < kept && std::find(list.begin(), list.end(), diagnostic) == list.end())
        list.push_back(diagnostic);
}

/// Stacks at one distance of a power of two would all lie in the same sets of the cache.
void Block::start(BlockThread& thread) {
    constexpr unsigned colours = 64, colour_bytes = 320;
    unsigned char* top = thread.stack.get() + stack_bytes - thread.linear % colours * colour_bytes;
    boost::context::stack_context stack;
    stack.sp = top - (reinterpret_cast<std::uintptr_t>(top) & 63u);
    stack.size = stack_bytes - 64 - colours * colour_bytes;
    BlockThread* t = &thread;
    thread.fiber = boost::context::fiber(std::allocator_arg,
                                         boost::context::preallocated(stack.sp, stack.size, stack),
                                         KeepStack{}, [this, t](boost::context::fiber&& from) {
                                             resumed(std::move(from));
                                             thread_main(*t);
                                             return std::move(caller_);
                                         });
}

/// A thread that never finishes cannot be unwound, since its frames hold live kernel state: they
/// are forgotten, and their stack is given back.
void Block::abandon(BlockThread& thread) {
    std::construct_at(&thread.fiber);
    thread.stack.reset(new unsigned char[stack_bytes]);
    start(thread);
}

/// A fiber outlives its block and runs the next one: making a stack costs more than a small kernel.
void Block::thread_main(BlockThread& thread) {
    while (!quitting_) {
        runtime_depth = 0;
        body_();
        runtime_depth = 1;
        finish(thread);
        yield();
    }
}

void Block::make_threads(unsigned count) {
    if (threads_.size() != count) {
        stop_all();
        for (unsigned i = 0; i < count; ++i) {
            auto thread = std::make_unique<BlockThread>();
            thread->linear = i;
            thread->lane = i % 32;
            thread->warp = i / 32;
            thread->stack.reset(new unsigned char[stack_bytes]);
            start(*thread);
            threads_.push_back(std::move(thread));
        }
    }
    const dim3& b = shape_.block;
    for (auto& t : threads_)
        t->index = {t->linear % b.x, t->linear / b.x % b.y, t->linear / b.x / b.y};
}

void Block::prepare(const LaunchShape& shape, const Options& options, std::function<void()> body,
                    std::uint32_t launch) {
    shape_ = shape;
    options_ = options;
    body_ = std::move(body);
    launch_ = launch;
    make_threads(shape.block.x * shape.block.y * shape.block.z);
}

bool Block::run(uint3 index, std::uint32_t linear) {
    linear_ = linear;
    random_.state = options_.seed * 0x9E3779B97F4A7C15ull + linear;
    alive_ = static_cast<unsigned>(threads_.size());
    arrived_ = saying_yes_ = 0;
    faulted_ = false;
    ++epoch_;
    ready_.clear();
    ready_head_ = 0;
    open_.resize((threads_.size() + 31) / 32);
    for (auto& warp : open_) warp.clear();
    reset_memory();
    ++report_.blocks;
    switches_at_start_ = report_.switches;
    for (auto& t : threads_) {
        t->open_copies.clear();
        t->committed_copies.clear();
        std::memset(t->clock, 0, sizeof t->clock);
        t->clock[t->lane] = 1;
        push(*t);
    }
    running_block = this;
    self_ = nullptr;
    runtime_depth = 1;
    ::blockIdx = index;
    ::blockDim = shape_.block;
    ::gridDim = shape_.grid;
    switch_to(pop());
    self_ = nullptr;
    if (checker() != nullptr) checker()->end_block();
    runtime_depth = 0;
    running_block = nullptr;
    check_red_zones();
    if (alive_ == 0) return true;
    if (!faulted_) report_deadlock(index);
    for (auto& t : threads_)
        if (t->state != ThreadState::done) abandon(*t);
    return false;
}

void Block::push(BlockThread& thread) {
    thread.state = ThreadState::ready;
    ready_.push_back(&thread);
}

BlockThread* Block::pop() {
    if (ready_head_ == ready_.size()) return nullptr;
    std::size_t pick = ready_head_;
    switch (options_.schedule) {
        case Schedule::round_robin:
            break;
        case Schedule::reverse:
            pick = ready_.size() - 1;
            break;
        case Schedule::random:
            pick += random_.below(ready_.size() - ready_head_);
            break;
        case Schedule::warp_greedy:
            for (std::size_t i = ready_head_; self_ != nullptr && i < ready_.size(); ++i)
                if (ready_[i]->warp == self_->warp) {
                    pick = i;
                    break;
                }
            break;
    }
    std::swap(ready_[ready_head_], ready_[pick]);
    BlockThread* thread = ready_[ready_head_++];
    constexpr std::size_t compact_at = 4096;
    if (ready_head_ > compact_at && ready_head_ * 2 > ready_.size()) {
        ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(ready_head_));
        ready_head_ = 0;
    }
    return thread;
}

void Block::finish(BlockThread& thread) {
    bool unwaited = !thread.open_copies.empty();
    for (const auto& group : thread.committed_copies)
        for (const PendingCopy& copy : group) unwaited = unwaited || !copy.landed;
    if (unwaited) report("async_unwaited", "a thread ends with cp.async copies never waited for");
    thread.state = ThreadState::done;
    --alive_;
    if (alive_ != 0 && arrived_ == alive_) release_barrier();
}

void Block::fault() {
    faulted_ = true;
    switch_to(nullptr);
}

void Block::report_deadlock(uint3 index) {
    std::map<std::string, int> waiting;
    for (const auto& t : threads_) {
        if (t->state == ThreadState::done) continue;
        std::string where = "still running";
        if (t->state == ThreadState::at_barrier) where = "__syncthreads at " + place(t->location);
        if (t->state == ThreadState::in_collective)
            where = std::string(name(t->waiting_kind)) + " at " + place(t->location);
        ++waiting[where];
    }
    std::string text = "block (" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
                       std::to_string(index.z) + "): " + std::to_string(alive_) + " of " +
                       std::to_string(threads_.size()) + " threads never finish:";
    for (const auto& [where, count] : waiting)
        text.append(" ").append(std::to_string(count)).append(" in ").append(where).append(";");
    text.pop_back();
    report("deadlock", text);
}

}  // namespace simt
