#include "ci/certificate.hpp"

#include <algorithm>

#include "ci/coverage.hpp"
#include "ci/number.hpp"
#include "ci/run_verdict.hpp"
#include "ci/screen.hpp"
#include "properties/law/property.hpp"

namespace attest {

namespace {

Record law_entry(const Record& law) {
    Record entry{{"law", law.at("law")},
                 {"statement", law.at("statement")},
                 {"compares", law.at("compares")},
                 {"verdict", law.at("verdict")},
                 {"reason", law.at("reason")},
                 {"cases", law.at("cases")},
                 {"discarded", law.at("discarded")},
                 {"refused", law.at("refused")},
                 {"elements", law.at("elements")}};
    if (const Property* property = find_property(law.at("law").get<std::string>()))
        entry["statement"] = property->statement;
    entry["worst"] = law.contains("worst") ? law["worst"] : Record(nullptr);
    if (law.contains("statistic")) entry["statistic"] = law["statistic"];
    if (law.contains("doubt")) entry["doubt"] = law["doubt"];
    if (law.contains("counterexample")) entry["counterexample"] = law["counterexample"];
    return entry;
}

// The refusals of all laws, by the kernel's reason.
Record refusals_of(const Records& records) {
    Record sum = Record::object();
    for (const Record& law : records.laws) {
        if (!law.contains("refusals")) continue;
        for (const auto& [reason, count] : law["refusals"].items())
            sum[reason] = sum.value(reason, std::int64_t{0}) + count.get<std::int64_t>();
    }
    return sum;
}

std::string not_claimed(const Record& kernel) {
    std::string list = "backward";
    for (int n = 0; n < feature_count; ++n) {
        const std::string feature(name(static_cast<Feature>(n)));
        const auto& has = kernel.at("features");
        if (std::find(has.begin(), has.end(), feature) == has.end()) list += ", " + feature;
    }
    return list;
}

Record limits_of(const Records& records, const RunVerdict& v) {
    Record list = Record::array();
    list.push_back(
        "Nothing of other versions, builds, compilers or processors than those named "
        "here.");
    list.push_back("Nothing of speed, and nothing of memory beyond accesses outside the tensors.");
    if (v.cases > 0)
        // Rule of three: no failure in n cases leaves a share above 3/n with 5 % probability.
        list.push_back("Not that no fault exists. A fault that shows in fewer than " +
                       bound_text(3.0 / static_cast<double>(v.cases)) +
                       " of the cases drawn may have been missed (95 % confidence); so may one "
                       "that needs more than the profile's lengths and dimensions.");
    const CoverageSummary c = summarise(records.coverage);
    if (c.undrawn > 0)
        list.push_back("Nothing of " + counted(c.undrawn, "feature pair") +
                       " that was never drawn.");
    list.push_back("Nothing of what is not claimed: " + not_claimed(records.run.at("kernel")) +
                   ".");
    if (records.end.is_object() && records.end.contains("narrowed"))
        for (const Record& limit : records.end["narrowed"])
            list.push_back("Nothing beyond what it was found to take: " + limit.get<std::string>() +
                           ".");
    std::int64_t refused = 0;
    for (const Record& law : records.laws) refused += law.at("refused").get<std::int64_t>();
    if (refused > 0)
        list.push_back("Nothing of the " + count_text(refused) +
                       " problems it refused. A refusal with a reason is allowed.");
    list.push_back(
        "Its name and version are the kernel's own words; what was judged is the file "
        "with the SHA-256 above, where there is one.");
    return list;
}

// Hostile text in a Markdown table.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : clean(text)) {
        if (std::string_view("|`*_[]<>\\#").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string value_of(const Record& value) {
    if (value.is_null()) return "none";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return escaped(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string table_of(const Record& object) {
    std::string text = "| | |\n|---|---|\n";
    for (const auto& [key, value] : object.items())
        text += "| " + escaped(key) + " | " + value_of(value) + " |\n";
    return text;
}

std::string worst_text(const Record& law) {
    const Record& worst = law.at("worst");
    if (worst.is_object())
        return ratio_text(real_of(worst.at("ratio"))) + " of the bound, " +
               escaped(worst.at("case").get<std::string>());
    if (law.at("verdict") == "holds" && law.at("compares") == "bits") return "to the bit";
    return "";
}

std::string laws_table(const Record& laws) {
    std::string text = "| law | verdict | cases | nearest |\n|---|---|---:|---|\n";
    for (const Record& law : laws) {
        if (law.at("verdict") == "not_applicable" || law.at("verdict") == "not_run") continue;
        text +=
            "| " + escaped(law.at("law").get<std::string>()) + ": " +
            escaped(law.at("statement").get<std::string>()) + " | " + value_of(law.at("verdict")) +
            (law.at("reason").is_null() ? "" : ": " + value_of(law.at("reason"))) +
            (law.contains("doubt") ? "; " + escaped(law["doubt"].at("class").get<std::string>()) +
                                         ": " + escaped(law["doubt"].at("says").get<std::string>())
                                   : "") +
            " | " + count_text(law.at("cases").get<std::int64_t>()) + " | " + worst_text(law) +
            " |\n";
    }
    return text;
}

std::string skipped_table(const Record& laws) {
    std::string text = "| law | verdict | reason |\n|---|---|---|\n";
    for (const Record& law : laws) {
        std::string verdict = law.at("verdict");
        if (verdict != "not_applicable" && verdict != "not_run") continue;
        std::replace(verdict.begin(), verdict.end(), '_', ' ');
        text += "| " + escaped(law.at("law").get<std::string>()) + " | " + verdict + " | " +
                value_of(law.at("reason")) + " |\n";
    }
    return text;
}

}  // namespace

Record certificate(const Records& records, const std::string& result_sha256) {
    const RunVerdict v = verdict_of(records, records.end.value("interrupted", false));
    Record laws = Record::array();
    for (const Record& law : records.laws) laws.push_back(law_entry(law));
    const Record& kernel = records.run.at("kernel");
    Record judged = kernel;
    for (const char* key : {"dialect", "numerics", "typed"}) judged.erase(key);
    return {{"certificate", "attest/conformance/v1"},
            {"attest", records.run.at("attest")},
            {"kernel", judged},
            {"claims", kernel.at("numerics")},
            {"dialect", kernel.at("dialect")},
            {"profile", records.run.at("profile")},
            {"seed", records.run.at("seed")},
            {"shard", records.run.at("shard")},
            {"started", records.run.at("started")},
            {"machine", records.run.at("machine")},
            {"verdict", v.verdict},
            {"reason", v.reason},
            {"holds", v.holds},
            {"violated", v.violated},
            {"inconclusive", v.inconclusive},
            {"not_applicable", v.not_applicable},
            {"not_run", v.not_run},
            {"cases", v.cases},
            {"elements", v.elements},
            {"laws", laws},
            {"causes", records.causes},
            {"refusals", refusals_of(records)},
            {"does_not_say", limits_of(records, v)},
            {"result_sha256", result_sha256}};
}

std::string certificate_page(const Record& c) {
    const Record& kernel = c.at("kernel");
    std::string verdict = c.at("verdict");
    std::replace(verdict.begin(), verdict.end(), '_', ' ');
    std::string page = "# " + escaped(kernel.at("name").get<std::string>()) + " " +
                       escaped(kernel.at("version").get<std::string>()) + ": " + verdict +
                       " under profile " + escaped(c.at("profile").at("name").get<std::string>()) +
                       "\n\n";
    page += counted(c.at("holds").get<std::int64_t>(), "law") + " hold on " +
            counted(c.at("cases").get<std::int64_t>(), "case") + ", " +
            large_count_text(c.at("elements").get<std::int64_t>()) + " elements; " +
            count_text(c.at("violated").get<std::int64_t>()) + " violated, " +
            count_text(c.at("inconclusive").get<std::int64_t>()) + " inconclusive. " +
            counted(c.at("not_applicable").get<std::int64_t>(), "law") +
            " do not apply to what the kernel claims or takes.\n";
    for (const Record& cause : c.at("causes"))
        page += "\n- **violated**: " + escaped(cause.at("title").get<std::string>()) + " (" +
                counted(static_cast<std::int64_t>(cause.at("laws").size()), "law") + ")";
    if (!c.at("causes").empty()) page += "\n";
    Record judged = kernel;
    for (const char* key : {"features", "formats", "limits"}) {
        const std::string text = judged.contains(key) ? judged[key].dump() : "";
        judged[key] = text;
    }
    page += "\n## What was judged\n\n" + table_of(judged);
    page += "\n## By what\n\n" +
            table_of({{"attest", c.at("attest").at("version")},
                      {"catalogue", c.at("attest").at("catalogue")},
                      {"profile", c.at("profile").at("name").get<std::string>() + " " +
                                      c.at("profile").at("version").dump()},
                      {"seed", c.at("seed")},
                      {"started", c.at("started")},
                      {"result.jsonl, SHA-256", c.at("result_sha256")}}) +
            "\n## On what\n\n" + table_of(c.at("machine"));
    page += "\n## What it claims\n\nEvery bound below is derived from these claims.\n\n" +
            table_of(c.at("claims"));
    page +=
        "\n## Its dialect\n\nA dialect is a choice, not a defect: it is declared, and then "
        "held to.\n\n" +
        table_of(c.at("dialect"));
    page += "\n## The laws\n\n" + laws_table(c.at("laws"));
    page += "\n## What this certificate does not say\n\n";
    for (const Record& sentence : c.at("does_not_say"))
        page += "- " + escaped(sentence.get<std::string>()) + "\n";
    if (!c.at("refusals").empty())
        page += "\n## Refused by the kernel\n\n" + table_of(c.at("refusals"));
    page += "\n## Laws that were not tried\n\n" + skipped_table(c.at("laws"));
    return page;
}

}  // namespace attest
