#include "ci/certificate.hpp"

#include <algorithm>

#include "ci/check_screen.hpp"
#include "ci/doubt.hpp"
#include "ci/escape.hpp"
#include "ci/number.hpp"
#include "ci/record.hpp"
#include "ci/run_words.hpp"
#include "ci/screen.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/digest.hpp"

namespace attest::ci {

namespace {

std::string not_claimed(const kernel::Manifest& manifest) {
    std::string list = manifest.gradients.empty() ? "backward" : "";
    for (int n = 0; n < feature_count; ++n)
        if (const auto feature = static_cast<Feature>(n); !manifest.features.has(feature))
            list.append(list.empty() ? "" : ", ").append(name(feature));
    return list;
}

std::vector<std::string> limits_of(const RunReport& report) {
    std::vector<std::string> list;
    list.push_back(
        "Nothing of other versions, builds, compilers or processors than those named "
        "here.");
    list.push_back("Nothing of speed, and nothing of memory beyond accesses outside the tensors.");
    // Rule of three: no failure in n cases leaves a share above 3/n with 5 % probability. A fault
    // may be visible to one law alone, so the cases of all the others say nothing of it.
    std::int64_t most = 0;
    for (const search::LawReport& law : report.laws) most = std::max(most, law.cases);
    if (most > 0)
        list.push_back(
            "Not that no fault exists. A fault that one law alone can see, in fewer than " +
            bound_text(3.0 / static_cast<double>(most)) + " of that law's " + count_text(most) +
            " cases, may have been missed (95 % confidence); of a law with fewer cases "
            "one that shows more often, too.");
    if (const std::string chance = chance_text(report); !chance.empty())
        list.push_back("That no chance is in it: " + chance + ".");
    if (const search::Sizes judged = sizes_of(report).judged; !judged.empty())
        list.push_back(
            "Nothing of sizes beyond the largest judged, each of which came beside "
            "small ones: " +
            sizes_text(judged) + ". A law's own may be smaller: they stand beside it.");
    const search::CoverageSummary c = search::summarise(report.coverage);
    if (c.undrawn > 0)
        list.push_back("Nothing of " + counted(c.undrawn, "feature pair") +
                       " that was never drawn.");
    list.push_back("Nothing of what no law judged: " + unjudged(report) + ".");
    if (const std::string rest = not_claimed(report.run.kernel.manifest); !rest.empty())
        list.push_back("Nothing of what is not claimed: " + rest + ".");
    for (const std::string& limit : report.end->narrowed)
        list.push_back("Nothing beyond what it was found to take: " + limit + ".");
    std::int64_t refused = 0;
    for (const search::LawReport& law : report.laws) refused += law.refused;
    if (refused > 0)
        list.push_back("Nothing of the " + count_text(refused) +
                       " problems it refused. A refusal with a reason is allowed.");
    list.push_back(
        "Its name and version are the kernel's own words; what was judged is the file "
        "whose SHA-256 stands here, where there is one.");
    return list;
}

std::string table_of(const Facts& facts) {
    std::string text = "| | |\n|---|---|\n";
    for (const auto& [name, value] : facts)
        text += "| " + markdown_escaped(name) + " | " + markdown_escaped(value) + " |\n";
    return text;
}

// Lines of a file, none of which can end the fence around them.
std::string fenced(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        out += (out.empty() ? "    " : "\n    ") + clean(text.substr(at, end - at), 2000);
        at = end + 1;
    }
    return out;
}

std::string nearest_text(const search::LawReport& law) {
    if (law.ratios)
        return ratio_text(law.ratios->worst.ratio) + " of the bound, " + law.ratios->worst.id;
    if (const auto& pooled = law.verdict.pooled)
        return "off by " + value_text(pooled->value) + " of " + value_text(pooled->threshold) +
               ", of " + count_text(pooled->samples) + " samples of all cases";
    const bool holds = law.verdict.decision == law::Decision::holds;
    return holds && law.compares == law::Compares::bits ? "to the bit" : "";
}

bool was_tried(const search::LawReport& law) {
    return law.verdict.decision != law::Decision::not_applicable &&
           law.verdict.decision != law::Decision::not_run;
}

std::string laws_table(const std::vector<search::LawReport>& laws) {
    std::string text =
        "| law | verdict | cases | missed, if alone and rarer | nearest | largest |\n"
        "|---|---|---:|---:|---|---|\n";
    for (const search::LawReport& law : laws) {
        if (!was_tried(law)) continue;
        const law::Verdict& v = law.verdict;
        text += "| " + markdown_escaped(law.law) + ": " + markdown_escaped(full_statement(law)) +
                " | " + std::string(name(v.decision)) +
                (v.decision == law::Decision::inconclusive ? ": " + markdown_escaped(v.reason.text)
                                                           : "") +
                (v.doubt ? ", but " + decision_text(law) + ": " + markdown_escaped(v.doubt->problem)
                         : "") +
                " | " + count_text(law.cases) + " | " + share_text(missed_share(law)) + " | " +
                nearest_text(law) + " | " + sizes_text(law.largest) + " |\n";
    }
    return text;
}

std::string skipped_table(const std::vector<search::LawReport>& laws) {
    std::string text = "| law | verdict | reason |\n|---|---|---|\n";
    for (const search::LawReport& law : laws)
        if (!was_tried(law))
            text +=
                "| " + markdown_escaped(law.law) + " | " +
                (law.verdict.decision == law::Decision::not_run ? "not run" : "not applicable") +
                " | " + markdown_escaped(law.verdict.reason.text) + " |\n";
    return text;
}

// How its leading case was seen again.
std::string confirmed_of(const RunReport& report, const diagnosis::CauseReport& cause) {
    const diagnosis::CounterexampleReport* lead = report.counterexample(cause.lead);
    return lead == nullptr
               ? ""
               : "; confirmed: " + markdown_escaped(confirmation_text(lead->example.confirmed));
}

}  // namespace

