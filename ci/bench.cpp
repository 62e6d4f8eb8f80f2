#include "ci/bench.hpp"

#include <fmt/format.h>

#include "ci/commands.hpp"
#include "ci/embedded.hpp"
#include "ci/exit_code.hpp"
#include "reference/oracle/instruction_set.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

/// Each table is told as soon as it is measured.
void measure(BenchReport& report) {
    const auto tell = [](auto& into, auto measured) {
        into = std::move(measured);
        write_out(bench_text(into));
    };
    write_out(bench_text(report));
    // Each part draws its own sequence of cases.
    const std::uint64_t first = report.seed << 34, next = std::uint64_t{1} << 32;
    tell(report.certified, measure_certified(0.3 * report.seconds, first));
    tell(report.forward, measure_forward(0.4 * report.seconds, first + next));
    tell(report.backward, measure_backward(0.3 * report.seconds, first + 2 * next));
    SpeedTable& speed = report.speed;
    write_out(bench_text(speed));
    for (const std::int64_t len : bench_lengths)
        write_out(bench_text(speed.rows.emplace_back(measure_speed(len, speed.dim)), speed.dim));
    tell(report.long_context, measure_long(speed.dim));
    tell(report.device, measure_device(speed.dim));
}

}  // namespace

int bench_command(const CommandOptions& options) {
    if (options.arguments.empty() || options.arguments.front() != "oracle")
        throw BadInput("bench: say what to measure", {"attest bench oracle"});
    if (!options.instructions.empty()) oracle::use_instruction_set(options.instructions);
    if (!options.out.empty()) make_out_folder(options.out);
    constexpr double seconds = 20;
    constexpr std::uint64_t seed = 1;
    BenchReport report{.attest = std::string(attest_version()),
                       .started = time_now(),
                       .instructions = oracle::instruction_set(),
                       .seed = options.seed.value_or(seed),
                       .seconds = options.seconds.value_or(seconds),
                       .machine = this_machine(),
                       .forward = {},
                       .speed = {},
                       .long_context = {},
                       .device = {}};
    measure(report);
    if (!options.out.empty()) {
        const std::string path = options.out + "/bench.jsonl";
        write_file_atomically(path, bench_records(report));
        write_out(
            fmt::format("\nrecords: {}; attest report {} draws a page of them\n", path, path));
    }
    return report.violated() == 0 ? exit_holds : exit_violated;
}

}  // namespace attest::ci
