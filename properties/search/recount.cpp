#include "properties/search/recount.hpp"

#include <algorithm>

#include "properties/search/capability.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

LawResult Recount::law(const law::Property& property, const RecordedLaw& recorded) {
    LawResult result;
    result.property = &property;
    result.promised = recorded.promised;
    if (lessons_.hopeless()) {
        result.verdict = law::not_run(law::Reason(law::Reason::Kind::always_dead));
        result.promised = {};
        return result;
    }
    const auto known = static_cast<std::size_t>(
        std::distance(recorded.slots.begin(), recorded.slots.lower_bound(0)));
    Numbers numbers = options_.numbers;
    numbers.end = options_.cases.value_or(
        cases_afforded(options_.profile.cases_per_law, options_.manifest.takes));
    Ledger ledger(property, std::vector<Case>(known),
                  numbers_of(property, numbers, options_.cases.has_value()));
    while (const auto slot = ledger.next(lessons_.known)) {
        const auto at = recorded.slots.find(slot->number);
        if (at == recorded.slots.end())
            throw BadInput(property.id + ": case number " + std::to_string(slot->number) +
                           " is missing");
        ledger.put(*slot, at->second);
    }
    const Sizes promised = result.promised;
    result = ledger.collect(lessons_.known);
    result.promised = promised;
    const Effort effort{.slots = ledger.tried(lessons_.known),
                        .planned = ledger.planned(lessons_.known),
                        .cut = false,
                        .narrow = options_.narrow || shows_little(property, options_.manifest)};
    conclude(result, options_.profile, effort);
    const CaseRecord* first =
        lessons_.learn(result, !options_.all_cases && !options_.cases.has_value());
    if (first == nullptr) return result;
    const FailureKind kind = *failure_kind(*first);
    if (recorded.counterexample)
        settle(result, *recorded.counterexample);
    else if (is_slow_death(*first))
        withdraw(result, kind, options_.profile, effort);
    else
        throw BadInput(property.id + ": case number " + std::to_string(first->number) +
                       " failed, and there is no counterexample");
    return result;
}

}  // namespace attest::search