const std::string& full_statement(const search::LawReport& law) {
    const law::Property* property = law::find_property(law.law);
    return property == nullptr ? law.statement : property->statement;
}

Certificate certificate(const RunReport& report, const std::string& result_sha256) {
    return {report, refusals_of(report), limits_of(report), result_sha256};
}

// No failure in n cases leaves a share above 3/n with 5 % probability.
double missed_share(const search::LawReport& law) {
    return law.cases == 0 ? 1 : std::min(1.0, 3.0 / static_cast<double>(law.cases));
}

Facts made_with(const Certificate& c) {
    const RunHeader& run = c.report.run;
    std::string command = "attest";
    for (const std::string& word : run.argv) command += " " + shell_word(clean(word));
    Facts facts{{"attest", run.attest_version},
                {"command", command},
                {"catalogue, SHA-256", run.catalogue},
                {"profile", run.profile.name + " " + std::to_string(run.profile.version)},
                {"profile, SHA-256", sha256_hex(profile_text(run.profile))},
                {"result.jsonl, SHA-256", c.result_sha256},
                {"seed", std::to_string(run.seed)},
                {"started", run.started},
                {"ended", c.report.end->at},
                {"threads", std::to_string(run.threads)}};
    if (!run.kernel.sha256.empty())
        facts.emplace_back("library at the end, SHA-256",
                           c.report.end->kernel_sha256 == run.kernel.sha256
                               ? "the same"
                               : c.report.end->kernel_sha256);
    for (const auto& [file, digest] : run.kernel.libraries) facts.emplace_back(file, digest);
    for (const auto& [file, digest] : c.report.end->libraries)
        facts.emplace_back(file + ", loaded later", digest);
    return facts;
}

