#include "properties/diagnosis/election.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/scope.hpp"

namespace attest::diagnosis {

namespace {

std::vector<Explanation> accepted_for(const CounterexampleReport& c) {
    if (c.died() || !c.diagnosis.known || c.diagnosis.cases == 0) return {};
    std::vector<Explanation> list{c.diagnosis};
    list.insert(list.end(), c.diagnosis.also.begin(), c.diagnosis.also.end());
    return list;
}

// A backward that ignores the mask is another defect than a forward that does, but where both do.
std::string which_of(const CounterexampleReport& c, const Explanation& e) {
    return (c.diagnosis.backward && !e.of_both ? of_backward : "") + e.id;
}

class Election {
public:
    explicit Election(std::vector<CounterexampleReport>& all) : all_(all) {
        for (std::size_t n = 0; n < all.size(); ++n)
            if (auto accepted = accepted_for(all[n]); !accepted.empty())
                open_[n] = std::move(accepted);
    }

    std::map<std::string, std::vector<std::size_t>> elect() {
        std::map<std::string, std::vector<std::size_t>> elected;
        while (!open_.empty()) {
            const std::string id = best();
            if (withdraw_refuted(id)) continue;
            elected[id] = take(id);
        }
        return elected;
    }

private:
    Explanation* of(std::size_t n, const std::string& id) {
        const auto found = std::ranges::find_if(
            open_[n], [&](const Explanation& e) { return which_of(all_[n], e) == id; });
        return found == open_[n].end() ? nullptr : &*found;
    }

    // The one that explains most counterexamples is taken first; of equal ones that which no right
    // answer refutes and which stands first for most. What is general says least, and comes last.
    std::string best() const {
        struct Votes {
            bool particular = false;
            std::int64_t explains = 0, unrefuted = 0, first = 0;
            auto operator<=>(const Votes&) const = default;
        };
        std::map<std::string, Votes> votes;
        for (const auto& [n, accepted] : open_)
            for (const Explanation& e : accepted) {
                Votes& v = votes[which_of(all_[n], e)];
                v.particular = !e.general;
                ++v.explains;
                v.unrefuted += !e.refuted;
                v.first += &e == &accepted.front();
            }
        return std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; })->first;
    }

    std::vector<std::size_t> take(const std::string& id) {
        std::vector<std::size_t> members;
        std::erase_if(open_, [&](const auto& entry) {
            const Explanation* chosen = of(entry.first, id);
            if (chosen == nullptr) return false;
            static_cast<Explanation&>(all_[entry.first].diagnosis) = Explanation(*chosen);
            members.push_back(entry.first);
            return true;
        });
        return members;
    }

    /// Everything that was said of an explanation.
    struct Hearing {
        std::vector<std::pair<std::size_t, Explanation*>> owners;
        std::vector<Problem> wrong, refuting;
    };

    bool withdraw_refuted(const std::string& id) {
        Hearing heard = hear(id);
        if (heard.refuting.empty()) return false;
        const std::optional<Scope> scope = scope_of(heard.wrong, heard.refuting);
        for (auto& [n, e] : heard.owners) {
            if (!scope) {
                withdraw(n, id);
                continue;
            }
            e->refuted = true;
            limit(*e, scope);
        }
        return !scope;
    }

    // What its own calls limit was held against right answers before; an answer that depends on
    // earlier calls is no evidence.
    Hearing hear(const std::string& id) {
        Hearing heard;
        for (const auto& [n, accepted] : open_)
            if (Explanation* e = of(n, id)) heard.owners.emplace_back(n, e);
        const bool asked = std::ranges::all_of(heard.owners, [&](const auto& owner) {
            return owner.second->deviation && !owner.second->refuted && evidence_at(owner.first);
        });
        if (!asked) return heard;
        const Deviation& deviation = *heard.owners.front().second->deviation;
        const JudgedPart part = part_of(evidence_at(heard.owners.front().first)->wrong);
        for (std::size_t n = 0; n < all_.size(); ++n) {
            const AllEvidence* evidence = evidence_at(n);
            if (evidence == nullptr || evidence->remembers) continue;
            if (!open_.contains(n) || of(n, id) == nullptr) {
                add_refuting(heard, deviation, *evidence, part);
                continue;
            }
            for (const Evidence& e : evidence->wrong) heard.wrong.push_back(e.asked.problem);
            std::ranges::copy(predicted_richer(deviation, *evidence, part),
                              std::back_inserter(heard.wrong));
        }
        return heard;
    }

    static void add_refuting(Hearing& heard, const Deviation& deviation,
                             const AllEvidence& evidence, JudgedPart part) {
        for (const Evidence& e : evidence.right) {
            const auto count = count_call(deviation, e, part);
            if (count && !count->all()) heard.refuting.push_back(e.asked.problem);
        }
    }

    const AllEvidence* evidence_at(std::size_t n) const {
        const CounterexampleReport& c = all_[n];
        return c.died() || c.diagnosis.backward ? nullptr : c.diagnosis.evidence.get();
    }

    void withdraw(std::size_t n, const std::string& id) {
        std::vector<Explanation>& accepted = open_[n];
        const Explanation withdrawn = *of(n, id);
        std::erase_if(accepted, [&](const Explanation& e) { return which_of(all_[n], e) == id; });
        if (!accepted.empty()) return;
        // Another form of the same defect may be found elsewhere.
        if (!withdrawn.form_of.empty()) all_[n].diagnosis.shared.push_back(withdrawn);
        open_.erase(n);
        static_cast<Explanation&>(all_[n].diagnosis) = {};
        all_[n].diagnosis.known = false;
    }

    std::vector<CounterexampleReport>& all_;
    std::map<std::size_t, std::vector<Explanation>> open_;
};

}  // namespace

std::map<std::string, std::vector<std::size_t>> elect_explanations(
    std::vector<CounterexampleReport>& counterexamples) {
    return Election(counterexamples).elect();
}

}  // namespace attest::diagnosis
