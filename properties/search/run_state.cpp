#include "properties/search/run_state.hpp"

#include <algorithm>
#include <utility>

#include "kernels/worker/processors.hpp"
#include "properties/search/clock.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/glob.hpp"
#include "properties/search/shrinker.hpp"

namespace attest::search {

namespace {

// Where only the clock ends a law, its cases need an end all the same.
constexpr std::int64_t cases_unlimited = 1'000'000;

// Evaluations of one shrink: passes take one to three hundred, the sweeps the rest.
constexpr std::int64_t shrink_evaluations = 2'000, shrink_evaluations_again = 150;

// Wall time of one shrink where the campaign has no clock; with one, all shrinks together may add
// half of it, and at least two seconds.
constexpr double shrink_seconds = 20, shrink_seconds_least = 2, shrink_share = 0.5;
// Of one that costs a time limit, or all memory, each time; and of a statistic, which makes up to a
// thousand calls a case and says the same of every case.
constexpr double shrink_seconds_slow = 8, shrink_seconds_statistic = 4;

}  // namespace

RunState::RunState(std::span<const law::Property> laws, const CampaignOptions& options)
    : laws_(laws),
      options_(options),
      ledgers_(laws.size()),
      efforts_(laws.size()),
      results_(laws.size()) {
    for (std::size_t i = 0; i < laws.size(); ++i) results_[i].property = &laws[i];
}

std::vector<law::Property> RunState::laws_of_whole() const {
    const auto& whole = options_.match_of_whole;
    std::vector<law::Property> all;
    for (const law::Property& law : laws_)
        if (options_.profile.has(law.id) &&
            selected(whole.empty() ? options_.match : whole, law.id))
            all.push_back(law);
    return all;
}

void RunState::skip(std::size_t law, law::Verdict verdict) {
    results_[law].verdict = std::move(verdict);
    concluded_.push_back(law);
}

void RunState::prepare(const Capability& capability, const std::vector<StoredFailure>& stored) {
    begin_ = Clock::now();
    capability_ = &capability;
    const Profile& profile = options_.profile;
    const std::int64_t by_profile = cases_afforded(profile.cases_per_law, capability.takes);
    const std::int64_t limit =
        options_.cases.value_or(options_.seconds ? cases_unlimited : by_profile);
    const Numbers numbers{options_.shard_index, std::max<std::int64_t>(options_.shard_count, 1),
                          limit};
    for (std::size_t i = 0; i < laws_.size(); ++i) {
        const law::Property& property = laws_[i];
        if (!options_.profile.has(property.id)) {
            skip(i, law::not_run(
                        {law::Reason::Kind::not_in_profile, "not in profile " + profile.name}));
        } else if (!selected(options_.match, property.id)) {
            skip(i, law::not_run(law::Reason(law::Reason::Kind::not_selected)));
        } else if (auto why = why_not_applicable(property, capability)) {
            const bool asked = profile.backward && property.needs.backward &&
                               taken_by(property, capability).gradients.empty();
            if (asked) *why += "; profile " + profile.name + " asks for gradients";
            law::Reason reason{law::Reason::Kind::kernel_lacks, std::move(*why)};
            skip(i, asked ? law::inconclusive(std::move(reason))
                          : law::Verdict(law::not_applicable(std::move(reason))));
        } else if (property.needs.concurrent && worker::processors() < 2) {
            skip(i, law::inconclusive(law::Reason(law::Reason::Kind::machine_lacks)));
        } else {
            ledgers_[i].emplace(property, known_cases(property, stored),
                                numbers_of(property, numbers, options_.cases.has_value()));
        }
    }
}

/// What is tried before the draws: failures of this kernel, which may no longer declare what it
/// declared then, and fixtures.
std::vector<Case> RunState::known_cases(const law::Property& property,
                                        const std::vector<StoredFailure>& stored) const {
    std::vector<Case> known;
    if (options_.shard_index != 0) return known;
    const auto add = [&](const Case& written) {
        const Case tried = asked_of(capability_->features, written);
        if (in_space(property, *capability_, tried.problem) &&
            std::find(known.begin(), known.end(), tried) == known.end())
            known.push_back(tried);
    };
    for (const StoredFailure& failure : stored)
        if (failure.law == property.id && failure.kernel == options_.kernel.name())
            add(failure.tried);
    for (const FixedCase& fixture : options_.fixtures)
        if (fixture.law == property.id && in_space(property, fixture.tried.values))
            add(fixture.tried);
    return known;
}

double RunState::seconds_left() const {
    const double spent = seconds_since(begin_);
    return *options_.seconds - spent;
}

std::optional<CaseTask> RunState::next_case() {
    for (; current_ < ledgers_.size(); ++current_) {
        if (!ledgers_[current_]) continue;
        Ledger& ledger = *ledgers_[current_];
        if (stopped_ || lessons_.hopeless()) ledger.close();
        if (options_.seconds && !ledger.started()) {
            const auto waiting =
                std::count_if(ledgers_.begin() + static_cast<std::ptrdiff_t>(current_),
                              ledgers_.end(), [](const auto& l) { return l.has_value(); });
            const double share = seconds_left() / static_cast<double>(waiting);
            law_deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                               std::chrono::duration<double>(share));
        }
        if (options_.seconds && Clock::now() >= law_deadline_) ledger.close();
        if (auto slot = ledger.next(lessons_.known)) return CaseTask{current_, std::move(*slot)};
    }
    commit_in_order();
    return std::nullopt;
}

