// M430: what a call works on lies in one place for all callers. The correct kernel computes in it.

#include <algorithm>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

constexpr std::size_t place_bytes = std::size_t{4} << 20;

int in_one_place(void* state, const attest_call* from, char* error, std::size_t cap) {
    static std::vector<std::byte> place(place_bytes);
    attest_call call = *from;
    if (call.workspace_bytes <= place.size()) call.workspace = place.data();
    return correct_kernel("cpu_flash_plain").forward(state, &call, error, cap);
}

}  // namespace

std::vector<PlantedBug> one_place() {
    return {{{.id = "M430",
              .bug_class = "C5",
              .operation = "flash forward",
              .change = "the workspace is one static buffer for all callers",
              .trigger = "two threads",
              .source = "https://github.com/flashinfer-ai/flashinfer/pull/4481",
              .must = {"hygiene.concurrent"},
              .diagnosis = "disturbed"},
             WholeForward{in_one_place}}};
}

}  // namespace attest::museum
