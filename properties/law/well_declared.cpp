#include <algorithm>
#include <set>

#include "properties/law/catalogue.hpp"
#include "reference/problem/errors.hpp"

namespace attest::law {

namespace {

bool is_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
}

bool is_law_id(std::string_view id) {
    const auto dot = id.find('.');
    return dot != std::string_view::npos && is_word(id.substr(0, dot)) &&
           is_word(id.substr(dot + 1));
}

/// Columns, not bytes: continuation bytes of UTF-8 take none.
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c >> 6) != 2; }));
}

}  // namespace

void require_well_declared(std::span<const Property> laws) {
    if (laws.empty()) throw InternalError("the catalogue has no law");
    constexpr std::size_t short_columns_max = 60;  // the width of the reports' tables
    std::set<std::string> seen;
    for (const Property& law : laws) {
        const auto fault = [&](const char* what) {
            throw InternalError("law '" + law.id + "': " + what);
        };
        if (!is_law_id(law.id)) fault("the id is not family.law in snake_case");
        if (!seen.insert(law.id).second) fault("declared twice");
        if (law.check == nullptr) fault("has no check function");
        if (law.turned_red_by.empty()) fault("names no planted deviation that must turn it red");
        for (const PlantedDeviation& deviation : law.turned_red_by)
            if (!is_word(deviation.id) || !deviation.does_something())
                fault("a planted deviation needs an id in snake_case and something that it does");
        if (law.needs.batch_invariant && !law.needs.deterministic)
            fault("only a deterministic kernel can repeat its bits in another batch");
        if (law.cases.default_scale && law.cases.require.has(Feature::scale))
            fault("its cases cannot have a scale of their own and the default one");
        const CaseSpace& c = law.cases;
        if (c.cost < 1 || std::min({c.scores_max, c.len_max, c.dim_max, c.batch_max}) < 0)
            fault("a cost is at least 1, and a limit is not negative");
        if ((std::max({c.scores_max, c.len_max, c.dim_max, c.batch_max}) > 0) ==
            c.limited_because.empty())
            fault("a limit of its own needs its reason, and a reason a limit");
        if (law.cases.square && (law.cases.len_q_one || law.cases.more_queries))
            fault("its cases cannot have as many queries as keys and another number");
        if (law.statement.empty() || law.why.empty() || law.source.empty() || law.file.empty())
            fault("statement, why, source and file are all required");
        if (law.statement_short.empty() || columns(law.statement_short) > short_columns_max)
            fault("statement_short must have 1 to 60 columns");
    }
}

}  // namespace attest::law
