#include "kernels/interface/worker_directory.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "reference/problem/errors.hpp"

namespace attest::kernel {
namespace {

namespace fs = std::filesystem;

constexpr const char* program_name = "attest_worker";

bool holds_worker(const fs::path& folder) {
    return ::access((folder / program_name).c_str(), X_OK) == 0;
}

fs::path search() {
    if (const char* from_environment = std::getenv("ATTEST_WORKER_DIR")) {
        if (holds_worker(from_environment)) return from_environment;
        throw InternalError(std::string("ATTEST_WORKER_DIR is ") + from_environment +
                            ", which holds no attest_worker");
    }
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    std::vector<fs::path> places = {here};
    for (fs::path up = here; up.has_relative_path(); up = up.parent_path()) {
        places.push_back(up / "kernels" / "worker");
    }
    places.push_back(here.parent_path() / "lib" / "attest");
    places.push_back(here.parent_path() / "libexec" / "attest");
    for (const fs::path& place : places) {
        if (holds_worker(place)) return place;
    }
    throw InternalError("attest_worker is not beside " + here.string() +
                        " nor installed; set ATTEST_WORKER_DIR to the folder that holds it");
}

const fs::path& worker_directory() {
    static const fs::path found = search();
    return found;
}

}  // namespace

std::string worker_program() {
    return worker_directory() / program_name;
}

std::string worker_python_directory() {
    return worker_directory() / "python";
}

}  // namespace attest::kernel
