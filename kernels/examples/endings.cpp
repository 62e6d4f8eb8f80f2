// Kernels that end in ways whose reason stands elsewhere: in what they print, in the debug
// information, in what they still do. By index, as hostile.c has its own.
#undef NDEBUG  // an assertion is one of them
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "trouble.h"

namespace tiles {
template <typename T>
__attribute__((noinline)) T load(const volatile T* from) {
    return *from;  // the line that faults
}
}  // namespace tiles

static int leave_the_thread(void*, const attest_call*, char*, size_t) {
    pthread_exit(nullptr);
}

/* Its words are those of glibc where a thread leaves, and its end is another. */
static int speak_of_a_thread(void*, const attest_call*, char*, size_t) {
    fprintf(stderr, "FATAL: exception not rethrown\n");
    exit(3);
}

static int throw_in_a_thread(void*, const attest_call* c, char*, size_t) {
    std::thread([] { throw std::runtime_error("no such tile"); }).join();
    return fill(c, 0);
}

static int fail_an_assertion(void*, const attest_call* c, char*, size_t) {
    printf("tile 7\n");
    assert(c == nullptr && "the tile fits");
    return 0;
}

static int exit_with_a_reason(void*, const attest_call*, char*, size_t) {
    fprintf(stderr, "CUDA error: no kernel image\n");
    exit(3);
}

static int jump_to_nothing(void*, const attest_call* c, char*, size_t) {
    void (*volatile nothing)() = nullptr;
    nothing();
    return fill(c, 0);
}

static int read_in_a_template(void*, const attest_call* c, char*, size_t) {
    return fill(c, tiles::load(reinterpret_cast<const volatile float*>(16)));
}

static int print_escapes(void*, const attest_call* c, char*, size_t) {
    printf("\x1b[31mred\n\nsecond \x07line\n");
    return fill(c, 0);
}

static int print_much(void*, const attest_call* c, char*, size_t) {
    const std::vector<char> line(1 << 20, 'x');
    for (int i = 0; i < 20; ++i) fwrite(line.data(), 1, line.size(), stdout);
    printf("\nthe last line\n");
    return fill(c, 0);
}

/* Says so where two threads call it at once. */
static int one_at_a_time(void*, const attest_call* c, char* error, size_t cap) {
    static std::atomic<int> inside;
    const bool alone = inside++ == 0;
    usleep(2'000);
    const int done = alone ? fill(c, 0) : 1;
    if (!alone) snprintf(error, cap, "busy");
    --inside;
    return done;
}

static int go_round(void*, const attest_call*, char*, size_t) {
    for (volatile int i = 0;;) i = i + 1;
}

static int wait_for_ever(void*, const attest_call*, char*, size_t) {
    for (;;) pause();
}

/* As what starts up does: it touches memory it has not touched before. */
static int start_slowly(void*, const attest_call* c, char*, size_t) {
    std::vector<std::vector<char>> rooms;
    for (int i = 0; i < 12; ++i) {
        usleep(100'000);
        rooms.emplace_back(1 << 20, 1);
    }
    return fill(c, rooms.back().back() == 1 ? 0 : 1);
}

static int close_all(void*, const attest_call* c, char*, size_t) {
    for (int file = 0; file < 64; ++file) close(file);
    return fill(c, 0);
}

static int close_the_memory(void*, const attest_call* c, char*, size_t) {
    close(4);
    return fill(c, 0);
}

static int lead_the_memory_elsewhere(void*, const attest_call* c, char*, size_t) {
    dup2(1, 4);
    return fill(c, 0);
}

static int hang_up(void*, const attest_call* c, char*, size_t) {
    shutdown(3, SHUT_RDWR);
    return fill(c, 0);
}

static int hear_nobody(void*, const attest_call* c, char*, size_t) {
    shutdown(3, SHUT_RD);
    return fill(c, 0);
}

static int speak_to_nobody(void*, const attest_call* c, char*, size_t) {
    shutdown(3, SHUT_WR);
    return fill(c, 0);
}

/* It harms nobody: an answer is waited for by other means. */
static int wait_for_nothing(void*, const attest_call* c, char*, size_t) {
    const timeval at_once{0, 1};
    setsockopt(3, SOL_SOCKET, SO_RCVTIMEO, &at_once, sizeof at_once);
    fcntl(3, F_SETFL, O_NONBLOCK);
    return fill(c, 0);
}

static int write_past_the_text(void*, const attest_call*, char* error, size_t cap) {
    memset(error, 'x', cap + 100'000);
    return 1;
}

static int turn_the_direction(void*, const attest_call* c, char*, size_t) {
    const int done = fill(c, 0);
#if defined(__x86_64__)
    __asm__ volatile("std");
#endif
    return done;
}

/* As one that wrote past an array on its stack, over what it took back from there. */
static int lose_registers(void*, const attest_call* c, char*, size_t) {
    const int done = fill(c, 0);
#if defined(__x86_64__)
    __asm__ volatile("movq $64, %r12\n\tmovq $64, %r13\n\tmovq $64, %r14\n\tmovq $64, %r15");
#endif
    return done;
}

static const kernel kernels[] = {
    {"close_all", close_all, nullptr, nullptr, yes},
    {"close_the_memory", close_the_memory, nullptr, nullptr, yes},
    {"lead_the_memory_elsewhere", lead_the_memory_elsewhere, nullptr, nullptr, yes},
    {"hang_up", hang_up, nullptr, nullptr, yes},
    {"hear_nobody", hear_nobody, nullptr, nullptr, yes},
    {"speak_to_nobody", speak_to_nobody, nullptr, nullptr, yes},
    {"wait_for_nothing", wait_for_nothing, nullptr, nullptr, yes},
    {"write_past_the_text", write_past_the_text, nullptr, nullptr, yes},
    {"turn_the_direction", turn_the_direction, nullptr, nullptr, yes},
    {"lose_registers", lose_registers, nullptr, nullptr, yes},
    {"leave_the_thread", leave_the_thread, nullptr, nullptr, yes},
    {"speak_of_a_thread", speak_of_a_thread, nullptr, nullptr, yes},
    {"throw_in_a_thread", throw_in_a_thread, nullptr, nullptr, yes},
    {"fail_an_assertion", fail_an_assertion, nullptr, nullptr, yes},
    {"exit_with_a_reason", exit_with_a_reason, nullptr, nullptr, yes},
    {"jump_to_nothing", jump_to_nothing, nullptr, nullptr, yes},
    {"read_in_a_template", read_in_a_template, nullptr, nullptr, yes},
    {"print_escapes", print_escapes, nullptr, nullptr, yes},
    {"print_much", print_much, nullptr, nullptr, yes},
    {"one_at_a_time", one_at_a_time, nullptr, nullptr, yes},
    {"go_round", go_round, nullptr, nullptr, yes},
    {"wait_for_ever", wait_for_ever, nullptr, nullptr, yes},
    {"start_slowly", start_slowly, nullptr, nullptr, yes},
};

TROUBLE(kernels)
