#pragma once
// The museum room by room, and the mutants' forward functions beside them.

#include <cstddef>
#include <vector>

#include "kernels/interface/attest_kernel.h"
#include "kernels/mutants/museum.hpp"

namespace attest {

std::vector<Mutant> masking_mutants();
std::vector<Mutant> softmax_mutants();
std::vector<Mutant> addressing_mutants();
std::vector<Mutant> decode_mutants();
std::vector<Mutant> gpu_mutants();

namespace kernel {

struct MutantEntry {
    const char* id;  ///< "mutant:M001"
    int (*forward)(void*, const attest_call*, char*, std::size_t);
    std::size_t (*workspace)(void*, const attest_problem*);
};

std::vector<MutantEntry> masking_entries();
std::vector<MutantEntry> softmax_entries();
std::vector<MutantEntry> addressing_entries();
std::vector<MutantEntry> decode_entries();

/// The planted cheat that answers by shape (C04).
int answer_by_shape(void* state, const attest_call* call, char* error, std::size_t error_cap);

}  // namespace kernel
}  // namespace attest
