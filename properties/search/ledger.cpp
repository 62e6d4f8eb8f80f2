#include "properties/search/ledger.hpp"

#include <algorithm>
#include <utility>

namespace attest::search {

namespace {

// After this many violations one more says nothing new, and the time belongs to the other laws.
constexpr int violations_enough = 8, violations_enough_again = 4;
// Of a statistic each costs up to a thousand calls.
constexpr int statistics_enough = 2;
// A death is met by every law. Two of one kind make a law's case; where an earlier law has met the
// kind already, one.
constexpr int deaths_enough = 2;
// Each that is too slow to be judged costs its limit, or what memory there is, and leaves the law
// undecided.
constexpr int undecided_enough = 2;

// Draws of a law that all came to nothing: what can use one in 300 has had one by then, but for one
// time in 30, and would have too few for a verdict in the end.
constexpr std::int64_t nothing_enough = 1024;

constexpr auto npos = static_cast<std::size_t>(-1);

// A kernel that hung or for which there was no memory in every case of this many laws does so in
// all; so does one that ended in some way in every case of more of them.
constexpr int slow_laws_enough = 3, laws_enough = 8;

}  // namespace

bool Lessons::hopeless() const noexcept {
    return (!ever_quick && laws_dead >= slow_laws_enough) ||
           (!ever_alive && laws_dead >= laws_enough);
}

const CaseRecord* Lessons::learn(const LawResult& law, bool by_profile) {
    const CaseRecord* first = nullptr;
    bool none_answered = !law.records.empty();
    for (const CaseRecord& record : law.records) {
        const auto kind = failure_kind(record);
        if (kind && first == nullptr) first = &record;
        if (kind && kind->death()) known.deaths.insert(*kind);
        const bool starved = record.outcome == worker::Outcome::no_memory;
        none_answered = none_answered && starved;
        ever_quick = ever_quick || !(starved || is_slow_death(record));
        ever_alive = ever_alive || !kind || !kind->death();
    }
    laws_dead += first != nullptr || none_answered;
    // A slow death may yet be taken back.
    const bool wrong = first != nullptr && !is_slow_death(*first) &&
                       law.verdict.decision == law::Decision::violated;
    known.violated = known.violated || (wrong && by_profile);
    return first;
}

Numbers numbers_of(const law::Property& property, Numbers each, bool asked) noexcept {
    if (property.cases_enough > 0 && !asked) each.end = std::min(each.end, property.cases_enough);
    return each;
}

Ledger::Ledger(const law::Property& property, std::vector<Case> stored, Numbers numbers)
    : property_(&property), stored_(std::move(stored)), numbers_(numbers) {}

std::int64_t Ledger::planned(const Known& known) const noexcept {
    const std::int64_t end =
        known.violated ? std::min(numbers_.end, cases_once_violated * numbers_.step) : numbers_.end;
    const std::int64_t drawn =
        end <= numbers_.first ? 0 : (end - numbers_.first + numbers_.step - 1) / numbers_.step;
    return static_cast<std::int64_t>(stored_.size()) + drawn;
}

/// One past the last slot that counts, looking only at what has come back without a gap; npos where
/// more is wanted.
std::size_t Ledger::end_of_interest(const Known& known) const {
    const bool statistic = property_->compares == law::Compares::statistic;
    const int enough = statistic        ? statistics_enough
                       : known.violated ? violations_enough_again
                                        : violations_enough;
    int violations = 0, deaths = 0, undecided = 0;
    bool any = false;
    std::int64_t nothing = 0;
    for (std::size_t i = 0; i < results_.size() && results_[i]; ++i) {
        if (!results_[i]->record) {
            nothing += results_[i]->discarded + results_[i]->refused;
            if (!any && nothing >= nothing_enough) return i + 1;
            continue;
        }
        any = true;
        undecided += is_undecided_death(*results_[i]->record);
        if (undecided >= undecided_enough) return i + 1;
        const auto kind = failure_kind(*results_[i]->record);
        if (!kind) continue;
        ++violations;
        if (kind->death()) deaths += known.deaths.contains(*kind) ? deaths_enough : 1;
        if (violations >= enough || deaths >= deaths_enough) return i + 1;
    }
    return npos;
}

std::optional<CaseSlot> Ledger::next(const Known& known) {
    if (closing_ || next_ >= planned(known) || end_of_interest(known) != npos) return std::nullopt;
    CaseSlot slot;
    slot.index = static_cast<std::size_t>(next_++);
    results_.emplace_back();
    const std::size_t stored = stored_.size();
    if (slot.index < stored) {
        slot.number = static_cast<std::int64_t>(slot.index) - static_cast<std::int64_t>(stored);
        slot.stored = stored_[slot.index];
    } else {
        slot.number =
            numbers_.first + static_cast<std::int64_t>(slot.index - stored) * numbers_.step;
    }
    return slot;
}

void Ledger::put(const CaseSlot& slot, SlotResult result) {
    results_[slot.index] = std::move(result);
    ++returned_;
}

bool Ledger::finished(const Known& known) const {
    if (returned_ < next_) return false;
    return closing_ || next_ >= planned(known) || end_of_interest(known) != npos;
}

std::int64_t Ledger::tried(const Known& known) const noexcept {
    const std::int64_t handed_out = std::min(next_, planned(known));
    const std::size_t end = end_of_interest(known);
    return end == npos ? handed_out : std::min(handed_out, static_cast<std::int64_t>(end));
}

LawResult Ledger::collect(const Known& known) const {
    LawResult law;
    law.property = property_;
    bool inapplicable = true;
    const auto end = static_cast<std::size_t>(tried(known));
    for (std::size_t i = 0; i < end; ++i) {
        if (!results_[i]) continue;
        const SlotResult& result = *results_[i];
        law.discarded += result.discarded;
        law.refused += result.refused;
        for (const auto& [reason, count] : result.refusals) law.refusals[reason] += count;
        if (!result.record) {
            if (law.verdict.reason.kind == law::Reason::Kind::none)
                law.verdict.reason = result.nothing;
            inapplicable = inapplicable && result.inapplicable;
            continue;
        }
        ++law.cases;
        law.seconds += result.record->seconds;
        law.largest.cover(result.record->largest);
        law.records.push_back(*result.record);
    }
    if (inapplicable) law.verdict.decision = law::Decision::not_applicable;
    return law;
}

}  // namespace attest::search
