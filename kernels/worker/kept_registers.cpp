#include "kernels/worker/kept_registers.hpp"

#include <cstdint>

namespace attest::worker {

#if defined(__x86_64__)

// Which registers: System V's rules for calls on x86-64. Where they lie meanwhile is no stack.
extern "C" {
std::uint64_t attest_kept_registers[6] = {};
std::uint64_t attest_lost_registers = 0;
int attest_call_and_keep(void* state, const attest_call* call, char* error, std::size_t capacity,
                         KernelFunction operation);
}

__asm__(R"(
    .pushsection .text
    .type attest_call_and_keep, @function
attest_call_and_keep:
    .cfi_startproc
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rbx, attest_kept_registers(%rip)
    movq %rbp, attest_kept_registers+8(%rip)
    movq %r12, attest_kept_registers+16(%rip)
    movq %r13, attest_kept_registers+24(%rip)
    movq %r14, attest_kept_registers+32(%rip)
    movq %r15, attest_kept_registers+40(%rip)
    call *%r8
    xorq attest_kept_registers(%rip), %rbx
    xorq attest_kept_registers+8(%rip), %rbp
    xorq attest_kept_registers+16(%rip), %r12
    xorq attest_kept_registers+24(%rip), %r13
    xorq attest_kept_registers+32(%rip), %r14
    xorq attest_kept_registers+40(%rip), %r15
    orq %rbp, %rbx
    orq %r12, %rbx
    orq %r13, %rbx
    orq %r14, %rbx
    orq %r15, %rbx
    movq %rbx, attest_lost_registers(%rip)
    movq attest_kept_registers(%rip), %rbx
    movq attest_kept_registers+8(%rip), %rbp
    movq attest_kept_registers+16(%rip), %r12
    movq attest_kept_registers+24(%rip), %r13
    movq attest_kept_registers+32(%rip), %r14
    movq attest_kept_registers+40(%rip), %r15
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size attest_call_and_keep, .-attest_call_and_keep
    .popsection
)");

int call_and_keep(KernelFunction operation, void* state, const attest_call* call, char* error,
                  std::size_t capacity) {
    attest_lost_registers = 0;
    return attest_call_and_keep(state, call, error, capacity, operation);
}

bool registers_were_lost() noexcept {
    return attest_lost_registers != 0;
}

#else

int call_and_keep(KernelFunction operation, void* state, const attest_call* call, char* error,
                  std::size_t capacity) {
    return operation(state, call, error, capacity);
}

bool registers_were_lost() noexcept {
    return false;
}

#endif

}  // namespace attest::worker
