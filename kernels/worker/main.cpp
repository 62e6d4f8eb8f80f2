// attest_worker: the process a kernel runs in. It is started by the host, never by hand:
//
//     attest_worker --list            the built-in kernels, one a line (builtin_catalogue.hpp)
//     attest_worker HOLD builtin ID
//     attest_worker HOLD library PATH INDEX
//     attest_worker HOLD python INTERPRETER FOLDER MODULE FUNCTION   becomes that interpreter
//     attest_worker HOLD program PATH [ARGUMENT...]                  becomes that program
//
// with HOLD "free" or "confined USER GROUP RESULTS" (confinement.hpp; the folder may be empty), the
// socket as descriptor 3 and the memory file as descriptor 4.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/interface/builtin_catalogue.hpp"
#include "kernels/worker/confinement.hpp"
#include "kernels/worker/crash.hpp"
#include "kernels/worker/discipline.hpp"
#include "kernels/worker/frames.hpp"
#include "kernels/worker/load.hpp"
#include "kernels/worker/serve.hpp"

namespace attest::worker {
namespace {

int list() try {
    for (const kernel::BuiltinKernel& kernel : builtin_kernels()) {
        const std::string absent = absent_library(kernel);
        fmt::print("{}\n",
                   kernel::catalogue_line(kernel, absent.empty() ? kernel.summary : absent));
    }
    return 0;
} catch (const LoadFailure& failure) {
    fmt::print(stderr, "attest: {} {}\n", kernel::builtin_library, failure.what());
    return 2;
}

void become(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& part : command) {
        arguments.push_back(const_cast<char*>(part.c_str()));  // execvp does not write
    }
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    throw LoadFailure(fmt::format("{} cannot be run: {}", command[0], std::strerror(errno)));
}

void become_python(const std::vector<std::string>& a) {
    const char* path = std::getenv("PYTHONPATH");
    const std::string folders = path == nullptr ? a[1] : fmt::format("{}:{}", a[1], path);
    ::setenv("PYTHONPATH", folders.c_str(), 1);
    // Workers run side by side; BLAS threads of each would only get in the others' way.
    ::setenv("OPENBLAS_NUM_THREADS", "1", 0);
    ::setenv("PYTHONUNBUFFERED", "1", 0);  // what stands in a buffer dies with the process
    // Not -m: it would put the working directory first, where a file numpy.py hides numpy.
    become({a[0], "-c",
            "import sys; sys.path.append(sys.path.pop(0)); import attest_worker.__main__", a[2],
            a[3]});
}

LoadedKernel load(const std::string& how, const std::vector<std::string>& a) {
    if (how == "python" && a.size() == 4) become_python(a);
    if (how == "program" && !a.empty()) become(a);
    install_crash_reports();
    if (how == "builtin" && a.size() == 1) return load_builtin(a[0]);
    if (how == "library" && a.size() == 2) return load_library(a[0], std::stoul(a[1]));
    throw LoadFailure("the worker was started with arguments it does not know");
}

int run(const std::string& how, const std::vector<std::string>& rest) {
    volatile std::uint64_t foot = 0;
    circumstances.stack_foot = reinterpret_cast<std::uint64_t>(&foot);
    try {
        const LoadedKernel kernel = load(how, rest);
        circumstances.phase = protocol::Phase::idle;
        serve(kernel);
        if (kernel.api.destroy != nullptr) kernel.api.destroy(kernel.state);
    } catch (const LoadFailure& failure) {
        send_text(protocol::FrameKind::load_error, 0, failure.what());
    }
    // Not exit(): what a plug-in registered to run then is not worth a crash nobody asked about.
    ::_exit(0);
}

}  // namespace
}  // namespace attest::worker

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() == 1 && arguments[0] == "--list") return attest::worker::list();
    constexpr std::size_t words_of_confined = 4;
    const bool confined = arguments.size() > words_of_confined && arguments[0] == "confined";
    const std::size_t how = confined ? words_of_confined : 1;
    if (arguments.size() <= how || !(confined || arguments[0] == "free")) {
        fmt::print(stderr, "attest_worker is started by attest\n");
        return 2;
    }
    attest::worker::forget_names(argc, argv);
    attest::worker::accept_discipline();
    if (confined) {
        const auto number = [](const std::string& text) {
            return static_cast<unsigned>(std::stoul(text));
        };
        attest::worker::confine(arguments[3], number(arguments[1]), number(arguments[2]));
    }
    return attest::worker::run(
        arguments[how],
        {arguments.begin() + static_cast<std::ptrdiff_t>(how) + 1, arguments.end()});
}
