#include "properties/search/workbench.hpp"

#include <filesystem>
#include <utility>

#include "properties/search/draw.hpp"

namespace attest::search {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

Clock::time_point after(double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Cases tried under one number before it is given up: with half of all refused, one number in 65536
// is lost. Draws that are no case of the law cost next to nothing.
constexpr std::int64_t attempts_max = 16, draws_max = 64;
// Distinct refusals kept a case; a kernel may put the problem into its reason.
constexpr std::size_t refusals_kept = 16;

std::string kernel_name(const kernel::KernelSpec& spec) {
    return spec.id.empty() ? spec.text : spec.id;
}

}  // namespace

void FailureKeeper::found(const std::string& law, const Case& tried) {
    if (directory_.empty()) return;
    const std::lock_guard lock(mutex_);
    if (!first_.emplace(law, tried).second) return;
    store_failure(directory_, {failure_id(tried, law), law, kernel_, tried, false});
}

void FailureKeeper::shrunk(const std::string& law, const Case& smallest) {
    if (directory_.empty()) return;
    const std::lock_guard lock(mutex_);
    store_failure(directory_, {failure_id(smallest, law), law, kernel_, smallest, true});
    forget(law, &smallest);
}

void FailureKeeper::withdrawn(const std::string& law) {
    const std::lock_guard lock(mutex_);
    forget(law, nullptr);
}

void FailureKeeper::forget(const std::string& law, const Case* but) {
    const auto first = first_.find(law);
    if (first == first_.end() || (but != nullptr && first->second == *but)) return;
    std::error_code ignored;  // a file left over is a second example, no harm
    const auto file = failure_id(first->second, law) + ".json";
    std::filesystem::remove(std::filesystem::path(directory_) / file, ignored);
}

Workbench::Workbench(const CampaignOptions& options, const Capability& capability, TimeLimit& limit)
    : options_(options),
      capability_(capability),
      limit_(limit),
      keeper_(options.store, kernel_name(options.kernel)) {}

SlotResult Workbench::try_slot(Kernel& kernel, const law::Property& property,
                               const CaseSlot& slot) {
    SlotResult result;
    const DrawSpace space{property, capability_, options_.profile};
    const std::int64_t draws = slot.stored ? 1 : draws_max;
    std::int64_t asked = 0;
    for (std::int64_t n = 0; n < draws && asked < attempts_max && !result.record; ++n) {
        if (options_.interrupted && *options_.interrupted > 1) break;
        const std::optional<Case> tried =
            slot.stored ? slot.stored : draw(space, options_.seed, slot.number, n);
        if (!tried) {
            ++result.discarded;
            continue;
        }
        ++asked;
        Judged judged = judge_case(kernel, property, *tried, slot.number);
        judged.record.verdict =
            law::graded(std::move(judged.record.verdict), options_.profile.fails);
        if (judged.longest_call > 0) limit_.saw_good(judged.longest_call);
        if (judged.record.outcome == worker::Outcome::hang) limit_.saw_hang();
        if (slot.stored && (judged.refused || judged.vacuous)) {
            result.inapplicable = true;  // no draw: it says nothing of the law
        } else if (judged.refused) {
            ++result.refused;
            const bool room = result.refusals.size() < refusals_kept;
            if (room) ++result.refusals[judged.record.verdict.reason.text];
        } else if (judged.vacuous) {
            ++result.discarded;
            result.nothing = judged.record.verdict.reason;
            result.inapplicable = judged.record.verdict.decision == law::Decision::not_applicable;
        } else {
            result.record = std::move(judged.record);
        }
    }
    const bool is_new = result.record && failure_kind(*result.record) && !slot.stored;
    if (is_new) keeper_.found(property.id, result.record->tried);
    return result;
}

/// The smallest case of an earlier law that ended alike, where this law meets it too.
std::optional<Counterexample> Workbench::likely(Kernel& kernel, const law::Property& property,
                                                const ShrinkTask& task) {
    if (!task.likely || !in_space(property, capability_, task.likely->problem) ||
        !in_space(property, task.likely->values))
        return std::nullopt;
    const auto begin = Clock::now();
    const CaseRecord record = try_case(kernel, property, *task.likely);
    if (failure_kind(record) != failure_kind(task.found)) return std::nullopt;
    Counterexample c = counterexample_of(property, record);
    c.found = task.found;
    c.evaluations = c.accepted = 1;
    c.shrink_seconds = since(begin);
    c.confirmed = true;  // try_case() starts a fresh process
    c.steps.push_back({1, "known", "the smallest case of an earlier law that ended alike",
                       print(record.tried), score_count(record.tried.problem)});
    return c;
}

std::optional<Counterexample> Workbench::shrink(Kernel& kernel, const law::Property& property,
                                                const ShrinkTask& task,
                                                const Shrinker::Tell& tell) {
    std::optional<Counterexample> smallest = likely(kernel, property, task);
    if (!smallest) {
        ShrinkLimits limits;
        limits.evaluations = task.evaluations;
        limits.deadline = after(task.seconds);
        limits.confirm_timeout = limit_.to_confirm();
        Shrinker shrinker(kernel, property, capability_, limits, tell);
        smallest = shrinker.shrink(task.found);
    }
    if (task.found.outcome == worker::Outcome::hang && !smallest->confirmed) {
        limit_.was_wrong();
        const CaseRecord again = try_case(kernel, property, task.found.tried);
        if (!failure_kind(again)) {
            keeper_.withdrawn(property.id);
            return std::nullopt;
        }
        // It fails all the same, perhaps otherwise: out of memory, given the time.
        const std::int64_t evaluations = smallest->evaluations;
        smallest = counterexample_of(property, again);
        smallest->found = task.found;
        smallest->evaluations = evaluations;
        smallest->confirmed = true;
    }
    keeper_.shrunk(property.id, smallest->smallest);
    return smallest;
}

}  // namespace attest::search
