#pragma once
// What the runtime tells the memory checker. Only the checked build links an implementation
// (shadow.cpp): there every load and store of the kernel's own code arrives through the compiler's
// -fsanitize=thread hooks.

#include <cstddef>
#include <cstdint>

#include "kernels/simt/types.hpp"

namespace simt {

class Checker {
public:
    virtual ~Checker() = default;
    virtual void access(const void* p, std::size_t n, bool write, bool atomic, const void* pc) = 0;
    virtual void arena_reset(unsigned char* low,
                             unsigned char* high) = 0;  ///< a new block: nothing is defined
    virtual void arena_array(const void* p, std::size_t n, const char* name) = 0;
    virtual void async_issue(const void* p, std::size_t n, const void* pc) = 0;
    virtual void async_done(const void* p, std::size_t n, const void* pc) = 0;
    /// Accesses up to `margin` bytes beside a buffer are called out of bounds of it; beyond, they
    /// are nobody's.
    virtual void add_buffer(const void* p, std::size_t n, const char* name, bool defined,
                            std::size_t margin) = 0;
    virtual void remove_buffer(const void* p) = 0;
    virtual void new_launch() = 0;
    virtual void end_block() = 0;  ///< all its threads have stopped, and it can still report
};

/// Null in the fast build.
Checker* checker();
void install_checker(Checker* checker);
Checker* shadow_memory();  ///< the checker of the checked build

/// Above zero while the runtime itself runs: its accesses are not the kernel's.
extern SIMT_THREAD_LOCAL int runtime_depth;

/// The stack of the thread that is running, which no other thread reads: nobody's business.
inline constexpr std::size_t stack_bytes = 80 * 1024;
extern SIMT_THREAD_LOCAL std::uintptr_t stack_low;

struct InRuntime {
    InRuntime() : before(runtime_depth) { runtime_depth = 1; }
    ~InRuntime() { runtime_depth = before; }
    int before;
    InRuntime(const InRuntime&) = delete;
    InRuntime& operator=(const InRuntime&) = delete;
};

}  // namespace simt
