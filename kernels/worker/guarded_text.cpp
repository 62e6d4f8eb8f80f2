#include "kernels/worker/guarded_text.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "kernels/worker/crash.hpp"

namespace attest::worker {

GuardedText::GuardedText() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (size() + page - 1) / page * page;
    constexpr std::size_t guard = 1 << 20;  // who writes further wrote here before
    void* const pages =
        ::mmap(nullptr, bytes + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || ::mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0)
        throw std::bad_alloc();
    data_ = static_cast<char*>(pages) + bytes - size();
    circumstances.text_guard = reinterpret_cast<std::uint64_t>(data_ + size());
    circumstances.text_guard_bytes = guard;
}

void GuardedText::clear() noexcept {
    std::memset(data_, 0, size());
}

}  // namespace attest::worker
