#include "properties/diagnosis/contradiction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "properties/diagnosis/agreement.hpp"

namespace attest::diagnosis {

bool contradicted(const Diagnosis& found, const AllEvidence& evidence) {
    const JudgedPart part = part_of(evidence.wrong);
    const auto refuted_by = [&](const Explanation& e) {
        const auto contradicts = [&](const Evidence& call) {
            const auto count = count_call(*e.deviation, call, part);
            return count ? !count->all() : call.wrong();
        };
        const auto unlimited = [&](const Problem& p) { return e.holds_in && !e.holds_in(p); };
        return e.deviation &&
               (e.refuted || std::ranges::any_of(evidence.wrong, contradicts) ||
                std::ranges::any_of(evidence.right, contradicts) ||
                std::ranges::any_of(predicted_richer(*e.deviation, evidence, part), unlimited));
    };
    return refuted_by(found) || std::ranges::any_of(found.also, refuted_by);
}

std::optional<Diagnosis> of_shorter(const Diagnosis& first, const AllEvidence& evidence,
                                    const std::function<bool(const std::string& id)>& refuted) {
    if (!first.known || !first.deviation || first.refuted) return std::nullopt;
    const JudgedPart part = part_of(evidence.wrong);
    std::int64_t explained = 0, limit = std::numeric_limits<std::int64_t>::max();
    for (const Evidence& e : evidence.wrong) {
        const auto count = count_call(*first.deviation, e, part);
        const std::int64_t keys = e.asked.problem.len_kv;
        if (!count || !count->all())
            limit = std::min(limit, keys);
        else
            explained = std::max(explained, keys);
    }
    if (explained >= limit) return std::nullopt;
    AllEvidence shorter;
    for (const std::vector<Evidence>* list : {&evidence.wrong, &evidence.right})
        for (const Evidence& e : *list)
            if (e.asked.problem.len_kv < limit) shorter.add_probe(e);
    constexpr std::size_t wrong_min = 3;
    if (shorter.wrong.size() < wrong_min) return std::nullopt;
    Diagnosis found = explain_evidence(shorter, refuted);
    if (!found.known || found.refuted || found.id != first.id) return std::nullopt;
    const auto limited = [&](Explanation& e) {
        e.says +=
            fmt::format(", of up to {} keys; of {} it computes something else", explained, limit);
    };
    limited(found);
    std::ranges::for_each(found.also, limited);
    return found;
}

}  // namespace attest::diagnosis
