// The kernels of this folder on a CPU, as a plug-in: attest_simt.so runs them fast,
// attest_simt_checked.so with every memory access checked. A diagnostic of the runtime is an error
// of the call, whatever the values are.

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/read_call.hpp"
#include "kernels/simt/check.hpp"
#include "kernels/simt/options.hpp"

namespace attest_cuda {
namespace {

using Launch = int (*)(Element, const Params&, void*);

/// What the call may touch, told to the checker: its own tensors and workspace.
class Buffers {
public:
    explicit Buffers(const attest_call* call) {
        if (simt::checker() == nullptr) return;
        for (int role = 0; role < ATTEST_ROLE_COUNT; ++role) {
            const DLTensor* t = call->tensor[role];
            if (t == nullptr || t->data == nullptr) continue;
            std::int64_t last = 0;
            for (int axis = 0; axis < t->ndim; ++axis) {
                if (t->shape[axis] == 0) last = -1;
                if (last >= 0) last += (t->shape[axis] - 1) * t->strides[axis];
            }
            add(static_cast<char*>(t->data) + t->byte_offset,
                (last + 1) * ((t->dtype.bits + 7) / 8), names[role],
                role != ATTEST_ROLE_O && role != ATTEST_ROLE_LSE);
        }
        add(call->workspace, static_cast<std::int64_t>(call->workspace_bytes), "the workspace",
            false);
    }
    ~Buffers() {
        for (int i = 0; i < count_; ++i) simt::checker()->remove_buffer(known_[i]);
    }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

private:
    void add(void* p, std::int64_t bytes, const char* name, bool defined) {
        if (p == nullptr || bytes <= 0) return;
        // Beside it lie guard pages, which no run-time check can improve on.
        simt::checker()->add_buffer(p, static_cast<std::size_t>(bytes), name, defined, 0);
        known_[count_++] = p;
    }
    static constexpr const char* names[ATTEST_ROLE_COUNT] = {"q",
                                                             "k",
                                                             "v",
                                                             "o",
                                                             "lse",
                                                             "mask",
                                                             "lens_q",
                                                             "lens_kv",
                                                             "cu_seqlens_q",
                                                             "cu_seqlens_kv",
                                                             "block_table",
                                                             "positions",
                                                             "alibi_slopes",
                                                             "sinks",
                                                             "k_scale",
                                                             "v_scale",
                                                             "k_new",
                                                             "v_new",
                                                             "d_o",
                                                             "d_q",
                                                             "d_k",
                                                             "d_v",
                                                             "d_mask",
                                                             "d_sinks",
                                                             "dropout_keep"};
    void* known_[ATTEST_ROLE_COUNT + 1] = {};
    int count_ = 0;
};

/// The schedule follows from the problem, so that a case replays; called again on the same problem
/// it is another one, and a kernel that claims to be deterministic must not show it.
void choose_schedule(const attest_problem& problem) {
    static std::uint64_t last = 0, repeats = 0;
    std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
    const auto* bytes = reinterpret_cast<const unsigned char*>(&problem);
    for (std::size_t i = 0; i < sizeof problem; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
    repeats = hash == last ? repeats + 1 : 0;
    last = hash;
    simt::Options& options = simt::options();
    options.seed = hash + repeats;
    options.schedule = static_cast<simt::Schedule>((hash + repeats) % 4);
    options.async_copy = static_cast<simt::AsyncCopy>((hash + repeats) / 4 % 3);
}

int run(Launch launch, bool workspace, const attest_call* call, char* error,
        std::size_t error_cap) {
    Params params;
    Element element = Element::f32;
    if (!read_call(call, params, element)) {
        std::snprintf(error, error_cap, "a tensor this problem needs is absent");
        return 1;
    }
    if (workspace) place_workspace(call, params);
    const Buffers buffers(call);
    choose_schedule(*call->problem);
    simt::clear_report();
    const int code = launch(element, params, nullptr);
    for (const simt::Diagnostic& d : simt::last_report().diagnostics) {
        if (d.warning) continue;
        std::snprintf(error, error_cap, "%s: %s", d.kind.c_str(), d.text.c_str());
        return 1;
    }
    if (code != 0) std::snprintf(error, error_cap, "the launch failed with CUDA error %d", code);
    return code;
}

struct Entry {
    Offer offer;
    Launch launch;
};
constexpr Entry entries[] = {{{true, true, false, false}, launch_naive},
                             {{true, true, false, false}, launch_flash},
                             {{false, true, false, false}, launch_flash_mma},
                             {{true, true, true, true}, launch_decode}};

template <int index>
int supports(void*, const attest_problem* problem, char* reason, std::size_t reason_cap) {
    return answer(entries[index].offer, problem, reason, reason_cap);
}

template <int index>
int forward(void*, const attest_call* call, char* error, std::size_t error_cap) {
    return run(entries[index].launch, entries[index].offer.splits, call, error, error_cap);
}

std::size_t decode_workspace(void*, const attest_problem* problem) {
    return decode_workspace_bytes(*problem);
}

#define COMMON                                                            \
    R"("version":"1","memory":"host","limits":{"dim_max":256},)"           \
    R"("numerics":{"deterministic":true},"features":["causal","window",)"  \
    R"("lens_q","lens_kv","mask_bool","mask_additive","softcap","sink",)"  \
    R"("alibi","gqa","dim_v","scale","layout","lse","cache","paged")"

constexpr attest_kernel_api make(const char* manifest,
                                 decltype(attest_kernel_api::supports) supports_call,
                                 decltype(attest_kernel_api::forward) forward_call,
                                 decltype(attest_kernel_api::workspace) workspace_call = nullptr) {
    return {sizeof(attest_kernel_api),
            ATTEST_ABI_VERSION,
            manifest,
            supports_call,
            nullptr,
            nullptr,
            workspace_call,
            forward_call,
            nullptr,
            nullptr};
}

const attest_kernel_api kernels[] = {
    make(R"({"name":"simt_naive","formats":["f32","f16","bf16"],)" COMMON "]}", supports<0>,
         forward<0>),
    make(R"({"name":"simt_flash","formats":["f32","f16","bf16"],)" COMMON "]}", supports<1>,
         forward<1>),
    make(R"({"name":"simt_flash_mma","formats":["f16","bf16"],)" COMMON "]}", supports<2>,
         forward<2>),
    make(R"({"name":"simt_decode","formats":["f32","f16","bf16"],)" COMMON R"(,"rope","splits"]})",
         supports<3>, forward<3>, decode_workspace),
};

}  // namespace
}  // namespace attest_cuda

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    constexpr std::size_t count = sizeof attest_cuda::kernels / sizeof attest_cuda::kernels[0];
    return host_abi == ATTEST_ABI_VERSION && index < count ? &attest_cuda::kernels[index] : nullptr;
}
