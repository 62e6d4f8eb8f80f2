// Whom a kill is held against: the decision alone, which needs no machine without memory.
// ci/memory_behaviour_test.py makes one.

#include <gtest/gtest.h>

#include <csignal>

#include "kernels/worker/autopsy.hpp"
#include "kernels/worker/worker_memory.hpp"

namespace attest::worker {
namespace {

WorkerDeath killed(std::optional<bool> without_memory) {
    WorkerDeath death;
    death.status.signal = SIGKILL;
    death.status.without_memory = without_memory;
    return death;
}

Finding examined(const WorkerDeath& death) {
    SessionOptions options;
    options.memory_bytes = 256u << 20;
    return examine(death, {}, options);
}

TEST(SilentEnd, AKernelThatTheSystemHadNoMemoryForIsNotAccused) {
    const Finding finding = examined(killed(true));
    EXPECT_EQ(name(finding.outcome), "no_memory");
    EXPECT_EQ(finding.fault.signal, "SIGKILL");  // so that its call is made again
    EXPECT_EQ(finding.fault.sentence, "was killed by the system, which ran out of memory");
    EXPECT_EQ(describe_end(killed(true)), finding.fault.sentence);
}

TEST(SilentEnd, WhoHeldMoreThanItMayIs) {
    WorkerDeath death = killed(true);
    death.killed_by_host = true;
    death.event = WorkerProcess::Event::memory;
    const Finding finding = examined(death);
    EXPECT_EQ(name(finding.outcome), "memory");
    EXPECT_EQ(finding.fault.sentence, "ran out of memory: 256 MiB are allowed");
}

TEST(SilentEnd, AKillThatTheSystemDoesNotCountIsTheKernelsOwn) {
    for (const auto without_memory : {std::optional(false), std::optional<bool>()}) {
        const Finding finding = examined(killed(without_memory));
        EXPECT_EQ(name(finding.outcome), "crash");
        EXPECT_EQ(finding.fault.sentence.substr(0, 48),
                  "was killed by SIGKILL, which attest did not send");
        EXPECT_EQ(describe_end(killed(without_memory)), "died of SIGKILL");
    }
}

TEST(SilentEnd, ThisMachineCounts) {
    EXPECT_TRUE(kills_for_memory()) << "neither a control group nor /proc/vmstat counts here";
}

}  // namespace
}  // namespace attest::worker
