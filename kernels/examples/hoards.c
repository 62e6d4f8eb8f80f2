/* Kernels that hold much memory, where it is easily overlooked, by index. What they answer is
 * zeros. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trouble.h"

static char* volatile kept; /* what nobody reads is not written */

FORWARD(allocate_without_end) {
    for (;;) {
        kept = malloc(16 << 20);
        if (kept == NULL) break;
        memset(kept, 1, 16 << 20);
    }
    return DONE;
}

/* Each of the children holds some. */
FORWARD(let_children_hold_memory) {
    for (int i = 0; i < 4; ++i) {
        if (fork() != 0) continue;
        kept = malloc(128 << 20);
        if (kept != NULL) memset(kept, 1, 128 << 20);
        for (;;) pause();
    }
    usleep(500000);
    return DONE;
}

/* Children share what their parent has. */
FORWARD(share_memory_with_children) {
    static char* block;
    static int children;
    const size_t bytes = 100 << 20;
    if (block == NULL) memset(block = malloc(bytes), 1, bytes);
    for (; children < 4; ++children)
        if (fork() == 0)
            for (;;) pause();
    usleep(100000);
    return DONE;
}

FORWARD(fill_a_file_in_memory) {
    static char block[1 << 20];
    const int file = memfd_create("file", 0);
    for (int i = 0; i < 512; ++i)
        if (write(file, block, sizeof block) < 0) return 1;
    usleep(200000);
    return DONE;
}

FORWARD(fill_the_folder_of_shared_memory) {
    static char block[1 << 20];
    const int file = open("/dev/shm/attest_schemes", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 512; ++i)
        if (write(file, block, sizeof block) < 0) return 1;
    close(file);
    usleep(200000);
    unlink("/dev/shm/attest_schemes");
    return DONE;
}

static const kernel kernels[] = {
    KERNEL(allocate_without_end),
    KERNEL(let_children_hold_memory),
    KERNEL(share_memory_with_children),
    KERNEL(fill_a_file_in_memory),
    KERNEL(fill_the_folder_of_shared_memory),
};

TROUBLE(kernels)
