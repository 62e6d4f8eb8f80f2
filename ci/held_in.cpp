#include "ci/held_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/worker/confinement.hpp"

namespace attest::ci {

namespace {

/// In the words of the C library, with which an error of Python ends, too.
std::vector<std::string> of_barriers(const KernelReport& kernel, const std::string& problem) {
    constexpr const char* words[] = {"Permission denied", "Operation not permitted",
                                     "Read-only file system"};
    const auto denied = [&](const char* word) { return problem.find(word) != problem.npos; };
    std::vector<std::string> said;
    if (std::ranges::none_of(words, denied)) return said;
    for (const auto& [barrier, says] :
         {std::pair{"files", "it writes below the folders for temporary files and caches alone"},
          std::pair{"system_calls", "it opens no socket"}})
        if (std::ranges::find(kernel.barriers, barrier) != kernel.barriers.end())
            said.emplace_back(says);
    if (!said.empty()) said.emplace_back("--unconfined lifts that");
    return said;
}

worker::ConfinementOptions confinement_of(const KernelReport& kernel) {
    constexpr std::string_view variable = "--env ";
    worker::ConfinementOptions options;
    for (const std::string& option : kernel.options) {
        options.confined = options.confined && option != "--unconfined";
        if (option.starts_with(variable))
            options.variables.push_back(option.substr(variable.size()));
    }
    return options;
}

}  // namespace

std::string held_in(const KernelReport& kernel, const std::string& problem) {
    std::vector<std::string> said = of_barriers(kernel, problem);
    std::ranges::move(worker::withheld_variables(problem, confinement_of(kernel)),
                      std::back_inserter(said));
    return fmt::format("{}", fmt::join(said, "; "));
}

}  // namespace attest::ci
