#pragma once
// What the worker's tests share: where the example kernels lie, and problems whose answer is known
// to the bit without any reference.

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "kernels/worker/session.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {

inline std::string example(const std::string& file) {
    const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    return (here.parent_path() / "examples" / file).string();
}

inline kernel::KernelSpec example_spec(const std::string& file) {
    return kernel::parse_kernel_spec(example(file));
}

/// Address sanitizer's shadow leaves no room for a limit on the address space.
inline bool sanitized() {
    return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr;
}

/// Attention as a choice: key j is the unit vector e_j times 16, query i is e_c(i) times 64, and
/// the scale is 1. The chosen key scores 1024 and every other 0; exp(-1024) is 0 even in f64, so
/// the output is the chosen value row to the bit, and the LSE is 1024. Values are small integers,
/// members of every format.
struct ChosenKeys {
    Problem problem;
    TensorSet inputs;

    /// The key that query i chooses: one that it sees under a bottom-right causal mask.
    std::int64_t chosen(std::int64_t i) const {
        const std::int64_t seen =
            problem.mask.causal ? i + problem.len_kv - problem.len_q + 1 : problem.len_kv;
        return (7 * i + 3) % seen;
    }
    static double value(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
        return static_cast<double>((31 * b + 17 * h + 5 * t + c) % 64 - 32);
    }
};

/// The problem needs len_q <= len_kv <= dim_qk. k and v are logical, whatever the cache.
inline ChosenKeys make_choice(Problem problem) {
    problem.scale = 1.0;
    ChosenKeys choice{problem, make_inputs({.problem = problem, .values = {}})};
    const Problem& p = choice.problem;
    Tensor q(type_of(p, Role::q), {p.batch, p.heads_q, p.len_q, p.dim_qk});
    Tensor k(type_of(p, Role::k), {p.batch, p.heads_kv, p.len_kv, p.dim_qk});
    Tensor v(type_of(p, Role::v), {p.batch, p.heads_kv, p.len_kv, value_dim(p)});
    for (std::int64_t b = 0; b < p.batch; ++b) {
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i) q.put(b, h, i, choice.chosen(i), 64);
        for (std::int64_t h = 0; h < p.heads_kv; ++h) {
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                k.put(b, h, j, j, 16);
                for (std::int64_t c = 0; c < value_dim(p); ++c)
                    v.put(b, h, j, c, ChosenKeys::value(b, h, j, c));
            }
        }
    }
    choice.inputs.put(Role::q, std::move(q));
    choice.inputs.put(Role::k, std::move(k));
    choice.inputs.put(Role::v, std::move(v));
    return choice;
}

/// What is wrong with a result; empty where it is right to the bit.
inline std::string wrong(const ChosenKeys& choice, const CallResult& result) {
    const Problem& p = choice.problem;
    if (result.outcome != Outcome::ok) {
        return std::string(name(result.outcome)) + ": " + result.reason;
    }
    if (result.fault) return result.fault->sentence;
    if (result.outputs_unwritten) return "an output was not written";
    if (!result.outputs.has(Role::o) || !result.outputs.has(Role::lse))
        return "an output is missing";
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                if (result.outputs[Role::lse].at(b, h, i, 0) != 1024) return "an LSE is not 1024";
                for (std::int64_t c = 0; c < value_dim(p); ++c) {
                    const double wanted =
                        ChosenKeys::value(b, h / group_size(p), choice.chosen(i), c);
                    if (result.outputs[Role::o].at(b, h, i, c) != wanted) {
                        return "o[" + std::to_string(b) + " " + std::to_string(h) + " " +
                               std::to_string(i) + " " + std::to_string(c) + "] is " +
                               std::to_string(result.outputs[Role::o].at(b, h, i, c)) + ", not " +
                               std::to_string(wanted);
                    }
                }
            }
    return {};
}

}  // namespace attest::worker
