#include "kernels/cuda/conformance.hpp"
#include "kernels/simt/simt.hpp"

namespace attest::cuda {

Words scrambled(std::size_t count) {
    Words words(count);
    for (std::size_t n = 0; n < count; ++n) words[n] = static_cast<std::uint32_t>(n * 2654435761u);
    return words;
}

std::vector<WarpQuestion> all_questions() {
    std::vector<WarpQuestion> all = questions_of_warps();
    for (const auto& more : {questions_of_tensor_cores(), questions_of_numbers()})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

WarpAnswer answer(const WarpQuestion& question) {
    std::uint32_t *in = nullptr, *out = nullptr;
    Words observed(question.expected.size());
    const std::size_t in_bytes = question.in.size() * 4, out_bytes = observed.size() * 4;
    cudaError_t error = cudaMalloc(&in, in_bytes);
    if (error == cudaSuccess) error = cudaMalloc(&out, out_bytes);
    if (error == cudaSuccess)
        error = cudaMemcpy(in, question.in.data(), in_bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        error = simt::launch(question.kernel, dim3(1), dim3(lanes), 0, nullptr,
                             static_cast<const std::uint32_t*>(in), out);
    if (error == cudaSuccess)
        error = cudaMemcpy(observed.data(), out, out_bytes, cudaMemcpyDeviceToHost);
    cudaFree(in);
    cudaFree(out);
    if (error != cudaSuccess) return {{}, cudaGetErrorString(error)};
    return {observed, ""};
}

std::string as_line(const WarpQuestion& question, const Words& answer) {
    const auto hex = [](const Words& words) {
        std::string text;
        for (const std::uint32_t word : words)
            for (int shift = 28; shift >= 0; shift -= 4)
                text += "0123456789abcdef"[word >> shift & 15];
        return text;
    };
    return std::string("{\"name\":\"") + question.name + "\",\"in\":\"" + hex(question.in) +
           "\",\"out\":\"" + hex(answer) + "\"}";
}

}  // namespace attest::cuda
