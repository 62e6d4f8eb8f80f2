// The functions that code compiled with -fsanitize=alignment calls where a pointer is off its
// type's alignment, as a float4 read from any float. A GPU ends the launch there, and so do they.
// Names and layouts are the compiler's; the real libubsan is not linked.
#include <cstddef>
#include <cstdint>

#include "kernels/simt/block.hpp"
#include "kernels/simt/check.hpp"

namespace {

struct SourcePlace {
    const char* file;
    std::uint32_t line, column;
};

struct TypeMismatch {
    SourcePlace place;
    const void* type;
    unsigned char log_alignment, use;
};

void tell(const SourcePlace& place, std::uintptr_t alignment) {
    simt::Block* block = simt::current_block();
    if (simt::runtime_depth != 0 || block == nullptr || !block->in_flight()) return;
    const simt::InRuntime in_runtime;
    block->report("misaligned", "an address that is not a multiple of " +
                                    std::to_string(alignment) + " is used as one at " +
                                    simt::place({place.file, place.line}));
    block->fault();
}

}  // namespace

extern "C" void __ubsan_handle_type_mismatch_v1(TypeMismatch* at, std::uintptr_t) {
    tell(at->place, std::uintptr_t{1} << at->log_alignment);
}
extern "C" void __ubsan_handle_alignment_assumption(SourcePlace* at, std::uintptr_t,
                                                    std::uintptr_t alignment, std::uintptr_t) {
    tell(*at, alignment);
}
