#include "kernels/simt/attest_call.hpp"

#include <cstdio>

#include "kernels/simt/check.hpp"
#include "kernels/simt/options.hpp"

namespace simt {
namespace {

/// Call n of a case runs under schedule n mod 4, with a seed of its own: a case replays, and calls
/// that are otherwise equal differ in the order of threads alone.
void choose_schedule(std::uint32_t call_number) {
    options().schedule = static_cast<Schedule>(call_number % 4);
    options().async_copy = static_cast<AsyncCopy>(call_number % 3);
    options().seed = call_number + 1;
    options().told = true;
}

bool is_gradient(int role) {
    return (role >= ATTEST_ROLE_D_Q && role <= ATTEST_ROLE_D_SINKS) || role == ATTEST_ROLE_D_SLOPES;
}

/// What a defect follows from comes before what may follow from it: a race, then a read of what was
/// never written.
int rank(const Diagnostic& d) {
    return d.race ? 0 : d.kind.ends_with("_undefined") ? 1 : 2;
}

}  // namespace

AttestCall::AttestCall(const attest_call& call) {
    choose_schedule(call.problem->call_number);
    clear_report();
    if (checker() == nullptr) return;
    const bool backward = call.tensor[ATTEST_ROLE_D_O] != nullptr;
    for (int role = 0; role < ATTEST_ROLE_COUNT; ++role) {
        const DLTensor* t = call.tensor[role];
        if (t == nullptr) continue;
        const bool output =
            backward ? is_gradient(role) : role == ATTEST_ROLE_O || role == ATTEST_ROLE_LSE;
        add(static_cast<char*>(t->data) + t->byte_offset,
            static_cast<std::int64_t>(attest_extent_bytes(t)), attest_role_name(role), !output);
    }
    add(call.workspace, static_cast<std::int64_t>(call.workspace_bytes), "the workspace", false);
}

AttestCall::~AttestCall() {
    for (int i = 0; i < count_; ++i) checker()->remove_buffer(known_[i]);
}

void AttestCall::add(void* p, std::int64_t bytes, const char* name, bool defined) {
    // A tensor that is almost all holes has more cells than there is memory for.
    constexpr std::int64_t watched_max = std::int64_t{1} << 28;
    if (p == nullptr || bytes <= 0 || bytes > watched_max) return;
    // Beside it lie guard pages, which no run-time check can improve on.
    checker()->add_buffer(p, static_cast<std::size_t>(bytes), name, defined, 0);
    known_[count_++] = p;
}

/// The gravest; all of them are printed.
int AttestCall::finish(int code, char* error, std::size_t error_cap) const {
    const Diagnostic* worst = nullptr;
    int found = 0;
    for (const Diagnostic& d : last_report().diagnostics) {
        if (d.warning) continue;
        ++found;
        if (worst == nullptr || rank(d) < rank(*worst)) worst = &d;
    }
    if (worst != nullptr) {
        std::snprintf(error, error_cap, found == 1 ? "%s: %s" : "%s: %s (and %d more)",
                      worst->kind.c_str(), worst->text.c_str(), found - 1);
        return code != 0 ? code : 1;
    }
    if (code != 0) std::snprintf(error, error_cap, "the launch failed with CUDA error %d", code);
    return code;
}

}  // namespace simt
