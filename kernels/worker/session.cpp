#include "kernels/worker/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/worker/call_layout.hpp"
#include "kernels/worker/crash_site.hpp"
#include "kernels/worker/known_answers.hpp"
#include "kernels/worker/load_crash.hpp"
#include "kernels/worker/patterns.hpp"
#include "kernels/worker/printed.hpp"
#include "kernels/worker/told.hpp"
#include "kernels/worker/wire_problem.hpp"
#include "kernels/worker/worker_link.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

/// How often a kernel may change its mind about the workspace it wants for one call.
constexpr int workspace_attempts = 3;
/// What came from outside (out of memory, a device that is taken) may be gone the next time.
constexpr int attempts_against_chance = 3;
constexpr std::chrono::milliseconds pause_before_reload{100};

/// What a kernel may leave out is the log-sum-exp and the mask of dropped weights, whatever it
/// says.
constexpr std::uint64_t promised = ~(std::uint64_t{1} << static_cast<int>(Role::lse) |
                                     std::uint64_t{1} << static_cast<int>(Role::dropout_keep));

constexpr std::string_view in_supports = " inside supports() or workspace()";

}  // namespace

struct Session::State {
    kernel::KernelSpec spec;
    SessionOptions options;
    Arena arena;
    std::unique_ptr<WorkerLink> link;
    kernel::Manifest manifest;
    Barriers barriers;
    bool aligned = false;
    std::uint64_t call_number = 0;
    KnownAnswers answers;
    CrashSites sites;

    void start() {
        answers.clear();
        link = std::make_unique<WorkerLink>(spec, options, arena);
        barriers = link->barriers();
    }

    /// A fresh process of a kernel that was loaded before.
    void start_again() {
        for (int attempt = 1;; ++attempt) {
            try {
                return start();
            } catch (const BadInput& error) {
                if (attempt == attempts_against_chance) throw kernel_gone(error);
            } catch (const LoadCrash& error) {
                if (attempt == attempts_against_chance) throw kernel_gone(error);
            }
            std::this_thread::sleep_for(attempt * pause_before_reload);
        }
    }

    /// The manifest's answer, or else the kernel's, asked or remembered. A death leaves no link
    /// behind.
    std::variant<WorkerLink::SupportAnswer, WorkerDeath> ask(const Problem& problem,
                                                             const SupportQuestion& question) {
        if (auto no = kernel::refusal(manifest, problem))
            return WorkerLink::SupportAnswer{.yes = false, .reason = std::move(*no)};
        if (link == nullptr) start_again();
        if (const auto* known = answers.find(question)) return *known;
        auto answer = link->ask_support(question, options);
        if (std::holds_alternative<WorkerDeath>(answer)) {
            link.reset();
        } else {
            answers.keep(question, std::get<WorkerLink::SupportAnswer>(answer));
        }
        return answer;
    }

