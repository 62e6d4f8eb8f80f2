#include "ci/bench.hpp"

#include <fmt/format.h>

#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/machine.hpp"
#include "reference/oracle/instruction_set.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

int bench_command(const CommandOptions& options) {
    if (options.arguments.empty() || options.arguments.front() != "oracle")
        throw BadInput("bench: say what to measure", {"attest bench oracle"});
    if (!options.instructions.empty()) oracle::use_instruction_set(options.instructions);
    constexpr double seconds = 20;
    constexpr std::uint64_t seed = 1;
    const std::uint64_t first = options.seed.value_or(seed);
    write_out(fmt::format("oracle on {}, seed {}\n", oracle::instruction_set(), first));
    const std::int64_t wrong = bench_bounds(options.seconds.value_or(seconds), first);
    bench_speed();
    return wrong == 0 ? exit_holds : exit_violated;
}

}  // namespace attest::ci
