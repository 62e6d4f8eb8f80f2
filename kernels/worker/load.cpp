#include "kernels/worker/load.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "kernels/interface/builtin.hpp"
#include "kernels/interface/manifest.hpp"
#include "kernels/worker/crash.hpp"
#include "kernels/worker/elf_exports.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

using GetKernel = const attest_kernel_api* (*)(std::uint32_t, std::size_t);

/// What every plug-in must reach: forward is the last function that may not be NULL.
constexpr std::size_t struct_size_min =
    offsetof(attest_kernel_api, forward) + sizeof(attest_kernel_api::forward);

/// A manifest with a mistake is the host's to report.
kernel::Manifest declared(const char* manifest) {
    try {
        return kernel::parse_manifest(manifest, "");
    } catch (const BadInput&) {
        return {};
    }
}

LoadedKernel adopt(const attest_kernel_api* api, void* library = nullptr) {
    if (api->struct_size < struct_size_min) {
        throw LoadFailure(
            fmt::format("attest_kernel_api.struct_size is {}, at least {} are needed\n"
                        "set it to sizeof(attest_kernel_api)",
                        api->struct_size, struct_size_min));
    }
    if (api->abi_version != ATTEST_ABI_VERSION) {
        throw LoadFailure(fmt::format(
            "built for ABI {}, this attest speaks ABI {}\n"
            "build it with this attest's attest_kernel.h, or return NULL where host_abi is {}",
            api->abi_version, ATTEST_ABI_VERSION, ATTEST_ABI_VERSION));
    }
    LoadedKernel kernel;
    std::memcpy(&kernel.api, api, std::min(api->struct_size, sizeof kernel.api));
    const auto missing = [](const char* what) {
        return LoadFailure(
            fmt::format("attest_kernel_api.{} is NULL\nmanifest and forward are required", what));
    };
    if (kernel.api.manifest == nullptr) throw missing("manifest");
    if (kernel.api.forward == nullptr) throw missing("forward");
    kernel.library = library;
    const kernel::Manifest manifest = declared(kernel.api.manifest);
    if (kernel.api.backward == nullptr && !manifest.gradients.empty())
        throw LoadFailure("attest_kernel_api.backward is NULL\nits manifest lists gradients");
    kernel.on_device = manifest.memory == kernel::Memory::cuda;
    if (kernel.api.create == nullptr) return kernel;

    circumstances.phase = protocol::Phase::create;
    std::array<char, 1024> error{};
    int code = 0;
    const std::string thrown =
        caught([&] { code = kernel.api.create(&kernel.state, error.data(), error.size() - 1); });
    if (!thrown.empty()) throw LoadFailure("create() let an exception out: " + thrown);
    if (code != 0) {
        throw LoadFailure(fmt::format("create() failed with code {}: {}", code, error.data()));
    }
    return kernel;
}

std::string beside_worker(const char* library) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / library;
}

/// "libcudart.so.13: cannot open shared object file: No such file or directory" and its like.
[[noreturn]] void fail_to_load(const std::string& path, std::string told) {
    const std::size_t cannot = told.find(": cannot open shared object file");
    if (cannot != std::string::npos) {
        throw LoadFailure(
            fmt::format("cannot be loaded: {} not found\nneeded by {}; set "
                        "LD_LIBRARY_PATH or link it statically",
                        told.substr(0, cannot), path));
    }
    const std::string prefix = path + ": ";
    if (told.starts_with(prefix)) told.erase(0, prefix.size());
    const auto tells = [&told](const char* words) { return told.find(words) != std::string::npos; };
    const char* remedy = "";
    if (tells("undefined symbol")) remedy = "\nlink the object or library that defines it";
    if (tells("file too short") || tells("ELF"))
        remedy = "\nbuild it for this machine: cc -shared -fPIC";
    throw LoadFailure("cannot be loaded: " + told + remedy);
}

void* open_library(const std::string& path) {
    circumstances.phase = protocol::Phase::loading;
    // Without a slash dlopen would search the library path instead of the file that was named.
    const std::string named = path.find('/') == std::string::npos ? "./" + path : path;
    void* library = ::dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    const char* reason = ::dlerror();
    fail_to_load(named, reason != nullptr ? reason : "unknown reason");
}

