#include "ci/gpu_oracle.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <memory>

#include "kernels/interface/worker_directory.hpp"
#include "reference/oracle/device_oracle.hpp"
#include "reference/oracle/double_double_constants.hpp"

namespace attest::ci {

namespace {

std::unique_ptr<oracle::DeviceRows> open_gpu(std::string& why) {
    const std::filesystem::path path =
        std::filesystem::path(kernel::worker_program()).parent_path() / "attest_oracle_cuda.so";
    if (!std::filesystem::exists(path)) {
        why = "attest was built without CUDA; ci/build --cuda all";
        return nullptr;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* make = library == nullptr ? nullptr : dlsym(library, "attest_device_rows");
    if (make == nullptr) {
        why = dlerror();
        return nullptr;
    }
    return std::unique_ptr<oracle::DeviceRows>(
        reinterpret_cast<oracle::MakeDeviceRows*>(make)(oracle::double_double_constants(), why));
}

}  // namespace

void offer_gpu_oracle() {
    oracle::offer_device(open_gpu);
}

std::string long_context_words() {
    const oracle::DeviceState state = oracle::device_state();
    if (!state.wanted) return "";
    if (!state.name.empty())
        return "long contexts on " + state.name +
               ", those with RoPE or a mask tensor in some rows on the CPU";
    return "long contexts in some rows, on the CPU (" + state.why_not + ")";
}

}  // namespace attest::ci