void RunState::put(const CaseTask& task, SlotResult result) {
    ledgers_[task.law]->put(task.slot, std::move(result));
    commit_in_order();
}

/// A law is committed when it and all before it have come back whole; so what it knows of deaths is
/// the same in every run.
void RunState::commit_in_order() {
    for (; committed_ < ledgers_.size(); ++committed_) {
        if (!ledgers_[committed_]) continue;
        if (committed_ >= current_ && !ledgers_[committed_]->finished(lessons_.known)) return;
        if (ledgers_[committed_]->returned() < ledgers_[committed_]->handed_out()) return;
        commit(committed_);
    }
}

void RunState::commit(std::size_t law) {
    if (lessons_.hopeless())
        return skip(law, law::not_run(law::Reason(law::Reason::Kind::always_dead)));
    const Ledger& ledger = *ledgers_[law];
    LawResult result = ledger.collect(lessons_.known);
    const bool interrupted = stopped_ && ledger.cut(lessons_.known);
    result.promised = promised_sizes({laws_[law], *capability_, options_.profile});
    efforts_[law] = {.slots = ledger.tried(lessons_.known),
                     .planned = ledger.planned(lessons_.known),
                     .cut = interrupted,
                     .cut_by = found_first_ ? "ended by the first violation (-x)" : "interrupted",
                     .narrow = capability_->narrow() || capability_->shapes != nullptr ||
                               shows_little(laws_[law], *capability_)};
    conclude(result, options_.profile, efforts_[law]);
    if (!ledger.started() && !interrupted)
        result.verdict = law::not_run(law::Reason(law::Reason::Kind::time_spent));
    const bool by_profile = !options_.all_cases && !options_.cases && !options_.seconds;
    const CaseRecord* first = lessons_.learn(result, by_profile);
    if (first != nullptr)
        failing_.push_back({law, *failure_kind(*first), *first});
    else
        concluded_.push_back(law);
    results_[law] = std::move(result);
}

bool RunState::cases_done() const {
    return committed_ >= ledgers_.size();
}

const RunState::Failing* RunState::first_of_kind(const Failing& failing) const {
    if (!failing.kind.death()) return &failing;
    const auto first = std::find_if(failing_.begin(), failing_.end(), [&](const Failing& other) {
        return other.kind == failing.kind && !other.withdrawn;
    });
    return &*first;
}

