// Planted bugs in the attention sink.

#include <cmath>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

/// The sink joins after the keys, not before.
void start_without_sink(const cpu::PlainRow& row) {
    row.max = cpu::minus_infinity;
    row.sum = 0;
    row.seen = false;
}
void add_sink(const cpu::PlainRow& row) {
    const cpu::Call& call = row.block.call;
    if (call.problem.sink == 0) return;
    if (!row.seen) row.max = row.sum = 0;
    row.sum += std::exp(call.sinks.real(row.block.head) - row.max);
    row.seen = true;
}

}  // namespace

std::vector<PlantedBug> sink() {
    return {
        {{.id = "M171",
          .bug_class = "S1",
          .operation = "flash forward",
          .change = "the sink is multiplied by the scale",
          .trigger = "sink, scale != 1",
          .must = {"reference.output"},
          .diagnosis = "sink_scaled"},
         cpu::FlashSteps{.start =
                             [](const cpu::PlainRow& row) {
                                 cpu::plain::start(row);
                                 if (row.seen)
                                     row.max *= static_cast<float>(row.block.call.problem.scale);
                             }}},
        {{.id = "M172",
          .bug_class = "S1",
          .operation = "flash forward",
          .change = "the sink is left out of the maximum",
          .trigger = "a sink above the scores by more than 88",
          .must = {"partition.stability", "reference.lse"}},
         cpu::FlashSteps{.start = start_without_sink,
                         .finish =
                             [](const cpu::PlainRow& row) {
                                 add_sink(row);
                                 cpu::plain::finish(row);
                             }}},
        {{.id = "M173",
          .bug_class = "S1",
          .operation = "flash forward",
          .change = "the sink is left out of the LSE",
          .trigger = "sink",
          .must = {"reference.lse"}},
         cpu::FlashSteps{.start = start_without_sink,
                         .finish =
                             [](const cpu::PlainRow& row) {
                                 const bool key_seen = row.seen;
                                 const float lse = cpu::plain::lse(row);
                                 add_sink(row);
                                 cpu::plain::divide(row, key_seen ? lse : cpu::plain::lse(row));
                             }}},
    };
}

}  // namespace attest::museum
