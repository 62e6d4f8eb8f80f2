#pragma once
// One block in flight: its threads as fibers on one OS thread, its shared memory, its barriers and
// collectives.
//
// A thread runs until it meets a barrier or a collective, or ends; then the schedule picks the
// next, and the one goes over into the other. Nothing else switches, so between two switches a
// thread is alone, and every interleaving a schedule can produce is one a GPU may take.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simt/options.hpp"
#include "kernels/simt/thread.hpp"

namespace simt {

inline constexpr std::size_t static_shared_max =
    48 * 1024;  ///< CUDA C++ programming guide, compute capability 9.0
inline constexpr std::size_t dynamic_shared_max = 227 * 1024;

struct LaunchShape {
    dim3 grid, block;
    std::size_t dynamic_bytes = 0;
};

class Block {
public:
    Block();
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    void prepare(const LaunchShape& shape, const Options& options, std::function<void()> body,
                 std::uint32_t launch);
    /// False where threads never finish; the report says which and where they wait.
    bool run(uint3 index, std::uint32_t linear);

    /// What barrier predicates reduce to: how many of the threads that arrived said yes.
    unsigned barrier(bool predicate, const Location& location);

    /// All lanes of mask meet; the last to arrive runs complete with everyone's operands.
    template <typename Complete>
    void collect(std::uint32_t mask, Collective kind, const void* in, void* out,
                 const Location& location, Complete complete);

    /// The running thread does what ends a launch on a GPU. Reported before; does not return.
    void fault();

    void join_clocks(std::uint32_t lanes);
    void* shared_array(const void* key, std::size_t bytes, const char* name);
    void* dynamic_array(int ordinal, std::size_t bytes, std::size_t used, const char* name,
                        const Location& location);

    void report(const std::string& kind, const std::string& text, bool warning = false,
                bool race = false);
    BlockThread& self() { return *self_; }
    bool in_flight() const { return self_ != nullptr; }
    std::uint32_t launch() const { return launch_; }
    std::uint32_t linear() const { return linear_; }
    std::uint32_t epoch() const { return epoch_; }  ///< counts barriers
    std::size_t dynamic_bytes() const { return shape_.dynamic_bytes; }
    const Options& options() const { return options_; }
    Random& random() { return random_; }
    Report& totals() { return report_; }

private:
    void make_threads(unsigned count);
    void start(BlockThread& thread);
    void abandon(BlockThread& thread);
    void stop_all();
    void thread_main(BlockThread& thread);
    void finish(BlockThread& thread);
    void push(BlockThread& thread);
    BlockThread* pop();
    void yield();
    void switch_to(BlockThread* next);
    void resumed(boost::context::fiber&& from);
    void release_barrier();
    OpenCollective* arrive(std::uint32_t mask, Collective kind, const void* in, void* out,
                           const Location& location);
    OpenCollective& joined(unsigned warp, std::uint32_t mask, Collective kind, std::uint32_t me);
    std::uint32_t lanes_of(unsigned warp) const;
    void release(OpenCollective& whole);
    void* allocate(std::size_t bytes, const char* name);
    void reset_memory();
    void check_red_zones();
    void report_deadlock(uint3 index);

    Options options_;
    LaunchShape shape_;
    std::function<void()> body_;
    Report report_;
    std::uint32_t launch_ = 0, linear_ = 0, epoch_ = 0;
    std::uint64_t switches_at_start_ = 0;
    bool quitting_ = false, faulted_ = false;

    std::vector<std::unique_ptr<BlockThread>> threads_;
    std::vector<BlockThread*> ready_;
    std::size_t ready_head_ = 0;
    BlockThread* self_ = nullptr;
    BlockThread* left_ = nullptr;   ///< who switched last; null for the OS thread itself
    boost::context::fiber caller_;  ///< the OS thread, while threads run
    unsigned alive_ = 0, arrived_ = 0, saying_yes_ = 0, barrier_result_ = 0;
    std::vector<std::vector<OpenCollective>> open_;  ///< by warp
    Random random_;

    std::vector<unsigned char> arena_store_;
    unsigned char* arena_ = nullptr;
    std::size_t arena_top_ = 0, static_bytes_ = 0;
    std::map<const void*, void*> statics_;
    std::vector<void*> dynamics_;
    std::vector<unsigned char*> red_zones_;
};

/// The block this OS thread is running; null outside a launch.
extern SIMT_THREAD_LOCAL Block* running_block;
inline Block* current_block() {
    return running_block;
}
std::string place(const Location& location);  ///< "file.cu:12"

}  // namespace simt
