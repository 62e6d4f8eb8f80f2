/* Kernels that speak in the name of the worker whose process they are in, by index, or make it
 * speak to nobody. What they answer is zeros. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trouble.h"

/* Frames as ../worker/PROTOCOL.md lays them out, in the worker's name. */
static void forge(uint16_t kind, uint32_t number, const void* body, uint32_t bytes) {
    struct {
        uint32_t magic;
        uint16_t version, kind;
        uint32_t size, number;
        char body[96];
    } frame = {0x54544157, 2, kind, 16 + bytes, number, {0}};
    memcpy(frame.body, body, bytes);
    send(3, &frame, frame.size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* "Done, and all is written", to whatever is asked next. */
FORWARD(forge_answers) {
    const uint64_t body[4] = {0, 0, 1 << ATTEST_ROLE_O | 1 << ATTEST_ROLE_LSE, 0};
    for (uint32_t number = 0; number < 2000; ++number) forge(7, number, body, sizeof body);
    return DONE;
}

FORWARD(forge_an_end) {
    const int32_t killed[2] = {SIGKILL, 0};
    forge(11, 0, killed, sizeof killed);
    return DONE;
}

FORWARD(speak_nonsense) {
    static char nonsense[60000];
    memset(nonsense, 0x55, sizeof nonsense);
    for (size_t i = 0; i < 500; ++i)
        send(3, nonsense, i * 31 % sizeof nonsense, MSG_NOSIGNAL | MSG_DONTWAIT);
    return DONE;
}

static void forge_a_death(int signal) {
    const uint32_t words[20] = {(uint32_t)signal, 1, 2, 5};
    forge(8, 0, words, sizeof words);
}

/* "About to die", and it lives on. */
FORWARD(forge_a_fault) {
    forge_a_death(SIGSEGV);
    return DONE;
}

FORWARD(forge_a_fault_and_exit) {
    (void)s, (void)c, (void)error, (void)cap;
    forge_a_death(SIGSEGV);
    _exit(3);
}

FORWARD(forge_a_load_error) {
    const uint32_t text[4] = {8, 0, 0x61616161, 0x61616161};
    forge(3, 0, text, sizeof text);
    return DONE;
}

/* "There is no such operation", whatever is asked: nobody would look at what it answers. */
FORWARD(forge_a_refusal) {
    const uint32_t absent[8] = {5};
    for (uint32_t number = 0; number < 2000; ++number) forge(7, number, absent, sizeof absent);
    return DONE;
}

/* The same once, in time for the first call of a process, whose number is 3. */
FORWARD(forge_one_refusal) {
    const uint32_t absent[8] = {5};
    forge(7, 3, absent, sizeof absent);
    return DONE;
}

/* "Done, and nothing was returned", to the first call. */
FORWARD(forge_one_answer) {
    const uint32_t nothing[8] = {0};
    forge(7, 3, nothing, sizeof nothing);
    usleep(20000);
    return DONE;
}

/* "Done", and nothing was returned. */
FORWARD(forge_an_empty_answer) {
    const uint32_t nothing[8] = {0};
    for (uint32_t number = 0; number < 2000; ++number) forge(7, number, nothing, sizeof nothing);
    return DONE;
}

FORWARD(forge_barriers) {
    const uint32_t none[2] = {0, 0};
    forge(10, 0, none, sizeof none);
    return DONE;
}

/* A descriptor beside those it has, and the process that looks after it. */
FORWARD(forge_by_other_descriptors) {
    const int32_t killed[2] = {SIGKILL, 0};
    int reached = 0;
    for (int file = 5; file < 64; ++file) reached |= write(file, killed, sizeof killed) > 0;
    for (int file = 3; file < 16; ++file) {
        char path[64];
        snprintf(path, sizeof path, "/proc/1/fd/%d", file);
        const int other = open(path, O_WRONLY);
        reached |= (other >= 0 && write(other, killed, sizeof killed) > 0) << 1;
    }
    reached |= (open("/proc/1/mem", O_RDWR) >= 0) << 2;
    DONE;
    return fill(c, (float)reached);
}

FORWARD(hang_up_and_go_on) {
    shutdown(3, SHUT_RDWR);
    for (volatile int on = 1; on;) usleep(1000);
    return DONE;
}

FORWARD(lead_the_socket_elsewhere) {
    dup2(1, 3);
    return DONE;
}

static const kernel kernels[] = {
    KERNEL(forge_answers),          KERNEL(forge_an_end),
    KERNEL(speak_nonsense),         KERNEL(forge_a_fault),
    KERNEL(forge_a_fault_and_exit), KERNEL(forge_a_load_error),
    KERNEL(forge_a_refusal),        KERNEL(forge_one_refusal),
    KERNEL(forge_one_answer),       KERNEL(forge_an_empty_answer),
    KERNEL(forge_barriers),         KERNEL(forge_by_other_descriptors),
    KERNEL(hang_up_and_go_on),      KERNEL(lead_the_socket_elsewhere),
};

TROUBLE(kernels)