[[noreturn]] void fail_without_symbol(const std::string& path) {
    const std::vector<std::string> names = exported_symbols(path);
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw LoadFailure(fmt::format(
        "exports no attest_get_kernel\nit exports {} symbol{}{}\ndeclare it extern \"C\" and "
        "ATTEST_EXPORT, as attest_kernel.h does",
        names.size(), names.size() == 1 ? "" : "s", suggestion("attest_get_kernel", known)));
}

}  // namespace

std::string describe_current_exception() {
    std::string type = "something that is no std::exception";
    if (const std::type_info* info = abi::__cxa_current_exception_type()) {
        int status = 0;
        const std::unique_ptr<char, decltype(&std::free)> name(
            abi::__cxa_demangle(info->name(), nullptr, nullptr, &status), &std::free);
        type = name != nullptr ? name.get() : info->name();
    }
    try {
        throw;
    } catch (const std::bad_alloc&) {
        circumstances.allocation_failed = true;
        return type;
    } catch (const std::exception& e) {
        return fmt::format("{}: {}", type, e.what());
    } catch (...) {
        return type;
    }
}

std::string absent_library(const kernel::BuiltinKernel& kernel) {
    if (kernel.api != nullptr || std::filesystem::exists(beside_worker(kernel.library))) return {};
    return fmt::format("not built here: {} is not beside attest_worker; ci/build {} makes it",
                       kernel.library, std::filesystem::path(kernel.library).stem().string());
}

std::span<const kernel::BuiltinKernel> builtin_kernels() {
    const std::string path = beside_worker(kernel::builtin_library);
    if (!std::filesystem::exists(path))
        throw LoadFailure("is not beside attest_worker; ci/build makes it");
    void* library = open_library(path);
    const auto list = reinterpret_cast<decltype(&kernel::attest_builtin_kernels)>(
        ::dlsym(library, "attest_builtin_kernels"));
    if (list == nullptr) throw LoadFailure(path + " is not of this attest");
    std::span<const kernel::BuiltinKernel> kernels;
    list(kernels);
    return kernels;
}

LoadedKernel load_builtin(const std::string& id) {
    for (const kernel::BuiltinKernel& kernel : builtin_kernels()) {
        if (kernel.id != id) continue;
        if (kernel.api != nullptr) {
            LoadedKernel loaded = adopt(kernel.api);
            if (kernel.state != nullptr) loaded.state = const_cast<void*>(kernel.state);
            return loaded;
        }
        if (const std::string absent = absent_library(kernel); !absent.empty())
            throw LoadFailure(absent);
        return load_library(beside_worker(kernel.library), kernel.index);
    }
    throw LoadFailure("no built-in kernel has this name");
}

LoadedKernel load_library(const std::string& path, std::size_t index) {
    void* library = open_library(path);
    // POSIX promises that a function's address survives the trip through void*.
    const auto get_kernel = reinterpret_cast<GetKernel>(::dlsym(library, "attest_get_kernel"));
    if (get_kernel == nullptr) fail_without_symbol(path);

    circumstances.phase = protocol::Phase::get_kernel;
    const attest_kernel_api* api = nullptr;
    std::string thrown = caught([&] { api = get_kernel(ATTEST_ABI_VERSION, index); });
    if (!thrown.empty()) throw LoadFailure("attest_get_kernel let an exception out: " + thrown);
    if (api != nullptr) return adopt(api, library);

    std::size_t count = 0;
    while (count < index && get_kernel(ATTEST_ABI_VERSION, count) != nullptr) ++count;
    if (count == 0) {
        throw LoadFailure(
            fmt::format("offers no kernel for ABI {}, which this attest speaks\n"
                        "attest_get_kernel({}, 0) returned NULL",
                        ATTEST_ABI_VERSION, ATTEST_ABI_VERSION));
    }
    throw LoadFailure(
        fmt::format("has no kernel number {}; its last is number {}", index, count - 1));
}

}  // namespace attest::worker
