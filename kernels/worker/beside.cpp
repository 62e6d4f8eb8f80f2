#include "kernels/worker/beside.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace attest::worker {
namespace {

/// As every allocator aligns, and the arena.
constexpr std::size_t alignment = 64;

std::size_t rounded_up(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

bool is_zeroed(int role) {
    return role == ATTEST_ROLE_Q || role == ATTEST_ROLE_K || role == ATTEST_ROLE_V;
}

}  // namespace

void Beside::Free::operator()(void* memory) const noexcept {
    std::free(memory);
}

Beside::Beside(const attest_call& call, MakeCall make_call)
    : call_(call), make_call_(std::move(make_call)) {
    copy(call);
    thread_ = std::thread([this] { make_calls(); });
    while (!begun_) std::this_thread::yield();
}

void Beside::copy(const attest_call& call) {
    std::size_t total = rounded_up(call.workspace_bytes) + alignment;
    for (const DLTensor* t : call.tensor)
        if (t != nullptr) total += rounded_up(attest_extent_bytes(t));
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, total)));
    if (memory_ == nullptr) throw std::bad_alloc();
    std::byte* at = memory_.get();
    std::memset(at, 0, total);
    for (int role = 0; role < ATTEST_ROLE_COUNT; ++role) {
        const DLTensor* t = call.tensor[role];
        if (t == nullptr) continue;
        tensors_[role] = *t;
        tensors_[role].data = at;
        call_.tensor[role] = &tensors_[role];
        if (!is_zeroed(role)) std::memcpy(at, t->data, attest_extent_bytes(t));
        at += rounded_up(attest_extent_bytes(t));
    }
    call_.workspace = at;
}

void Beside::make_calls() {
    begun_ = true;
    while (!over_ && said_.empty()) said_ = make_call_(call_);
}

std::string Beside::end() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return said_;
}

}  // namespace attest::worker
