// The misbehaviours of misbehaving.c that C cannot commit.
#include <new>
#include <stdexcept>

#include "kernels/interface/attest_kernel.h"

extern "C" int throw_runtime_error(void*, const attest_call*, char*, std::size_t) {
    throw std::runtime_error("no such tile");
}

extern "C" int throw_bad_alloc(void*, const attest_call*, char*, std::size_t) {
    throw std::bad_alloc();
}
