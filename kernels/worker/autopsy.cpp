#include "kernels/worker/autopsy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>

#include "kernels/worker/printed.hpp"

namespace attest::worker {
namespace {

/// A stack that has run out faults at its end, and the stack pointer is there too: within the
/// largest frame and probe one meets. Memory that near to the stack pointer is otherwise mapped.
constexpr std::uint64_t stack_reach = 1 << 20;

std::string slot_name(const TensorSlot& slot) {
    return slot.is_workspace() ? "the workspace" : std::string(name(static_cast<Role>(slot.role)));
}

std::string seconds_text(std::chrono::milliseconds time) {
    return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                    : fmt::format("{} ms", time.count());
}

/// "read 64 bytes past the end of k"; verb: "read" or "wrote".
std::string sentence_of(std::string_view verb, const TensorSlot& slot, std::int64_t offset) {
    const auto size = static_cast<std::int64_t>(slot.span_bytes);
    const std::string tensor = slot_name(slot);
    if (offset < 0) {
        return fmt::format("{} {} byte{} before {}", verb, -offset, offset == -1 ? "" : "s",
                           tensor);
    }
    if (offset < size) return fmt::format("{} {} at byte {}", verb, tensor, offset);
    const std::int64_t past = offset - size;
    if (past == 0) return fmt::format("{} just past the end of {}", verb, tensor);
    return fmt::format("{} {} byte{} past the end of {}", verb, past, past == 1 ? "" : "s", tensor);
}

void name_tensor(Fault& fault, const TensorSlot& slot, std::int64_t offset) {
    if (slot.is_workspace()) {
        fault.workspace = true;
    } else {
        fault.tensor = static_cast<Role>(slot.role);
    }
    fault.offset_bytes = offset;
    fault.before = offset < 0;
}

/// The slot nearest to an address of the shared memory: the guards on both sides of a tensor are
/// its own up to the middle between it and the next.
const TensorSlot* nearest_slot(std::span<const TensorSlot> slots, std::int64_t address) {
    const TensorSlot* best = nullptr;
    std::int64_t best_distance = 0;
    for (const TensorSlot& slot : slots) {
        const auto begin = static_cast<std::int64_t>(slot.data);
        const auto end = static_cast<std::int64_t>(slot.end());
        const std::int64_t distance = address < begin  ? begin - address
                                      : address >= end ? address - end
                                                       : 0;
        if (best == nullptr || distance < best_distance) {
            best = &slot;
            best_distance = distance;
        }
    }
    return best;
}

Fault::Access access_of(const protocol::FaultFrame& words) {
    return words.access == 2   ? Fault::Access::write
           : words.access == 1 ? Fault::Access::read
                               : Fault::Access::none;
}

Fault in_shared_memory(const protocol::FaultFrame& words, std::span<const TensorSlot> slots) {
    Fault fault;
    fault.signal = signal_name(static_cast<int>(words.signal));
    const auto address = static_cast<std::int64_t>(words.address - words.arena);
    const TensorSlot* slot = nearest_slot(slots, address);
    if (slot == nullptr) {
        fault.kind = Fault::Kind::outside_all;
        fault.sentence = "touched the tensors of an earlier call";
        return fault;
    }
    const std::int64_t offset = address - static_cast<std::int64_t>(slot->data);
    const bool inside = offset >= 0 && offset < static_cast<std::int64_t>(slot->span_bytes);
    if (inside && slot->access == protocol::Access::write) {
        name_tensor(fault, *slot, offset);
        fault.sentence = fmt::format(
            "had unmapped or protected {}, whose memory is the judge's, in an earlier call",
            slot_name(*slot));
        return fault;
    }
    const bool wrote = words.access == 2 || inside;
    fault.stray = wrote ? Fault::Access::write : access_of(words);
    fault.kind = inside  ? Fault::Kind::write_input
                 : wrote ? Fault::Kind::write_outside
                         : Fault::Kind::read_outside;
    name_tensor(fault, *slot, offset);
    fault.sentence = inside
                         ? fmt::format("wrote to its input {} at byte {}", slot_name(*slot), offset)
                         : sentence_of(wrote               ? "wrote"
                                       : words.access == 1 ? "read"
                                                           : "touched",
                                       *slot, offset);
    return fault;
}

Fault of_signal(const protocol::FaultFrame& words, std::span<const TensorSlot> slots) {
    const int signal = static_cast<int>(words.signal);
    if (signal == SIGSEGV || signal == SIGBUS) {
        if (words.arena_bytes != 0 && words.address - words.arena < words.arena_bytes) {
            return in_shared_memory(words, slots);
        }
    }
    Fault fault;
    fault.signal = signal_name(signal);
    if (signal == SIGABRT) {
        fault.kind = Fault::Kind::abort_called;
        fault.sentence = "called abort()";
        return fault;
    }
    if (words.phase == protocol::Phase::text) {
        fault.kind = Fault::Kind::outside_all;
        fault.stray = Fault::Access::write;
        fault.sentence = fmt::format("wrote past the end of its text: {} bytes are given",
                                     protocol::text_bytes_max - 1);
        return fault;
    }
    if (signal == SIGSEGV && words.code > 0 && words.address == words.instruction) {
        fault.kind = Fault::Kind::outside_all;
        fault.sentence = fmt::format("jumped to address {:#x}, where no code is", words.address);
        return fault;
    }
    if (signal != SIGSEGV || words.code <= 0) {
        fault.sentence =
            fmt::format("died of {}{}", fault.signal,
                        signal == SIGILL ? " (a trap, or built for another processor)" : "");
        return fault;
    }
    const std::uint64_t distance = words.address > words.stack_pointer
                                       ? words.address - words.stack_pointer
                                       : words.stack_pointer - words.address;
    const bool at_stack = words.stack_pointer != 0 && distance <= stack_reach;
    if (at_stack && words.stack_taken != 0) {
        fault.sentence = "had unmapped or protected the stack it runs on";
    } else if (at_stack) {
        fault.kind = Fault::Kind::stack_overflow;
        fault.sentence = "ran out of stack: a recursion without end, or a very large local array";
    } else if (words.access == 0) {
        fault.sentence =
            "died of SIGSEGV at an address the processor does not tell: a wild pointer, "
            "or a vector access that wants alignment";
    } else {
        fault.kind = Fault::Kind::outside_all;
        fault.stray = access_of(words);
        fault.sentence = fmt::format("{} address {:#x}, which is in no tensor",
                                     words.access == 2 ? "wrote to" : "read from", words.address);
    }
    return fault;
}

std::string_view where(protocol::Phase phase) {
    switch (phase) {
        case protocol::Phase::create:
            return " inside create()";
        case protocol::Phase::supports:
            return " inside supports()";
        case protocol::Phase::workspace:
            return " inside workspace()";
        case protocol::Phase::idle:
            return " between calls";
        default:
            return "";
    }
}

/// "256 MiB", "1 TiB".
std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 7> units = {"bytes", "KiB", "MiB", "GiB",
                                                       "TiB",   "PiB", "EiB"};
    std::size_t unit = 0;
    auto count = static_cast<double>(bytes);
    for (; count >= 1024 && unit + 1 < units.size(); ++unit) count /= 1024;
    return fmt::format("{:.4g} {}", count, units[unit]);
}

}  // namespace

