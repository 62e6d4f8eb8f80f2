#include "kernels/worker/worker_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>

#include "kernels/worker/load_crash.hpp"
#include "kernels/worker/protocol_process.hpp"
#include "kernels/worker/wire_problem.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

using Clock = WorkerProcess::Clock;

constexpr std::chrono::milliseconds last_words_patience{250};
constexpr std::string_view default_interpreter = "python3";
constexpr std::string_view system_interpreter = "/usr/bin/python3";

/// The interpreter that stands for the default one, once it is known which has numpy.
std::mutex interpreter_mutex;
std::string known_interpreter;

std::vector<std::string> arguments_of(const kernel::KernelSpec& spec,
                                      const std::string& interpreter) {
    switch (spec.interface) {
        case kernel::KernelInterface::builtin:
            return {"builtin", spec.id};
        case kernel::KernelInterface::c_abi:
            return {"library", spec.path, fmt::format("{}", spec.index)};
        case kernel::KernelInterface::python:
            return {"python", interpreter, kernel::worker_python_directory(), spec.module,
                    spec.function};
        case kernel::KernelInterface::executable:
            break;
    }
    std::vector<std::string> arguments = {"program", spec.path};
    arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
    return arguments;
}

template <typename Frame>
Frame read_frame(std::span<const std::byte> bytes) {
    Frame frame;
    std::memcpy(static_cast<void*>(&frame), bytes.data(), std::min(bytes.size(), sizeof frame));
    return frame;
}

template <typename Frame>
std::vector<std::byte> frame_with_text(const Frame& fixed, std::string_view text) {
    const auto head = std::as_bytes(std::span(&fixed, 1)), tail = std::as_bytes(std::span(text));
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return bytes;
}

/// Fills in what the header of a whole frame says of it.
void number(std::span<std::byte> frame, std::uint32_t sequence) {
    auto header = read_frame<protocol::FrameHeader>(frame);
    header.sequence = sequence;
    header.size = static_cast<std::uint32_t>(frame.size());
    std::memcpy(frame.data(), &header, sizeof header);
}

std::string names_of(FeatureSet features) {
    std::string names;
    for (int n = 0; n < feature_count; ++n) {
        const auto feature = static_cast<Feature>(n);
        if (features.has(feature)) names.append(names.empty() ? "" : " ").append(name(feature));
    }
    return names;
}

/// The text after a frame's fixed part, as far as it was really sent.
std::string read_text(std::span<const std::byte> bytes, std::size_t fixed, std::uint32_t length) {
    if (bytes.size() <= fixed) return {};
    const std::size_t sent = std::min<std::size_t>(length, bytes.size() - fixed);
    std::string text(sent, '\0');
    std::memcpy(text.data(), bytes.data() + fixed, sent);
    return text;
}

/// The interpreter lacks what the Python worker itself needs.
struct LacksNumpy : BadInput {
    explicit LacksNumpy(const BadInput& told) : BadInput(told) {}
};

/// A load_error's text is the sentence and, on lines of their own, its details.
BadInput load_failure(const std::string& source, const std::string& text,
                      const ConfinementOptions& confinement) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(printable(text.substr(at, end - at), 300));  // a kernel may have written it
        at = end + 1;
    }
    std::vector<std::string> details(lines.begin() + 1, lines.end());
    if (details.size() > 4) details.resize(4);
    std::ranges::move(withheld_variables(text, confinement), std::back_inserter(details));
    return BadInput(fmt::format("{}: {}", source, lines.front()), std::move(details));
}

}  // namespace

