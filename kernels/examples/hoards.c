/* Kernels that hold memory where it is easily overlooked, or leave it behind, by index. What they
 * answer is zeros, or a bit for each thing they could. */
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
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

/* What nobody takes away, and others have. */
FORWARD(leave_things_behind) {
    const int memory = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    const int numbers = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    const int letters = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    const char* file = getenv("HOSTILE_FILE");
    const char* name = file == NULL ? NULL : strrchr(file, '/');
    const mqd_t queue = name == NULL ? -1 : mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
    struct shmid_ds status;
    int seen = 0; /* by number, as anybody finds one */
    for (int number = 0; number < 64; ++number) seen |= shmctl(number, SHM_STAT, &status) >= 0;
    if (memory >= 0) shmctl(memory, IPC_RMID, NULL);
    if (numbers >= 0) semctl(numbers, 0, IPC_RMID);
    if (letters >= 0) msgctl(letters, IPC_RMID, NULL);
    if (queue >= 0) mq_unlink(name);
    DONE;
    return fill(c, (float)((memory >= 0) | (numbers >= 0) << 1 | (letters >= 0) << 2 |
                           (queue >= 0) << 3 | seen << 4));
}

static void* take_shared_memory(const char* name, int flags) {
    const int file = shm_open(name, flags, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) return MAP_FAILED;
    void* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    shm_unlink(name);
    return memory;
}

/* As the libraries of frameworks do that share tensors among processes. */
FORWARD(use_what_libraries_use) {
    char name[64];
    snprintf(name, sizeof name, "/attest_escapes_%d", (int)getpid());
    void* memory = take_shared_memory(name, O_CREAT | O_RDWR);
    sem_t* number = sem_open(name, O_CREAT, 0600, 1);
    if (number != SEM_FAILED) sem_unlink(name);
    DONE;
    return fill(c, (float)((memory != MAP_FAILED) | (number != SEM_FAILED) << 1));
}

static const kernel kernels[] = {
    KERNEL(allocate_without_end),
    KERNEL(let_children_hold_memory),
    KERNEL(share_memory_with_children),
    KERNEL(fill_a_file_in_memory),
    KERNEL(fill_the_folder_of_shared_memory),
    KERNEL(leave_things_behind),
    KERNEL(use_what_libraries_use),
};

TROUBLE(kernels)
