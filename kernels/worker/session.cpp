#include "kernels/worker/session.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <vector>

#include "kernels/worker/call_layout.hpp"
#include "kernels/worker/wire_problem.hpp"
#include "kernels/worker/worker_link.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

/// Laws go back and forth between a problem and its variations: that many answers are kept.
constexpr std::size_t answers_max = 16;
/// How often a kernel may change its mind about the workspace it wants for one call.
constexpr int workspace_attempts = 3;

struct KnownAnswer {
    SupportQuestion question;
    WorkerLink::SupportAnswer answer;
};

bool same(const SupportQuestion& a, const SupportQuestion& b) {
    return a.features == b.features && std::memcmp(&a.problem, &b.problem, sizeof a.problem) == 0;
}

}  // namespace

std::string_view name(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::ok:
            return "ok";
        case Outcome::refused:
            return "refused";
        case Outcome::error:
            return "error";
        case Outcome::crash:
            return "crash";
        case Outcome::hang:
            return "hang";
        case Outcome::memory:
            return "memory";
    }
    return "";
}

std::string_view name(Fault::Kind kind) noexcept {
    constexpr std::array<std::string_view, 10> names = {
        "read_outside", "write_outside",  "write_input", "signal",       "abort_called",
        "exit_called",  "stack_overflow", "exception",   "context_lost", "outside_all"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Fault::Access access) noexcept {
    constexpr std::array<std::string_view, 3> names = {"none", "read", "write"};
    return names[static_cast<std::size_t>(access)];
}

struct Session::State {
    kernel::KernelSpec spec;
    SessionOptions options;
    Arena arena;
    std::unique_ptr<WorkerLink> link;
    kernel::Manifest manifest;
    bool aligned = false;
    std::uint64_t call_number = 0;
    std::vector<KnownAnswer> answers;
    std::size_t next_answer = 0;

    void start() {
        answers.clear();
        next_answer = 0;
        link = std::make_unique<WorkerLink>(spec, options, arena);
    }

    void keep(const SupportQuestion& question, const WorkerLink::SupportAnswer& answer) {
        if (answers.size() < answers_max) {
            answers.push_back({question, answer});
        } else {
            answers[next_answer++ % answers_max] = {question, answer};
        }
    }

    WorkerLink::SupportAnswer* find(const SupportQuestion& question) {
        for (KnownAnswer& known : answers) {
            if (same(known.question, question)) return &known.answer;
        }
        return nullptr;
    }

    /// The manifest's answer, or else the kernel's, asked or remembered. A death leaves no link
    /// behind.
    std::variant<WorkerLink::SupportAnswer, WorkerDeath> ask(const Problem& problem,
                                                             const SupportQuestion& question) {
        if (auto no = kernel::refusal(manifest, problem))
            return WorkerLink::SupportAnswer{.yes = false, .reason = std::move(*no)};
        if (link == nullptr) start();
        if (const auto* known = find(question)) return *known;
        auto answer = link->ask_support(question, options);
        if (std::holds_alternative<WorkerDeath>(answer)) {
            link.reset();
        } else {
            keep(question, std::get<WorkerLink::SupportAnswer>(answer));
        }
        return answer;
    }

    std::variant<WorkerLink::CallAnswer, WorkerDeath> send(const attest_problem& problem,
                                                           std::uint64_t workspace_bytes,
                                                           double& seconds) {
        protocol::CallFrame frame;
        frame.problem = problem;
        frame.problem.call_number = static_cast<std::uint32_t>(call_number);
        frame.memory_bytes = arena.bytes();
        frame.workspace_bytes = workspace_bytes;
        for (const TensorSlot& slot : arena.slots())
            frame.tensors[frame.tensor_count++] = to_wire(slot);
        const auto start = WorkerProcess::Clock::now();
        auto answer = link->call(frame, options);
        seconds = std::chrono::duration<double>(WorkerProcess::Clock::now() - start).count();
        return answer;
    }

    CallResult died(const WorkerDeath& death, std::span<const TensorSlot> slots) {
        link.reset();
        CallResult result;
        Finding finding = examine(death, slots, options);
        result.outcome = finding.outcome;
        result.reason = finding.fault.sentence;
        result.fault = std::move(finding.fault);
        return result;
    }

    void collect_outputs(std::uint64_t returned, CallResult& result) {
        for (const TensorSlot& slot : arena.slots()) {
            if (slot.access != protocol::Access::write || slot.is_workspace()) continue;
            if ((returned >> slot.role & 1) == 0) continue;
            std::int64_t poison_at = -1;
            const auto role = static_cast<Role>(slot.role);
            result.outputs.put(role, arena.collect(slot, poison_at));
            if (poison_at >= 0 && !result.outputs_unwritten) {
                result.outputs_unwritten = true;
                result.unwritten_role = role;
                result.unwritten_index = poison_at;
            }
        }
    }

    CallResult judge(const WorkerLink::CallAnswer& answer) {
        CallResult result;
        result.reason = answer.text;
        switch (answer.reply.status) {
            case protocol::Status::done:
                result.reason.clear();
                collect_outputs(answer.reply.outputs, result);
                break;
            case protocol::Status::exception:
                result.outcome = Outcome::crash;
                result.fault.emplace();
                result.fault->kind = Fault::Kind::exception;
                result.fault->sentence =
                    "let an exception cross the border: " + printable(answer.text, 300);
                return result;
            case protocol::Status::lost:
                result.outcome = Outcome::crash;
                result.fault.emplace();
                result.fault->kind = Fault::Kind::context_lost;
                result.fault->sentence = "lost its GPU context: " + printable(answer.text, 300);
                link.reset();
                return result;
            case protocol::Status::memory:
                result.outcome = Outcome::memory;
                result.fault.emplace();
                result.fault->kind = Fault::Kind::exception;
                result.fault->sentence = fmt::format("ran out of memory: {} MiB are allowed",
                                                     options.memory_bytes >> 20);
                return result;
            case protocol::Status::absent:
                result.outcome = Outcome::refused;
                if (answer.text.empty()) result.reason = "the kernel has no such operation";
                break;
            case protocol::Status::workspace:
                result.outcome = Outcome::error;
                result.reason = "workspace() gives another size each time it is asked";
                break;
            case protocol::Status::error:
            default:
                result.outcome = Outcome::error;
                break;
        }
        if (const std::optional<Breach> breach = arena.find_breach()) {
            result.fault = describe_breach(*breach, arena.slots());
        }
        return result;
    }
};

Session::Session(const kernel::KernelSpec& spec, const SessionOptions& options)
    : state_(std::make_unique<State>()) {
    state_->spec = spec;
    state_->options = options;
    state_->start();
    const std::string source =
        spec.interface == kernel::KernelInterface::python ? "python" : spec.text;
    state_->manifest = kernel::parse_manifest(state_->link->manifest_text(), source);
    set_timeout(options.timeout);
    // A kernel that says nothing of layouts may count on the alignment that every allocator gives.
    state_->aligned = !state_->manifest.features.has(Feature::layout);
}

Session::~Session() = default;

const kernel::Manifest& Session::manifest() const noexcept {
    return state_->manifest;
}

bool Session::supports(const Problem& problem, std::string* reason) {
    const auto answer = state_->ask(problem, {to_abi(problem), features_of(problem)});
    if (const auto* death = std::get_if<WorkerDeath>(&answer)) {
        const Finding finding = examine(*death, {}, state_->options);
        throw BadInput(fmt::format("{}: its process was lost when it was asked what it supports",
                                   state_->spec.text),
                       {finding.fault.sentence, print(problem)});
    }
    const auto& said = std::get<WorkerLink::SupportAnswer>(answer);
    if (reason != nullptr) *reason = said.yes ? "" : said.reason;
    return said.yes;
}

CallResult Session::forward(const Problem& problem, const TensorSet& inputs) {
    State& s = *state_;
    const SupportQuestion question{to_abi(problem), features_of(problem)};
    const auto supported = s.ask(problem, question);
    if (const auto* death = std::get_if<WorkerDeath>(&supported)) return s.died(*death, {});
    const auto& said = std::get<WorkerLink::SupportAnswer>(supported);
    if (!said.yes) {
        CallResult result;
        result.outcome = Outcome::refused;
        result.reason = said.reason;
        return result;
    }
    const Variant variant = variant_of(s.call_number, s.options.poison_seed, s.aligned);
    std::uint64_t workspace_bytes = said.workspace_bytes;
    CallResult result;
    for (int attempt = 0; attempt < workspace_attempts; ++attempt) {
        lay_out_call(s.arena, problem, inputs, workspace_bytes, variant);
        double seconds = 0;
        auto answer = s.send(question.problem, workspace_bytes, seconds);
        if (const auto* death = std::get_if<WorkerDeath>(&answer)) {
            result = s.died(*death, s.arena.slots());
            result.seconds = seconds;
            break;
        }
        const auto& replied = std::get<WorkerLink::CallAnswer>(answer);
        result = s.judge(replied);
        result.seconds = seconds;
        if (replied.reply.status != protocol::Status::workspace) break;
        workspace_bytes = replied.reply.workspace_bytes;
        if (auto* known = s.find(question)) known->workspace_bytes = workspace_bytes;
    }
    ++s.call_number;
    s.arena.release_large();
    return result;
}

void Session::begin_case(std::uint64_t first) noexcept {
    state_->call_number = first;
}

void Session::set_timeout(std::chrono::milliseconds timeout) noexcept {
    // Thousands of threads by turns: a call that is slow on a loaded machine is not hung, and what
    // really waits for ever the runtime itself reports as a deadlock.
    constexpr int simulated_patience = 6;
    state_->options.timeout = timeout * (state_->manifest.simulated ? simulated_patience : 1);
}

void Session::restart() {
    state_->link.reset();
    state_->start();
    begin_case();
}

int Session::process_id() const noexcept {
    return state_->link != nullptr ? state_->link->process_id() : 0;
}

}  // namespace attest::worker