WorkerLink::WorkerLink(const kernel::KernelSpec& spec, const SessionOptions& options,
                       const Arena& arena) {
    WorkerDeath first;
    bool same = true;
    for (int attempt = 0; attempt < load_attempts; ++attempt) {
        WorkerDeath death;
        std::string interpreter = spec.interpreter;
        const bool by_default = spec.interface == kernel::KernelInterface::python &&
                                spec.interpreter == default_interpreter;
        if (by_default) {
            const std::lock_guard lock(interpreter_mutex);
            if (!known_interpreter.empty()) interpreter = known_interpreter;
        }
        bool alive = false;
        try {
            alive = load_once(spec, interpreter, arena, options, death);
        } catch (const LacksNumpy& missing) {
            if (!by_default || interpreter != default_interpreter) throw;
            interpreter = system_interpreter;
            try {
                alive = load_once(spec, interpreter, arena, options, death);
            } catch (const LacksNumpy&) {
                throw missing;
            }
        }
        if (alive) {
            if (by_default) {
                const std::lock_guard lock(interpreter_mutex);
                known_interpreter = interpreter;
            }
            memory_at_start_ = process_->private_memory();
            return;
        }
        if (death.killed_by_host) throw load_crash(spec, death, true);
        if (attempt == 0) first = death;
        same = same && same_end(first, death);
    }
    throw load_crash(spec, first, same);
}

bool WorkerLink::load_once(const kernel::KernelSpec& spec, const std::string& interpreter,
                           const Arena& arena, const SessionOptions& options, WorkerDeath& death) {
    process_.reset();
    process_ =
        std::make_unique<WorkerProcess>(arguments_of(spec, interpreter), arena.fd(), options);
    sequence_ = 1;
    protocol::HelloFrame hello;
    hello.memory_bytes = options.memory_bytes;
    const std::string layout = problem_layout();
    hello.text_bytes = static_cast<std::uint32_t>(layout.size());
    std::vector<std::byte> frame = frame_with_text(hello, layout);
    number(frame, sequence_);
    process_->send(frame.data(), frame.size());
    const auto deadline = Clock::now() + std::max(load_time_min, options.timeout);
    const auto received =
        process_->receive(protocol::FrameKind::manifest, sequence_, {deadline, 0, load_silence});
    if (received.event == WorkerProcess::Event::frame) {
        const auto text = read_frame<protocol::TextFrame>(received.frame);
        if (text.header.version != protocol::version)
            throw BadInput(fmt::format("{}: it speaks version {} of the frames, attest version {}",
                                       source_of(spec), text.header.version, protocol::version),
                           {"kernels/worker/PROTOCOL.md says what they are"});
        const std::string content = read_text(received.frame, sizeof text, text.text_bytes);
        if (text.header.kind == protocol::FrameKind::load_error) {
            const BadInput failure = load_failure(source_of(spec), content, options.confinement);
            if (text.missing == protocol::Missing::numpy) throw LacksNumpy(failure);
            throw failure;
        }
        if (text.header.kind == protocol::FrameKind::manifest) {
            manifest_text_ = content;
            return true;
        }
    }
    death = read_death(received);
    return false;
}

WorkerDeath WorkerLink::read_death(WorkerProcess::Received received) {
    WorkerDeath death;
    death.event = received.event;
    death.killed_by_host = received.event == WorkerProcess::Event::timeout ||
                           received.event == WorkerProcess::Event::silence ||
                           received.event == WorkerProcess::Event::memory ||
                           received.event == WorkerProcess::Event::unasked;
    if (received.event == WorkerProcess::Event::frame) {
        death.last_words = read_frame<protocol::FaultFrame>(received.frame);
        const auto place = process_->receive(protocol::FrameKind::location, 0,
                                             {Clock::now() + last_words_patience});
        if (place.event == WorkerProcess::Event::frame) {
            const auto location = read_frame<protocol::LocationFrame>(place.frame);
            death.location =
                printable(read_text(place.frame, sizeof location, location.text_bytes), 200);
        }
    }
    death.status =
        process_->end(death.killed_by_host ? std::chrono::milliseconds(0) : last_words_patience);
    // Anybody in the process may send last words; only what dies so has said them.
    if (death.last_words && static_cast<int>(death.last_words->signal) != death.status.signal) {
        death.last_words.reset();
        death.location.clear();
    }
    death.printed = process_->take_printed();
    return death;
}

