#pragma once
// What is known of one law while a campaign runs: which cases were handed out, what came back, and
// when enough is known. Results come back in any order; everything that is decided is decided on
// the cases in order, so it does not depend on how many threads there were.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "properties/search/conclude.hpp"

namespace attest::search {

/// Of each law behind one that is violated, where the number of cases is left to the profile: the
/// kernel is wrong, and a third of what quick gives finds most of the further causes.
inline constexpr std::int64_t cases_once_violated = 40;

/// What came of one slot: a judged case, or the draws that led to none.
struct SlotResult {
    std::optional<CaseRecord> record;
    std::int64_t discarded = 0, refused = 0;
    std::map<std::string, std::int64_t> refusals;
    law::Reason nothing;        ///< why the last draw had nothing to compare
    bool inapplicable = false;  ///< the law said that it does not apply to it
};

/// A slot handed out: a case number, or a case known before: a stored failure, a fixture.
struct CaseSlot {
    std::size_t index = 0;
    std::int64_t number = 0;
    std::optional<Case> stored;
};

/// The numbers of this shard: first, first + step, ..., below end.
struct Numbers {
    std::int64_t first = 0, step = 1, end = 0;
};

/// What the laws before this one, in the catalogue's order, have shown: the same in every run.
struct Known {
    std::set<FailureKind> deaths;
    /// One of them is violated: so is the kernel, and what is left is to find further causes. Only
    /// set where the number of cases was left to the profile.
    bool violated = false;
};

/// What is learned of the kernel from law to law.
struct Lessons {
    Known known;
    int laws_dead = 0;        ///< laws that saw a failure
    bool ever_quick = false;  ///< whether any saw anything but slow deaths
    bool ever_alive = false;  ///< whether any saw anything but deaths
    /// Each further law would cost a time limit, the filling of all memory, or a process's start,
    /// to learn nothing.
    bool hopeless() const noexcept;
    /// From a law that is concluded: its first failure, or null. `by_profile`: the number of cases
    /// was left to the profile.
    const CaseRecord* learn(const LawResult& law, bool by_profile);
};

/// The numbers of a law: as many as its campaign gives each, or as it needs where none were asked.
Numbers numbers_of(const law::Property& property, Numbers each, bool asked) noexcept;

class Ledger {
public:
    Ledger(const law::Property& property, std::vector<Case> stored, Numbers numbers);

    const law::Property& property() const noexcept { return *property_; }
    std::int64_t planned(const Known& known) const noexcept;
    std::int64_t returned() const noexcept { return returned_; }

    /// The next slot; none where all are handed out or enough is known.
    std::optional<CaseSlot> next(const Known& known);
    void put(const CaseSlot& slot, SlotResult result);
    void close() noexcept { closing_ = true; }  ///< hands out no more: time is up, or interrupted

    bool started() const noexcept { return next_ > 0; }
    bool finished(const Known& known) const;

    /// The records, in order, up to where enough was known. `cut`: not all that was planned was
    /// tried though more was wanted.
    LawResult collect(const Known& known) const;
    bool cut(const Known& known) const noexcept { return closing_ && next_ < planned(known); }
    std::int64_t handed_out() const noexcept { return next_; }
    std::int64_t tried(const Known& known) const noexcept;  ///< of those that count

private:
    std::size_t end_of_interest(const Known& known) const;

    const law::Property* property_;
    std::vector<Case> stored_;
    Numbers numbers_;
    std::vector<std::optional<SlotResult>> results_;
    std::int64_t next_ = 0, returned_ = 0;
    bool closing_ = false;
};

}  // namespace attest::search
