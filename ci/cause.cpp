#include "ci/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <tuple>

#include "properties/diagnosis/deviation.hpp"
#include "properties/law/property.hpp"
#include "properties/search/size_order.hpp"
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

// Where a stray access ends is chance: in a tensor's guard, in another tensor, or nowhere.
std::string way_to_die(const Record& c) {
    const std::string outcome = c.value("outcome", "ok");
    if (outcome == "hang" || outcome == "memory") return outcome;
    const std::string says = text_at(c, "fault", "says");
    for (const char* access : {"wrote ", "read ", "lost its GPU context"})
        if (says.starts_with(access)) return access;
    return without_numbers(c.at("problem").get<std::string>());
}

// What makes counterexamples one cause. Those nothing explains are one as well, until something
// tells them apart: a kernel has one defect more often than thirty. But answers that are wrong by
// themselves are apart from those that are right.
std::string key_of(const Record& c) {
    if (died(c)) return "death: " + way_to_die(c);
    const Record& d = c.at("diagnosis");
    const bool alone = d.value("cases", std::int64_t{0}) == 0;
    if (known(c) && !alone) {
        const std::string id = text_at(c, "diagnosis", "id");
        return "deviation: " + (id == "nan" ? "not_finite" : id);
    }
    return alone ? "company" : "unexplained";
}

using Groups = std::map<std::string, std::vector<std::size_t>>;

void join(Groups& groups, const std::string& from, const std::string& into) {
    auto members = groups.extract(from);
    auto& all = groups[into];
    all.insert(all.end(), members.mapped().begin(), members.mapped().end());
    std::sort(all.begin(), all.end());
}

// Where a kernel is shown to remember earlier calls, any answer may be wrong for that alone: what
// nothing else explains is put down to it. And laws that fail on calls of their own
// making, where the case alone is right, add nothing to a single defect found otherwise.
void join_company(Groups& groups, const std::vector<Record>& counterexamples) {
    const auto company = groups.find("company");
    if (company == groups.end()) return;
    const bool remembers = std::any_of(company->second.begin(), company->second.end(),
                                       [&](std::size_t n) { return known(counterexamples[n]); });
    if (remembers) {
        if (groups.contains("unexplained")) join(groups, "unexplained", "company");
        return;
    }
    std::vector<std::string> others;
    for (const auto& [key, members] : groups)
        if (key != "company" && !key.starts_with("death")) others.push_back(key);
    if (others.size() == 1) join(groups, "company", others.front());
}

std::tuple<int, SizeKey> size_of(const Record& c) {
    try {
        return {0, size_key(parse_case(c.at("line").get<std::string>()))};
    } catch (const std::exception&) {
        return {1, {}};
    }
}

bool is_mask_deviation(const std::string& id) {
    static const std::vector<Deviation> list = mask_deviations();
    return std::any_of(list.begin(), list.end(), [&](const Deviation& d) { return d.id == id; });
}

// The two sides of a mask: a key that is seen and must not be, and one that must be and is not.
bool shows_sight(const std::string& law) {
    return law == "masking.causal" || law == "masking.influence";
}

std::size_t place_in_catalogue(const std::string& law) {
    const Property* found = find_property(law);
    return found == nullptr ? catalogue().size()
                            : static_cast<std::size_t>(found - catalogue().data());
}

// The lead is the one a person reads first: explained, repeated in a fresh process, of the law
// whose sentence says most of this kind of defect; else of the reference, so that it is the same in
// every run; else small. A law that builds larger cases from its own has tiny ones: they come last.
auto rank(const Record& c) {
    const std::string law = c.at("law"), id = text_at(c, "diagnosis", "id");
    const bool telling = died(c)                 ? law == "hygiene.bounds"
                         : id == "hidden_leaks"  ? law == "masking.poison"
                         : id == "remembers"     ? law == "hygiene.stale_state"
                         : is_mask_deviation(id) ? shows_sight(law)
                                                 : false;
    const int kind = telling ? 0 : law.starts_with("reference.") ? 1 : 2;
    const bool confirmed = c.contains("shrink") && c.at("shrink").value("confirmed", false);
    const auto [malformed, size] = size_of(c);
    const std::int64_t scores = kind == 0 && malformed == 0 ? size.numbers.front() : 0;
    const std::size_t place = kind < 2 ? place_in_catalogue(law) : 0;
    return std::tuple(!known(c), !confirmed, kind, scores, place, malformed, size);
}

std::size_t lead_of(const std::vector<std::size_t>& members,
                    const std::vector<Record>& counterexamples) {
    return *std::min_element(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
        return rank(counterexamples[a]) < rank(counterexamples[b]);
    });
}

/// Batch, heads, lengths, dimensions; none where they are all 1, for many a defect shows there.
std::optional<std::array<std::int64_t, 7>> telling_shape(const Record& c) {
    try {
        const Problem p = parse_case(c.at("line").get<std::string>()).problem;
        const std::array<std::int64_t, 7> shape = {p.batch,  p.heads_q, p.heads_kv,  p.len_q,
                                                   p.len_kv, p.dim_qk,  value_dim(p)};
        const auto is_one = [](std::int64_t n) { return n == 1; };
        if (!std::all_of(shape.begin(), shape.end(), is_one)) return shape;
    } catch (const std::exception&) {
    }
    return std::nullopt;
}

// What nothing explains, and shows at the very shape at which an explained defect does, is that
// defect under laws that ask for more than the explanation knows.
void join_alike(Groups& groups, const std::vector<Record>& counterexamples) {
    const auto unexplained = groups.find("unexplained");
    if (unexplained == groups.end()) return;
    const auto shape =
        telling_shape(counterexamples[lead_of(unexplained->second, counterexamples)]);
    if (!shape) return;
    for (const auto& [key, members] : groups)
        if (key.starts_with("deviation") &&
            telling_shape(counterexamples[lead_of(members, counterexamples)]) == shape)
            return join(groups, "unexplained", std::string(key));
}

std::string capitalised(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 32);
    return text;
}

}  // namespace

std::vector<Record> group_causes(std::vector<Record>& counterexamples) {
    Groups groups;
    for (std::size_t n = 0; n < counterexamples.size(); ++n)
        groups[key_of(counterexamples[n])].push_back(n);
    join_alike(groups, counterexamples);
    join_company(groups, counterexamples);

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
        const std::size_t lead = lead_of(members, counterexamples);
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
