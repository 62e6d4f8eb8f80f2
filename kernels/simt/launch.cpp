#include "kernels/simt/launch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "kernels/simt/check.hpp"

namespace simt {
namespace {

std::atomic<std::uint32_t> next_launch{1};

bool valid(const LaunchShape& shape) {
    const auto threads = static_cast<std::uint64_t>(shape.block.x) * shape.block.y * shape.block.z;
    return threads >= 1 && threads <= 1024 && shape.block.z <= 64 && shape.grid.x >= 1 &&
           shape.grid.y >= 1 && shape.grid.z >= 1 && shape.grid.y <= 65535 &&
           shape.grid.z <= 65535 && shape.dynamic_bytes <= dynamic_shared_max;
}

std::vector<std::uint32_t> block_order(std::size_t count, const Options& options) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (options.schedule == Schedule::reverse) std::reverse(order.begin(), order.end());
    if (options.schedule == Schedule::random) {
        std::mt19937_64 random(options.seed);
        std::shuffle(order.begin(), order.end(), random);
    }
    return order;
}

/// `told`: what is new in it is printed, for whoever ends the process before it can be asked.
void add(Report& total, const Report& part, bool told = false) {
    for (const Diagnostic& d : part.diagnostics)
        if (std::find(total.diagnostics.begin(), total.diagnostics.end(), d) ==
            total.diagnostics.end()) {
            total.diagnostics.push_back(d);
            if (told)
                std::fprintf(stderr, "%s%s: %s\n", d.warning ? "warning: " : "", d.kind.c_str(),
                             d.text.c_str());
        }
    total.blocks += part.blocks;
    total.switches += part.switches;
    total.barriers += part.barriers;
    total.collectives += part.collectives;
}

}  // namespace

Options& options() {
    thread_local Options current;
    return current;
}

Report& last_report() {
    thread_local Report report;
    return report;
}

void clear_report() {
    last_report() = {};
}

cudaError_t launch_blocks(const LaunchShape& shape, const std::function<void()>& body) {
    if (current_block() != nullptr) {
        current_block()->report("nested_launch", "a kernel launches a kernel: not simulated");
        return cudaErrorInvalidConfiguration;
    }
    const InRuntime in_runtime;
    Report report;
    if (!valid(shape)) {
        report.diagnostics.push_back(
            {"launch_configuration", "the launch configuration is invalid", false});
        add(last_report(), report, options().told);
        return cudaErrorInvalidConfiguration;
    }
    if (checker() != nullptr) checker()->new_launch();
    const Options chosen = options();
    const std::size_t count = static_cast<std::size_t>(shape.grid.x) * shape.grid.y * shape.grid.z;
    const std::vector<std::uint32_t> order = block_order(count, chosen);
    const std::uint32_t launch = next_launch++;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    const auto work = [&](Block& block) {
        block.totals() = {};
        block.prepare(shape, chosen, body, launch);
        for (std::size_t i = next++; !stop && i < count; i = next++) {
            const std::uint32_t b = order[i];
            const uint3 index{b % shape.grid.x, b / shape.grid.x % shape.grid.y,
                              b / shape.grid.x / shape.grid.y};
            if (!block.run(index, b)) stop = true;
        }
    };
    // The checker keeps one shadow, so a checked launch runs its blocks one after the other.
    const std::size_t workers =
        checker() != nullptr ? 1 : std::min<std::size_t>(chosen.workers, count);
    if (workers <= 1) {
        thread_local std::unique_ptr<Block> block;  // its fibers are kept from launch to launch
        if (block == nullptr) block = std::make_unique<Block>();
        work(*block);
        add(report, block->totals());
    } else {
        std::vector<Report> parts(workers);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < workers; ++i)
            threads.emplace_back([&, i] {
                Block block;
                work(block);
                parts[i] = block.totals();
            });
        for (std::thread& t : threads) t.join();
        for (const Report& part : parts) add(report, part);
    }
    add(last_report(), report, chosen.told);
    return stop ? cudaErrorLaunchFailure : cudaSuccess;
}

}  // namespace simt
