// Planted bugs in ring-buffer caches.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

/// Key j where a ring holds it, by the slot that `slot_of(call, batch, j, slots)` says.
template <auto slot_of>
const std::byte* in_slot(const cpu::Call& call, const cpu::Operand& operand, std::int64_t batch,
                         std::int64_t head, std::int64_t j) {
    if (!call.ring()) return call.row(operand, batch, head, j);
    return operand.at(batch, head, slot_of(call, batch, j, operand.shape[2]));
}

std::int64_t by_the_window(const cpu::Call& call, std::int64_t, std::int64_t j,
                           std::int64_t slots) {
    const std::int64_t left = call.problem.window_left;
    return j % (left < 0 ? slots : std::min(left + 1, slots));
}

std::int64_t oldest_first(const cpu::Call& call, std::int64_t batch, std::int64_t j,
                          std::int64_t slots) {
    const std::int64_t keys = call.lens_kv ? call.lens_kv.integer(batch) : call.problem.len_kv;
    return std::clamp<std::int64_t>(j - std::max<std::int64_t>(keys - slots, 0), 0, slots - 1);
}

/// The slots are those of the queries and of the keys that the first one's window reaches.
std::int64_t slot_of(const attest_problem& p, std::int64_t position) {
    if ((p.flags & ATTEST_FLAG_RING) == 0 || p.window_left < 0) return position;
    return position % std::clamp<std::int64_t>(p.window_left + p.len_q, 1,
                                               std::max<std::int64_t>(p.len_kv, 1));
}

}  // namespace

std::vector<PlantedBug> ring() {
    return {
        {{.id = "M440",
          .bug_class = "I7",
          .operation = "ring buffer",
          .change = "slot = position mod the window instead of mod the slots there are",
          .trigger = "several queries",
          .must = {"reference.output", "reference.decode"},
          .diagnosis = "ring_of_window"},
         cpu::DecodeSteps{.row = in_slot<by_the_window>}},
        {{.id = "M441",
          .bug_class = "I7",
          .operation = "ring buffer",
          .change = "slots are read in their order, as if the first held the oldest key",
          .trigger = "more keys than slots, an order that matters",
          .must = {"reference.output", "reference.decode"},
          .diagnosis = "ring_in_order"},
         cpu::DecodeSteps{.row = in_slot<oldest_first>}},
        {{.id = "M442",
          .bug_class = "P1",
          .operation = "ring buffer",
          .change = "keys are rotated by their slot",
          .trigger = "rope, more keys than slots",
          .must = {"reference.decode"},
          .diagnosis = "rope_keys_in_slot"},
         cpu::DecodeSteps{.key_position = slot_of}},
    };
}

}  // namespace attest::museum
