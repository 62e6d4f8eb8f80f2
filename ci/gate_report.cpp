// What of a gate's changes is about given laws, and what excuses it.

#include <algorithm>

#include "ci/gate.hpp"

namespace attest::ci {

void GateChanges::add(GateChange::Kind kind, std::string subject, std::string before,
                      std::string after, std::string says, std::string cause) {
    list.push_back({kind,
                    std::move(subject),
                    std::move(before),
                    std::move(after),
                    std::move(says),
                    std::move(cause),
                    {}});
}

std::int64_t GateReport::count(GateChange::Kind kind) const {
    return std::ranges::count(changes, kind, &GateChange::kind);
}

const GateChange* GateReport::about(const std::vector<std::string>& laws) const {
    const auto at = std::ranges::find_if(changes, [&](const GateChange& change) {
        return std::ranges::find(laws, change.subject) != laws.end();
    });
    return at == changes.end() ? nullptr : &*at;
}

std::string GateReport::waiver_of(const std::vector<std::string>& laws) const {
    const GateChange* change = about(laws);
    return change != nullptr && change->kind == GateChange::Kind::waived ? change->waiver : "";
}

std::string GateReport::excuse_of(const std::vector<std::string>& laws) const {
    if (const std::string waiver = waiver_of(laws); !waiver.empty()) return "waived: " + waiver;
    const GateChange* change = about(laws);
    const bool before = change != nullptr && change->kind == GateChange::Kind::told &&
                        change->baseline == "violated";
    return before ? "as in the baseline" : "";
}

std::vector<const GateChange*> GateReport::losses(const std::vector<std::string>& violated) const {
    std::vector<const GateChange*> list;
    for (const GateChange& change : changes)
        if (change.kind == GateChange::Kind::worse &&
            std::ranges::find(violated, change.subject) == violated.end())
            list.push_back(&change);
    return list;
}

}  // namespace attest::ci
