#pragma once
// The oracle's rows on this machine's GPU, loaded when a long context first asks for them.

#include <string>

namespace attest::ci {

/// Offers attest_oracle_cuda.so, which lies beside the worker where it was built.
void offer_gpu_oracle();

/// Who judged long contexts so far, in words; empty where none were.
std::string long_context_words();

}  // namespace attest::ci