CallResult failed(Outcome outcome, Fault::Kind kind, const std::string& sentence) {
    CallResult result;
    result.outcome = outcome;
    result.reason = sentence;
    result.fault.emplace();
    result.fault->kind = kind;
    result.fault->sentence = sentence;
    return result;
}

std::optional<CallResult> refuse_workspace(std::uint64_t bytes, const SessionOptions& options) {
    // No system has more to give to one process: no limit at all would let sizes overflow.
    constexpr std::uint64_t bytes_max = 1ull << 40;
    const std::uint64_t allowed = options.memory_bytes != 0 ? options.memory_bytes : bytes_max;
    if (bytes <= std::min(allowed, bytes_max)) return std::nullopt;
    CallResult result = failed(Outcome::memory, Fault{}.kind,
                               fmt::format("asked for a workspace of {}: {} are allowed",
                                           bytes_text(bytes), bytes_text(allowed)));
    result.fault->workspace = true;
    return result;
}

Finding examine(const WorkerDeath& death, std::span<const TensorSlot> slots,
                const SessionOptions& options) {
    Finding finding;
    if (death.killed_by_host && death.event == WorkerProcess::Event::timeout) {
        finding.outcome = Outcome::hang;
        finding.fault.sentence =
            fmt::format("did not return within {}", seconds_text(options.timeout));
        return finding;
    }
    if (death.event == WorkerProcess::Event::silence) {
        finding.outcome = Outcome::hang;
        finding.fault.sentence = fmt::format("did not return, and showed no sign of life for {}",
                                             seconds_text(options.silence));
        return finding;
    }
    if (death.event == WorkerProcess::Event::unasked) {
        finding.fault.sentence =
            "spoke in its worker's name, or wrote over its stack: an answer came that nobody had "
            "asked for";
        return finding;
    }
    const bool too_much =
        death.killed_by_host || (death.last_words && death.last_words->allocation_failed != 0);
    if (too_much) {
        finding.outcome = Outcome::memory;
        if (death.last_words) {
            finding.fault.signal = signal_name(static_cast<int>(death.last_words->signal));
        }
        finding.fault.sentence =
            death.killed_by_host
                ? fmt::format("ran out of memory: {} are allowed", bytes_text(options.memory_bytes))
                : "ran out of memory: an allocation failed";
        return finding;
    }
    if (!death.last_words) {
        finding = without_last_words(death);
    } else {
        finding.fault = of_signal(*death.last_words, slots);
        finding.fault.sentence += where(death.last_words->phase);
    }
    if (finding.fault.kind == Fault::Kind::abort_called && left_its_thread(death.printed)) {
        finding.fault.sentence =
            "called pthread_exit() or was cancelled: the thread is the judge's";
        return finding;
    }
    if (!death.location.empty()) {
        finding.fault.sentence += fmt::format(", at {}", death.location);
    }
    const bool ended_itself = finding.fault.kind == Fault::Kind::abort_called ||
                              finding.fault.kind == Fault::Kind::exit_called;
    const std::string word = ended_itself ? telling_line(death.printed) : "";
    if (!word.empty()) finding.fault.sentence += "; it had printed: " + word;
    return finding;
}

Fault describe_breach(const Breach& breach, std::span<const TensorSlot> slots) {
    const TensorSlot& slot = slots[breach.slot];
    Fault fault;
    fault.kind = breach.in_tensor ? Fault::Kind::write_input : Fault::Kind::write_outside;
    if (!breach.in_tensor) fault.stray = Fault::Access::write;
    name_tensor(fault, slot, breach.offset_bytes);
    const bool between = breach.offset_bytes >= 0 &&
                         breach.offset_bytes < static_cast<std::int64_t>(slot.span_bytes);
    fault.sentence = breach.in_tensor ? fmt::format("changed its input {} at byte {}",
                                                    slot_name(slot), breach.offset_bytes)
                     : between        ? fmt::format("wrote between the rows of {}, at byte {}",
                                                    slot_name(slot), breach.offset_bytes)
                                      : sentence_of("wrote", slot, breach.offset_bytes);
    return fault;
}

}  // namespace attest::worker
