/* What a tool preloads into the worker, for its tests: compute-sanitizer too opens files of its own
 * before main(), and is lost without them. */
#include <fcntl.h>

__attribute__((constructor)) static void open_my_own(void) {
    open("/dev/zero", O_RDONLY | O_CLOEXEC);
}