std::string Certificate::title() const {
    const RunVerdict& v = report.end->verdict;
    std::string verdict(name(v.decision));
    std::replace(verdict.begin(), verdict.end(), '_', ' ');
    if (was_swapped(report)) return "its file was replaced during the run: not a certificate";
    if (!whole() && report.run.shard_count != 1)
        return "shard " + shard_text(report.run) + ", " + verdict +
               ": a part of a campaign, not a certificate; attest merge joins the parts";
    if (!whole())
        return count_text(v.ran()) + " of " +
               counted(static_cast<std::int64_t>(report.laws.size()), "law") + " judged, " +
               verdict + ": not a certificate";
    const std::string passed = let_pass_text(report), suspected = suspected_text(report);
    const std::string doubt = suspected.empty() ? "" : "; " + suspected;
    if (!report.run.own_profile.empty())
        return verdict + " under a profile of its own, " + clean(report.run.profile.name) +
               ", which is not one of attest's" + (passed.empty() ? "" : " and " + passed) + doubt;
    return verdict + " under profile " + clean(report.run.profile.name) +
           (passed.empty() ? "" : ", which " + passed) + doubt;
}

std::string certificate_page(const Certificate& c) {
    const RunHeader& run = c.report.run;
    const RunVerdict& v = c.report.end->verdict;
    const RunFacts facts = facts_of(run);
    std::string page = "# " + markdown_escaped(run.kernel.manifest.name) + " " +
                       markdown_escaped(run.kernel.manifest.version) + ": " +
                       markdown_escaped(c.title()) + "\n\n";
    if (!c.whole())
        page +=
            "What follows is the record of a part: options left out laws, cases or time, or it is "
            "a "
            "shard. It certifies nothing.\n\n";
    page += counted(v.holds, "law") + (v.holds == 1 ? " holds on " : " hold on ") +
            counted(v.cases, "case") + ", " + large_count_text(v.elements) + " elements; " +
            count_text(v.violated) + " violated, " + count_text(v.inconclusive) +
            " inconclusive. " + counted(v.not_applicable, "law") +
            " do not apply to what the kernel claims or takes.\n";
    for (const diagnosis::CauseReport& cause : c.report.causes)
        page += "\n- **violated**: " + markdown_escaped(cause.title) + " (" +
                counted(static_cast<std::int64_t>(cause.laws.size()), "law") +
                confirmed_of(c.report, cause) + ")";
    for (const diagnosis::CounterexampleReport& one : c.report.counterexamples)
        if (!search::is_proven(one.example.confirmed.how))
            page += "\n- **" + std::string(name(one.example.confirmed.how)) +
                    "**: " + markdown_escaped(one.violation().problem) + " (" +
                    markdown_escaped(one.example.law) +
                    "; confirmed: " + markdown_escaped(confirmation_text(one.example.confirmed)) +
                    ")";
    const std::vector<RunDoubt> doubts = doubts_of(c.report);
    for (const RunDoubt& doubt : doubts)
        page += "\n- **" + decision_text(*doubt.law) + "**: " + markdown_escaped(doubt.problem) +
                " (" + markdown_escaped(doubt.law->law) +
                (doubt.share.empty() ? "" : ", " + doubt.share) + ")";
    if (!c.report.counterexamples.empty() || !doubts.empty()) page += "\n";
    page += "\n## What was judged\n\n" + table_of(facts.kernel);
    page += "\n## Made with\n\n" + table_of(made_with(c)) + "\n## On which machine\n\n" +
            table_of(facts.machine);
    if (!run.own_profile.empty())
        page += "\n## Its own profile\n\nSHA-256 " + sha256_hex(run.own_profile) + "\n\n~~~~\n" +
                fenced(run.own_profile) + "\n~~~~\n";
    page += "\n## What it claims\n\nEvery bound below is derived from these claims.\n\n" +
            table_of(facts.claims);
    page +=
        "\n## Its dialect\n\nA dialect is a choice, not a defect: it is declared, and then "
        "held to.\n\n" +
        table_of(facts.dialect);
    page += "\n## The laws\n\n" + laws_table(c.report.laws);
    page += "\n## What this certificate does not say\n\n";
    for (const std::string& sentence : c.does_not_say)
        page += "- " + markdown_escaped(sentence) + "\n";
    if (!c.refusals.empty()) {
        Facts refusals;
        for (const auto& [reason, count] : c.refusals)
            refusals.emplace_back(reason, std::to_string(count));
        page += "\n## Refused by the kernel\n\n" + table_of(refusals);
    }
    page += "\n## Laws that were not tried\n\n" + skipped_table(c.report.laws);
    return page;
}

}  // namespace attest::ci
