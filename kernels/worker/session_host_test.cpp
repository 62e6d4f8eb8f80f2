// A host for lifetime_test: it opens a session on a kernel that never returns, says the worker's
// process id on its standard output, and calls. It is then killed.

#include <fmt/format.h>

#include <cstdio>

#include "kernels/worker/session.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/inputs.hpp"

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    attest::worker::Session session(attest::kernel::parse_kernel_spec(argv[1]),
                                    {.timeout = std::chrono::minutes(10)});
    fmt::print("{}\n", session.process_id());
    std::fflush(stdout);
    const attest::Problem problem;
    session.forward(problem, attest::make_inputs({.problem = problem, .values = {}}));
    return 0;
}
