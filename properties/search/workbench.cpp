#include "properties/search/workbench.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "properties/search/clock.hpp"
#include "properties/search/confirm.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/limited_kernel.hpp"

namespace attest::search {

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Cases tried under one number before it is given up: where six of seven leave the law nothing to
// compare, as for kernels of declared coarse steps, one number in 140 is lost, of 10 in 100 that
// may be. Draws that are no case of the law cost next to nothing.
constexpr std::int64_t attempts_max = 32, draws_max = 64;
// Distinct refusals kept a case; a kernel may put the problem into its reason.
constexpr std::size_t refusals_kept = 16;
// Of a second shrink.
constexpr std::int64_t few_evaluations = 150;

}  // namespace

void FailureKeeper::found(const std::string& law, const Case& tried) {
    if (directory_.empty()) return;
    const std::lock_guard lock(mutex_);
    if (!first_.emplace(law, tried).second) return;
    store_failure(directory_, {failure_id(tried, law), law, kernel_, tried, false, {}});
}

void FailureKeeper::shrunk(const Counterexample& c) {
    if (directory_.empty()) return;
    const std::lock_guard lock(mutex_);
    const Confirmed& confirmed = c.confirmed;
    const bool always =
        confirmed.how == Confirmation::alone && confirmed.alone.failed == confirmed.alone.of;
    store_failure(directory_, {c.id, c.law, kernel_, c.smallest, always, confirmed.before});
    forget(c.law, &c.smallest);
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
      keeper_(options.store, options.kernel.name()) {}

/// A call that did not return is no hang yet: unless the kernel is known to hang, the case is tried
/// once more, in a fresh process that has many times as long. What that comes to counts.
Judged Workbench::judge_slot(Kernel& kernel, const law::Property& property, const Case& tried,
                             std::int64_t number) {
    const bool known = limit_.hangs();
    Judged judged = judge_case(kernel, property, tried, number);
    if (judged.record.outcome != worker::Outcome::hang || known) return judged;
    const std::lock_guard one_at_a_time(hangs_);
    if (limit_.hangs()) return judged;  // another thread's case has just decided
    kernel.set_timeout(limit_.patient(0));
    kernel.restart();
    Judged again = judge_case(kernel, property, tried, number);
    kernel.set_timeout(std::chrono::milliseconds(0));
    again.record.past = judged.record.past;
    again.record.again = again.record.outcome == worker::Outcome::hang;
    if (again.record.again)
        limit_.saw_hang();
    else if (again.record.outcome == worker::Outcome::ok)
        limit_.was_short(again.record.seconds);
    return again;
}

SlotResult Workbench::try_slot(Kernel& kernel, const law::Property& property,
                               const CaseSlot& slot) {
    SlotResult result;
    const DrawSpace space{property, capability_, options_.profile};
    const std::int64_t draws = slot.stored ? 1 : draws_max;
    std::int64_t asked = 0;
    for (std::int64_t n = 0; n < draws && asked < attempts_max && !result.record; ++n) {
        if (options_.interrupted && *options_.interrupted > 1) break;
        const std::optional<Case> tried =
            slot.stored          ? slot.stored
            : capability_.shapes ? capability_.shapes->draw(space, options_.seed, slot.number, n)
                                 : draw(space, options_.seed, slot.number, n);
        if (!tried) {
            ++result.discarded;
            if (capability_.shapes) break;  // there is no other case of this law among them
            continue;
        }
        ++asked;
        Judged judged = judge_slot(kernel, property, *tried, slot.number);
        judged.record.verdict =
            law::graded(std::move(judged.record.verdict), options_.profile.fails);
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
    c.shrink_seconds = seconds_since(begin);
    c.confirmed = {Confirmation::alone, {1, 1}, {}, {}};  // try_case() starts a fresh process
    c.steps.push_back({1, "known", "the smallest case of an earlier law that ended alike",
                       print(record.tried), score_count(record.tried.problem)});
    return c;
}

/// A hang that its smallest case did not repeat: in the case as found it is one, or none.
std::optional<Counterexample> Workbench::settle_hang(Kernel& kernel, const law::Property& property,
                                                     const ShrinkTask& task) {
    CaseRecord again = task.found;
    if (!task.found.again) {
        kernel.set_timeout(limit_.patient(0));
        again = try_case(kernel, property, task.found.tried);
        kernel.set_timeout(std::chrono::milliseconds(0));
    }
    if (!failure_kind(again)) return std::nullopt;
    // It fails all the same, perhaps otherwise: out of memory, given the time.
    Counterexample c = counterexample_of(property, again);
    c.found = task.found;
    c.confirmed = {Confirmation::alone, {1, 1}, {}, {}};
    return c;
}

/// A failure whose smallest case holds by itself: what it takes to see it again.
Counterexample Workbench::settle(Kernel& kernel, const law::Property& property,
                                 const ShrinkTask& task, Counterexample smallest) {
    const FailureKind kind = *failure_kind(task.found);
    if (races_) {
        const Replays alone =
            replay_alone(kernel, property, smallest.smallest, kind, {.until_both = true});
        if (alone.failed > 0) {
            smallest.confirmed = {Confirmation::alone, alone, {}, {}};
            return smallest;
        }
    }
    if (remembers_) {
        Counterexample found = counterexample_of(property, task.found);
        const Replays alone =
            replay_alone(kernel, property, found.smallest, kind, {.most = replays_least});
        if (alone.failed == 0) {
            found.confirmed = after_its_past(kernel, property, task.found, alone);
            if (found.confirmed.how == Confirmation::sequence) return found;
        }
    }
    Counterexample settled = settle_anew(kernel, property, task, std::move(smallest));
    if (settled.confirmed.how == Confirmation::schedule) races_ = true;
    if (settled.confirmed.how == Confirmation::sequence) remembers_ = true;
    return settled;
}

/// The same of a kernel of which nothing is known.
Counterexample Workbench::settle_anew(Kernel& kernel, const law::Property& property,
                                      const ShrinkTask& task, Counterexample smallest) {
    const FailureKind kind = *failure_kind(task.found);
    Replays alone = replay_alone(kernel, property, smallest.smallest, kind);
    if (alone.failed == 0 && smallest.smallest != task.found.tried) {
        smallest = counterexample_of(property, task.found);
        alone = replay_alone(kernel, property, task.found.tried, kind);
        if (alone.failed == alone.of) {  // it was led astray by what ran before
            const ShrinkLimits limits{few_evaluations, after(task.seconds), {}, true};
            Counterexample clean =
                Shrinker(kernel, property, capability_, limits, {}).shrink(task.found);
            if (is_proven(clean.confirmed.how)) return clean;
        }
    }
    if (alone.failed == 0)
        if (const auto other = first_failing(kernel, property, task.others, kind)) {
            smallest = counterexample_of(property, *other);
            smallest.found = task.found;
            alone = replay_alone(kernel, property, other->tried, kind);
            smallest.confirmed = {Confirmation::elsewhere, alone, {}, {}};
            if (alone.failed == alone.of) smallest.confirmed.how = Confirmation::alone;
            if (alone.failed == 0) smallest.confirmed.alone = {1, alone.of + 1};
            return smallest;
        }
    smallest.confirmed = alone.failed > 0
                             ? by_itself(kernel, property, smallest.smallest, kind, alone)
                             : after_its_past(kernel, property, task.found, alone);
    if (smallest.confirmed.how == Confirmation::flaky)
        if (auto otherwise = fails_otherwise(kernel, property, task)) return *otherwise;
    return smallest;
}

/// The case as found, by itself: it may fail in another way, as where a late thread writes outside
/// what it was given, once, and the answer is wrong each time.
std::optional<Counterexample> Workbench::fails_otherwise(Kernel& kernel,
                                                         const law::Property& property,
                                                         const ShrinkTask& task) {
    CaseRecord again = try_case(kernel, property, task.found.tried);
    if (!failure_kind(again)) return std::nullopt;
    again.number = task.found.number;
    const ShrinkLimits limits{few_evaluations, after(task.seconds), {}, true};
    Counterexample smallest = Shrinker(kernel, property, capability_, limits, {}).shrink(again);
    if (!is_proven(smallest.confirmed.how)) return std::nullopt;
    return smallest;
}

Confirmed Workbench::once_more(std::unique_ptr<Kernel>& kernel, const KernelFactory& factory,
                               const law::Property& property, const CaseRecord& found) {
    const Confirmed alone{Confirmation::alone, {1, 1}, {}, {}};
    if (found.again) return alone;
    try {
        if (!kernel) kernel = std::make_unique<LimitedKernel>(factory(), limit_);
        const CaseRecord again = try_case(*kernel, property, found.tried);
        return failure_kind(again) == failure_kind(found) ? alone : Confirmed{};
    } catch (const std::exception&) {
        return {};  // the kernel cannot be asked any more
    }
}

std::optional<Counterexample> Workbench::shrink(Kernel& kernel, const law::Property& property,
                                                const ShrinkTask& task,
                                                const Shrinker::Tell& tell) {
    std::optional<Counterexample> smallest = likely(kernel, property, task);
    if (!smallest) {
        ShrinkLimits limits;
        limits.evaluations = task.evaluations;
        limits.deadline = after(task.seconds);
        if (task.found.outcome == worker::Outcome::hang)
            limits.confirm_timeout = limit_.to_confirm();
        Shrinker shrinker(kernel, property, capability_, limits, tell);
        smallest = shrinker.shrink(task.found);
    }
    if (!is_proven(smallest->confirmed.how)) {
        const std::int64_t evaluations = smallest->evaluations;
        smallest = task.found.outcome == worker::Outcome::hang
                       ? settle_hang(kernel, property, task)
                       : settle(kernel, property, task, std::move(*smallest));
        if (!smallest) {
            keeper_.withdrawn(property.id);
            return std::nullopt;
        }
        smallest->evaluations = std::max(smallest->evaluations, evaluations);
    }
    if (task.found.again) {  // it was given the longest time: that is what is told
        smallest->verdict = task.found.verdict;
        smallest->fault = task.found.fault;
    }
    keeper_.shrunk(*smallest);
    return smallest;
}

}  // namespace attest::search
