// attest_worker: the process a kernel runs in. It is started by the host, never by hand:
//
//     attest_worker --list            the built-in kernels, one a line (builtin_catalogue.hpp)
//     attest_worker HOST builtin ID
//     attest_worker HOST library PATH INDEX
//     attest_worker HOST python INTERPRETER FOLDER MODULE FUNCTION   becomes that interpreter
//     attest_worker HOST program PATH [ARGUMENT...]                  becomes that program
//
// with HOST the host's process id, the socket as descriptor 3 and the memory file as descriptor 4.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/interface/builtin_catalogue.hpp"
#include "kernels/worker/crash.hpp"
#include "kernels/worker/discipline.hpp"
#include "kernels/worker/frames.hpp"
#include "kernels/worker/load.hpp"
#include "kernels/worker/serve.hpp"

namespace attest::worker {
namespace {

int list() {
    for (const kernel::BuiltinKernel& kernel : kernel::builtin_kernels()) {
        const std::string absent = absent_library(kernel);
        fmt::print("{}\n",
                   kernel::catalogue_line(kernel, absent.empty() ? kernel.summary : absent));
    }
    return 0;
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
    become({a[0], "-m", "attest_worker", a[2], a[3]});
}

LoadedKernel load(const std::string& how, const std::vector<std::string>& a) {
    if (how == "python" && a.size() == 4) become_python(a);
    if (how == "program" && !a.empty()) become(a);
    install_crash_reports();
    if (how == "builtin" && a.size() == 1) return load_builtin(a[0]);
    if (how == "library" && a.size() == 2) return load_library(a[0], std::stoul(a[1]));
    throw LoadFailure("the worker was started with arguments it does not know");
}

int run(pid_t host, const std::string& how, const std::vector<std::string>& rest) {
    accept_discipline(host);
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
    if (arguments.size() < 2) {
        fmt::print(stderr, "attest_worker is started by attest\n");
        return 2;
    }
    return attest::worker::run(std::atoi(arguments[0].c_str()), arguments[1],
                               {arguments.begin() + 2, arguments.end()});
}