std::variant<std::span<const std::byte>, WorkerDeath> WorkerLink::exchange(
    std::span<std::byte> question, protocol::FrameKind answer, const SessionOptions& options) {
    number(question, ++sequence_);
    const std::uint64_t memory =
        options.memory_bytes == 0 ? 0 : options.memory_bytes + memory_at_start_;
    // Short calls are over before anybody looks at their memory; what they pile up is seen here.
    constexpr std::uint32_t look_every = 16;
    if (memory != 0 && sequence_ % look_every == 0 && process_->private_memory(memory) > memory)
        return read_death({WorkerProcess::Event::memory, {}});
    const auto deadline = Clock::now() + options.timeout;
    const bool ran = process_->runs();
    process_->take_printed();                          // before the question
    process_->send(question.data(), question.size());  // where it fails, receive() sees it too
    const auto received = process_->receive(answer, sequence_, {deadline, memory, options.silence});
    if (received.event == WorkerProcess::Event::frame &&
        read_frame<protocol::FrameHeader>(received.frame).kind == answer) {
        return received.frame;
    }
    WorkerDeath death = read_death(received);
    death.between_calls = !ran;
    return death;
}

std::variant<WorkerLink::SupportAnswer, WorkerDeath> WorkerLink::ask_support(
    const SupportQuestion& question, const SessionOptions& options) {
    protocol::SupportsFrame fixed;
    fixed.header.kind = protocol::FrameKind::supports;
    fixed.problem = question.problem;
    const std::string features = names_of(question.features);
    fixed.text_bytes = static_cast<std::uint32_t>(features.size());
    std::vector<std::byte> frame = frame_with_text(fixed, features);
    auto exchanged = exchange(frame, protocol::FrameKind::answer, options);
    if (auto* death = std::get_if<WorkerDeath>(&exchanged)) return std::move(*death);
    const auto received = std::get<std::span<const std::byte>>(exchanged);
    const auto answer = read_frame<protocol::AnswerFrame>(received);
    return SupportAnswer{answer.yes != 0, read_text(received, sizeof answer, answer.text_bytes),
                         answer.workspace_bytes};
}

std::map<std::string, std::string> WorkerLink::sources_now(SessionOptions options) {
    options.timeout = std::max(options.timeout, load_time_min);
    options.silence = load_silence;
    protocol::FrameHeader question;
    question.kind = protocol::FrameKind::again;
    std::vector<std::byte> frame = frame_with_text(question, "");
    const auto exchanged = exchange(frame, protocol::FrameKind::manifest, options);
    if (std::holds_alternative<WorkerDeath>(exchanged)) return {};
    const auto received = std::get<std::span<const std::byte>>(exchanged);
    const auto text = read_frame<protocol::TextFrame>(received);
    try {
        const std::string manifest = read_text(received, sizeof text, text.text_bytes);
        return kernel::parse_manifest(manifest, "python").sources;
    } catch (const BadInput&) {
        return {};
    }
}

std::variant<WorkerLink::CallAnswer, WorkerDeath> WorkerLink::call(protocol::CallFrame& frame,
                                                                   const SessionOptions& options) {
    frame.header.kind = protocol::FrameKind::call;
    const std::size_t bytes =
        offsetof(protocol::CallFrame, tensors) + frame.tensor_count * sizeof(protocol::WireTensor);
    const auto sent = std::as_writable_bytes(std::span(&frame, 1)).first(bytes);
    auto exchanged = exchange(sent, protocol::FrameKind::reply, options);
    if (auto* death = std::get_if<WorkerDeath>(&exchanged)) return std::move(*death);
    const auto received = std::get<std::span<const std::byte>>(exchanged);
    CallAnswer answer;
    answer.reply = read_frame<protocol::ReplyFrame>(received);
    answer.text = read_text(received, sizeof answer.reply, answer.reply.text_bytes);
    return answer;
}

}  // namespace attest::worker