    std::variant<WorkerLink::CallAnswer, WorkerDeath> send(const attest_problem& problem,
                                                           std::uint64_t workspace_bytes,
                                                           const Asked& asked, double& seconds) {
        protocol::CallFrame frame;
        frame.operation = asked.operation;
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

    CallResult died(WorkerDeath death, std::span<const TensorSlot> slots,
                    std::string_view where = "") {
        link.reset();
        if (!death.location.empty())
            death.location = sites.told(death.location, spec.path, options);
        CallResult result;
        Finding finding = examine(death, slots, options);
        // The worker's last words say where; where there are none, what was asked does.
        if (!death.last_words) finding.fault.sentence += where;
        result.outcome = finding.outcome;
        result.reason = finding.fault.sentence;
        result.fault = std::move(finding.fault);
        result.printed = last_lines(death.printed);
        return result;
    }

    CallResult call(const Problem& problem, const TensorSet& inputs, const Asked& asked) {
        const SupportQuestion question{to_abi(problem), features_of(problem)};
        const auto supported = ask(problem, question);
        if (const auto* death = std::get_if<WorkerDeath>(&supported))
            return died(*death, {}, in_supports);
        const auto& said = std::get<WorkerLink::SupportAnswer>(supported);
        CallResult result;
        if (!said.yes) {
            result.outcome = Outcome::refused;
            result.reason = said.reason;
            return result;
        }
        const Variant variant = variant_of(call_number, options.poison_seed, aligned);
        std::uint64_t workspace_bytes = said.workspace_bytes;
        for (int attempt = 0; attempt < workspace_attempts; ++attempt) {
            if (auto refused = refuse_workspace(workspace_bytes, options))
                return *std::move(refused);
            if (auto no =
                    lay_out_call(arena, manifest, problem, inputs, workspace_bytes, variant, asked))
                return *std::move(no);
            double seconds = 0;
            auto answer = send(question.problem, workspace_bytes, asked, seconds);
            const auto* replied = std::get_if<WorkerLink::CallAnswer>(&answer);
            std::string printed = replied != nullptr ? link->take_printed() : std::string();
            result = replied != nullptr ? judge(*replied)
                                        : died(std::get<WorkerDeath>(answer), arena.slots());
            result.seconds = seconds;
            if (replied != nullptr) result.printed = last_lines(printed);
            if (replied == nullptr) break;
            // A library may take the signals when it is first used; a kernel that takes them again
            // does so by itself.
            if (replied->reply.status == protocol::Status::unwatched && attempt == 0) continue;
            if (replied->reply.status != protocol::Status::workspace) break;
            workspace_bytes = replied->reply.workspace_bytes;
            if (auto* known = answers.find(question)) known->workspace_bytes = workspace_bytes;
        }
        return result;
    }

    CallResult judge(const WorkerLink::CallAnswer& answer) {
        const protocol::Status status = answer.reply.status;
        if (status == protocol::Status::lost) link.reset();
        const bool cuda = manifest.memory == kernel::Memory::cuda;
        CallResult result = told(status, answer.text, cuda);
        if (result.fault) return result;
        if (status == protocol::Status::done)
            collect_outputs(arena, answer.reply.outputs | promised, result);
        if (const std::optional<Breach> breach = arena.find_breach())
            result.fault = describe_breach(*breach, arena.slots());
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
    set_timeout(options.timeout, options.silence);
    // A kernel that says nothing of layouts may count on the alignment that every allocator gives.
    state_->aligned = !state_->manifest.features.has(Feature::layout);
}

Session::~Session() = default;

const kernel::Manifest& Session::manifest() const noexcept {
    return state_->manifest;
}

bool Session::supports(const Problem& problem, std::string* reason) {
    State& s = *state_;
    const SupportQuestion question{to_abi(problem), features_of(problem)};
    for (int attempt = 1;; ++attempt) {
        const auto answer = s.ask(problem, question);
        if (const auto* said = std::get_if<WorkerLink::SupportAnswer>(&answer)) {
            if (reason != nullptr) *reason = said->yes ? "" : said->reason;
            return said->yes;
        }
        CallResult result = s.died(std::get<WorkerDeath>(answer), {}, in_supports);
        if (killed_from_outside(result) && attempt < attempts_against_chance) continue;
        throw KernelDied(fmt::format("{}: its process was lost when it was asked what it "
                                     "supports: it {}",
                                     s.spec.text, result.fault->sentence),
                         std::move(result));
    }
}

/// Where weights are dropped every other call has a place for the mask that was used.
CallResult Session::forward(const Problem& problem, const TensorSet& inputs) {
    Asked asked;
    if (state_->call_number % 2 == 0) asked.outputs.push_back(Role::dropout_keep);
    return call(problem, inputs, asked);
}

CallResult Session::forward_beside(const Problem& problem, const TensorSet& inputs) {
    return call(problem, inputs, {protocol::Operation::forward_beside});
}

CallResult Session::backward(const Problem& problem, const TensorSet& inputs,
                             const std::vector<Role>& wanted) {
    return call(problem, inputs, {protocol::Operation::backward, wanted});
}

CallResult Session::call(const Problem& problem, const TensorSet& inputs, const Asked& asked) {
    State& s = *state_;
    CallResult result;
    for (int attempt = 1; attempt <= attempts_against_chance; ++attempt) {
        result = s.call(problem, inputs, asked);
        if (!killed_from_outside(result)) break;
    }
    ++s.call_number;
    s.arena.release_large();
    return result;
}

void Session::begin_case(std::uint64_t first) noexcept {
    state_->call_number = first;
}

void Session::set_timeout(std::chrono::milliseconds timeout,
                          std::chrono::milliseconds silence) noexcept {
    // Thousands of threads by turns: a call that is slow on a loaded machine is not hung, and what
    // really waits for ever the runtime itself reports as a deadlock.
    constexpr int simulated_patience = 6;
    const int patience = state_->manifest.simulated ? simulated_patience : 1;
    state_->options.timeout = timeout * patience;
    // Who waits for a GPU shows no sign of life.
    const bool on_device = state_->manifest.memory == kernel::Memory::cuda;
    state_->options.silence = on_device ? std::chrono::milliseconds(0) : silence * patience;
}

void Session::restart() {
    state_->link.reset();
    state_->start_again();
    begin_case();
}

void Session::use_processors(Processors which) noexcept {
    state_->options.processors = which;
}

int Session::process_id() const {
    return state_->link != nullptr ? state_->link->process_id() : 0;
}

std::map<std::string, std::string> Session::sources_now() {
    const bool asked = state_->spec.interface == kernel::KernelInterface::python && state_->link;
    return asked ? state_->link->sources_now(state_->options) : manifest().sources;
}

Barriers Session::barriers() const noexcept {
    return state_->barriers;
}

}  // namespace attest::worker
