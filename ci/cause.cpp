#include "ci/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <tuple>

#include "reference/problem/case.hpp"

namespace attest {

namespace {

std::string text_at(const Record& record, const char* outer, const char* inner) {
    const auto part = record.find(outer);
    if (part == record.end() || !part->is_object() || !part->contains(inner)) return {};
    const Record& value = part->at(inner);
    return value.is_string() ? value.get<std::string>() : std::string();
}

bool known(const Record& c) {
    return c.at("diagnosis").value("known", false);
}
bool died(const Record& c) {
    return c.value("outcome", "ok") != "ok" || !c.value("fault", Record()).is_null();
}

// Deaths of one kind differ in offsets and addresses alone.
std::string without_numbers(std::string text) {
    for (std::size_t at = text.find("0x"); at != std::string::npos; at = text.find("0x", at))
        text.erase(at, text.find_first_not_of("0123456789abcdefx", at) - at);
    std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    return text;
}

// Everything that makes two counterexamples one cause, as texts; one in common is enough.
std::vector<std::string> keys_of(const Record& c) {
    const std::string outcome = c.value("outcome", "ok");
    if (outcome == "hang" || outcome == "memory") return {"death: " + outcome};
    if (died(c)) return {"death: " + without_numbers(c.at("problem").get<std::string>())};
    if (known(c)) return {"deviation: " + text_at(c, "diagnosis", "id")};
    std::vector<std::string> keys{"problem: " + c.value("smallest_problem", std::string())};
    if (c.at("boundary").value("found", false))
        keys.push_back("boundary: " + text_at(c, "boundary", "says"));
    return keys;
}

std::int64_t scores_of(const Record& c) {
    try {
        return score_count(parse_case(c.at("line").get<std::string>()).problem);
    } catch (const std::exception&) {
        return 0;
    }
}

// The lead is the one a person reads first: explained, of a law whose sentence needs no number, and
// small. Smallness comes last: some laws build a larger case from a tiny one.
auto rank(const Record& c) {
    const std::string law = c.at("law");
    const int kind = died(c) && law == "hygiene.bounds" ? 0
                     : law.starts_with("masking.")      ? 1
                     : law.starts_with("reference.")    ? 3
                                                        : 2;
    const bool confirmed = c.contains("shrink") && c.at("shrink").value("confirmed", false);
    return std::tuple(!known(c), !confirmed, kind, scores_of(c), law);
}

std::string capitalised(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 32);
    return text;
}

}  // namespace

std::vector<Record> group_causes(std::vector<Record>& counterexamples) {
    std::vector<std::size_t> parent(counterexamples.size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t n) {
        while (parent[n] != n) n = parent[n];
        return n;
    };
    std::map<std::string, std::size_t> first_with;
    for (std::size_t n = 0; n < counterexamples.size(); ++n)
        for (const std::string& key : keys_of(counterexamples[n])) {
            const auto [at, added] = first_with.emplace(key, n);
            if (!added) parent[root(n)] = root(at->second);
        }
    std::map<std::size_t, std::vector<std::size_t>> groups;
    for (std::size_t n = 0; n < counterexamples.size(); ++n) groups[root(n)].push_back(n);

    std::vector<std::vector<std::size_t>> ordered;
    for (auto& [at, members] : groups) ordered.push_back(std::move(members));
    const auto any_known = [&](const std::vector<std::size_t>& members) {
        return std::any_of(members.begin(), members.end(),
                           [&](std::size_t n) { return known(counterexamples[n]); });
    };
    std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
        return std::tuple(!any_known(a), b.size(), a[0]) <
               std::tuple(!any_known(b), a.size(), b[0]);
    });
    std::vector<Record> causes;
    for (const std::vector<std::size_t>& members : ordered) {
        const std::size_t lead =
            *std::min_element(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
                return rank(counterexamples[a]) < rank(counterexamples[b]);
            });
        const std::string id = fmt::format("c{}", causes.size() + 1);
        Record laws = Record::array();
        for (const std::size_t n : members) {
            counterexamples[n]["cause"] = id;
            laws.push_back(counterexamples[n].at("law"));
        }
        causes.push_back({{"record", "cause"},
                          {"v", 1},
                          {"id", id},
                          {"title", capitalised(counterexamples[lead].at("problem"))},
                          {"lead", counterexamples[lead].at("id")},
                          {"laws", laws},
                          {"known", known(counterexamples[lead])}});
    }
    return causes;
}

}  // namespace attest
