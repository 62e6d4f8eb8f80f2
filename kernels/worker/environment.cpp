#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "kernels/worker/confinement.hpp"

namespace attest::worker {
namespace {

// What a program needs to run at all, and what steers compilers, interpreters, thread pools,
// accelerators and frameworks. A name that ends in '*' stands for all that begin so.
constexpr std::string_view given[] = {
    "PATH",     "HOME",    "USER",       "LOGNAME",    "LANG",     "LANGUAGE",     "LC_*",
    "TZ",       "TERM",    "PWD",        "TMPDIR",     "TEMP",     "TMP",          "XDG_CACHE_HOME",
    "LD_*",     "CC",      "CXX",        "CPATH",      "MALLOC_*", "GLIBC_*",      "LIBRARY_PATH",
    "PYTHON*",  "CONDA_*", "OMP_*",      "GOMP_*",     "KMP_*",    "MKL_*",        "VIRTUAL_ENV",
    "BLIS_*",   "NUMBA_*", "NUMEXPR_*",  "OPENBLAS_*", "TBB_*",    "CUDA_*",       "CUDNN_*",
    "NVIDIA_*", "NV_*",    "NCCL_*",     "HIP_*",      "ROCR_*",   "HSA_*",        "XLA_*",
    "JAX_*",    "TF_*",    "TORCH*",     "PYTORCH_*",  "TRITON_*", "ONEDNN_*",     "DNNL_*",
    "ORT_*",    "OV_*",    "OPENVINO_*", "GGML_*",     "MLX_*",    "FLASHINFER_*", "ASAN_*",
    "UBSAN_*",  "TSAN_*",  "LSAN_*",     "LLVM_*",     "GCOV_*",   "CUBLAS_*",
    // Taken away again before the kernel is loaded.
    "ATTEST_WORKER_OUTPUT"};

constexpr std::string_view secret[] = {"TOKEN", "SECRET", "PASS", "CREDENTIAL", "_KEY", "AUTH"};

bool is_given(std::string_view name) {
    const auto names = [&](std::string_view pattern) {
        return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                      : name == pattern;
    };
    const auto within = [&](std::string_view word) {
        return name.find(word) != std::string_view::npos;
    };
    return std::ranges::any_of(given, names) && std::ranges::none_of(secret, within);
}

bool is_given(std::string_view name, const ConfinementOptions& options) {
    return !options.confined || is_given(name) ||
           std::ranges::find(options.variables, name) != options.variables.end();
}

std::vector<std::string_view> own_environment() {
    std::vector<std::string_view> variables;
    for (char** one = environ; one != nullptr && *one != nullptr; ++one) variables.push_back(*one);
    return variables;
}

std::string_view name_of(std::string_view variable) {
    return variable.substr(0, variable.find('='));
}

/// As a word of its own: no part of a longer name.
bool names(std::string_view text, std::string_view name) {
    const auto in_name = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
               (c >= 'a' && c <= 'z');
    };
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end])))
            return true;
    }
    return false;
}

}  // namespace

std::vector<std::string> kernel_environment(const ConfinementOptions& options) {
    std::vector<std::string> variables;
    for (const std::string_view variable : own_environment())
        if (is_given(name_of(variable), options)) variables.emplace_back(variable);
    return variables;
}

std::vector<std::string> withheld_variables(std::string_view text,
                                            const ConfinementOptions& options) {
    constexpr std::size_t least = 3;  // a shorter name is a word by chance
    std::vector<std::string> withheld;
    for (const std::string_view variable : own_environment())
        if (const std::string_view name = name_of(variable);
            name.size() >= least && !is_given(name, options) && names(text, name))
            withheld.push_back(fmt::format("it is not given {0}; --env {0} does so", name));
    return withheld;
}

}  // namespace attest::worker