std::optional<ShrinkTask> RunState::next_shrink() {
    // With a clock, the cases come first: the shrinks share what is left of it. The first violation
    // ends the run where that is asked for.
    if (stopped_ || (options_.seconds && !options_.until_first && !cases_done()))
        return std::nullopt;
    for (Failing& failing : failing_) {
        const Failing* first = first_of_kind(failing);
        const bool again = first != &failing;
        if (failing.handed_out || (again && !first->done)) continue;
        if (again && is_slow_death(failing.found)) {
            // Each evaluation would wait for the limit again to find what the first law has found.
            failing.handed_out = failing.done = true;
            results_[failing.law].counterexample =
                counterexample_of(laws_[failing.law], failing.found);
            results_[failing.law].counterexample->confirmed.how = Confirmation::alike;
            concluded_.push_back(failing.law);
            continue;
        }
        failing.handed_out = true;
        ShrinkTask task;
        task.law = failing.law;
        task.found = failing.found;
        task.evaluations = again ? shrink_evaluations_again : shrink_evaluations;
        const auto left = std::count_if(failing_.begin(), failing_.end(),
                                        [](const Failing& f) { return !f.done; });
        const bool statistic = laws_[failing.law].compares == law::Compares::statistic;
        task.seconds = is_slow_death(task.found) ? shrink_seconds_slow
                       : statistic               ? shrink_seconds_statistic
                                                 : shrink_seconds;
        if (options_.seconds) {
            const double total = std::max(shrink_seconds_least, shrink_share * *options_.seconds);
            const double share = (total + std::min(seconds_left(), 0.0)) *
                                 std::max(options_.jobs, 1) / static_cast<double>(left);
            task.seconds = std::clamp(share, 0.0, task.seconds);
        }
        if (again && results_[first->law].counterexample)
            task.likely = results_[first->law].counterexample->smallest;
        for (const CaseRecord& record : results_[failing.law].records)
            task.others.push_back(record.tried);
        return task;
    }
    return std::nullopt;
}

void RunState::put(const ShrinkTask& task, Counterexample counterexample) {
    LawResult& law = results_[task.law];
    settle(law, std::move(counterexample));
    for (Failing& failing : failing_)
        if (failing.law == task.law) failing.done = true;
    concluded_.push_back(task.law);
    if (!options_.until_first || !is_proven(law.counterexample->confirmed.how)) return;
    found_first_ = true;
    stop();
}

bool RunState::shrinks_done() const {
    return stopped_ ||
           std::all_of(failing_.begin(), failing_.end(), [](const Failing& f) { return f.done; });
}

void RunState::withdraw(const ShrinkTask& task) {
    LawResult& law = results_[task.law];
    efforts_[task.law].cut = false;
    search::withdraw(law, *failure_kind(task.found), options_.profile, efforts_[task.law]);
    for (Failing& failing : failing_)
        if (failing.law == task.law) failing.done = failing.withdrawn = true;
    concluded_.push_back(task.law);
}

void RunState::stop() {
    stopped_ = true;
    for (auto& ledger : ledgers_)
        if (ledger) ledger->close();
    current_ = ledgers_.size();
    commit_in_order();
}

double RunState::progress() const {
    double planned = 0, returned = 0;
    for (std::size_t i = 0; i < ledgers_.size(); ++i) {
        if (!ledgers_[i]) continue;
        const auto own = static_cast<double>(ledgers_[i]->planned(lessons_.known));
        planned += own;
        returned += i < committed_ ? own : static_cast<double>(ledgers_[i]->returned());
    }
    const double by_cases = planned > 0 ? returned / planned : 1;
    const double by_time = options_.seconds ? 1 - seconds_left() / *options_.seconds : 0;
    return std::clamp(std::max(by_cases, by_time), 0.0, 1.0);
}

std::vector<std::size_t> RunState::take_concluded() {
    return std::exchange(concluded_, {});
}

}  // namespace attest::search
