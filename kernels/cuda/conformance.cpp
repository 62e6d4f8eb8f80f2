// Asks every question, and prints one line a question; exit 1 where one differs from its
// definition.
// --write FILE keeps the answers, a line each: a GPU's are what the emulation is held to.

#include "kernels/cuda/conformance.hpp"

#include <cstdio>
#include <fstream>
#include <string_view>

namespace {

using attest_cuda::Question;
using attest_cuda::Words;

bool agrees(const Question& question, const Words& observed) {
    if (observed.size() != question.expected.size()) {
        std::printf("failed   %s\n", question.name);
        return false;
    }
    for (std::size_t n = 0; n < observed.size(); ++n)
        if (observed[n] != question.expected[n]) {
            std::printf("differs  %s at %zu: %08x, defined as %08x\n", question.name, n,
                        observed[n], question.expected[n]);
            return false;
        }
    std::printf("agrees   %s\n", question.name);
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    std::ofstream kept;
    if (count == 3 && std::string_view(arguments[1]) == "--write") {
        kept.open(arguments[2]);
        if (!kept) {
            std::fprintf(stderr, "conformance: %s cannot be written\n", arguments[2]);
            return 2;
        }
    } else if (count != 1) {
        std::fprintf(stderr, "usage: conformance [--write FILE]\n");
        return 2;
    }
    bool all = true;
    for (const Question& question : attest_cuda::all_questions()) {
        const Words observed = attest_cuda::answer(question);
        all &= agrees(question, observed);
        if (kept.is_open() && !observed.empty()) kept << as_line(question, observed) << '\n';
    }
    return all ? 0 : 1;
}
