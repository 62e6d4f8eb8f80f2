// `attest verify --against`: one certificate beside another.

#include <map>
#include <set>
#include <string>

#include "ci/certificate.hpp"
#include "ci/number.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

void draw_changes(Screen& screen, const RunReport& a, const RunReport& b) {
    const auto facts = [](const RunReport& report) {
        const RunFacts all = facts_of(report.run);
        Facts list = all.kernel;
        for (const Facts* more : {&all.claims, &all.dialect, &all.machine})
            list.insert(list.end(), more->begin(), more->end());
        for (const auto& fact : made_with(certificate(report, {}))) list.push_back(fact);
        list.emplace_back("verdict", certificate(report, {}).title());
        for (const search::LawReport& law : report.laws)
            list.emplace_back(
                law.law, std::string(name(law.verdict.decision)) +
                             (law.ratios ? ", worst " + ratio_text(law.ratios->worst.ratio) : "") +
                             ", " + counted(law.cases, "case"));
        return std::map<std::string, std::string>(list.begin(), list.end());
    };
    const auto before = facts(a), after = facts(b);
    const auto said = [](const auto& map, const std::string& key) {
        const auto at = map.find(key);
        return at == map.end() || at->second.empty() ? std::string("none") : clean(at->second);
    };
    std::set<std::string> keys;
    for (const auto& [key, value] : before) keys.insert(key);
    for (const auto& [key, value] : after) keys.insert(key);
    for (const std::string& key : keys)
        if (said(before, key) != said(after, key))
            screen.line("  " + screen.pad(key, 28) + said(before, key) + " " +
                            screen.symbol("→", "->") + " " + said(after, key),
                        30);
    screen.line();
}

}  // namespace attest::ci
