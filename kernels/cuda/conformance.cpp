// Asks every question, and prints one line a question; exit 1 where an answer differs from its
// definition, else 3 where one could not be had.
// --write FILE keeps the answers, a line each: a GPU's are what the emulation is held to.

#include "kernels/cuda/conformance.hpp"

#include <cstdio>
#include <fstream>
#include <string_view>

namespace {

using attest::cuda::WarpQuestion;
using attest::cuda::Words;

enum Exit { agrees = 0, differs = 1, unanswered = 3 };

Exit compare(const WarpQuestion& question, const Words& observed) {
    for (std::size_t n = 0; n < observed.size(); ++n)
        if (observed[n] != question.expected[n]) {
            std::printf("differs  %s at %zu: %08x, defined as %08x\n", question.name, n,
                        observed[n], question.expected[n]);
            return differs;
        }
    std::printf("agrees   %s\n", question.name);
    return agrees;
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
    Exit worst = agrees;
    for (const WarpQuestion& question : attest::cuda::all_questions()) {
        const attest::cuda::WarpAnswer answer = attest::cuda::answer(question);
        if (!answer.error.empty()) {
            std::printf("failed   %s: %s\n", question.name, answer.error.c_str());
            if (worst == agrees) worst = unanswered;
            continue;
        }
        if (compare(question, answer.words) == differs) worst = differs;
        if (kept.is_open()) kept << attest::cuda::as_line(question, answer.words) << '\n';
    }
    return worst;
}
