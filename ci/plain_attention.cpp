#include "ci/plain_attention.hpp"

namespace attest::ci {

void plain_attention_portable(const PlainCall& call);
#ifdef __x86_64__
void plain_attention_avx2(const PlainCall& call);
void plain_attention_avx512(const PlainCall& call);
#endif

PlainAttention plain_attention(const std::string& instruction_set) {
#ifdef __x86_64__
    if (instruction_set.starts_with("AVX3")) return plain_attention_avx512;
    if (instruction_set == "AVX2") return plain_attention_avx2;
#endif
    return instruction_set.empty() ? nullptr : plain_attention_portable;
}

}  // namespace attest::ci
