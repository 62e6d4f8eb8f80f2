#pragma once
// Does an instruction do what its definition says? The same questions go to a GPU and to the CPU
// that emulates it, on data for which the answer is exact: what agrees with the definition in both
// worlds agrees to the bit. Every instruction of kernels/simt is asked. A question is one block of
// one warp; conformance_warp.cu, conformance_tensor.cu and conformance_number.cu ask.

#include <cstdint>
#include <string>
#include <vector>

namespace attest::cuda {

using Words = std::vector<std::uint32_t>;
inline constexpr int lanes = 32;

struct WarpQuestion {
    const char* name;
    void (*kernel)(const std::uint32_t*, std::uint32_t*);
    Words in, expected;
};

std::vector<WarpQuestion> questions_of_warps();
std::vector<WarpQuestion> questions_of_tensor_cores();
std::vector<WarpQuestion> questions_of_numbers();
std::vector<WarpQuestion> all_questions();

/// Words that look random, the same everywhere.
Words scrambled(std::size_t count);

/// What this world answers, or CUDA's words where it cannot.
struct WarpAnswer {
    Words words;
    std::string error;
};
WarpAnswer answer(const WarpQuestion& question);

/// {"name":"...","in":"...","out":"..."}: eight hexadecimal digits a word.
std::string as_line(const WarpQuestion& question, const Words& answer);

}  // namespace attest::cuda
