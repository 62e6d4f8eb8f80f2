// certificate.json: the records of the run, picked.

#include "ci/certificate.hpp"
#include "ci/record.hpp"
#include "ci/record_writer.hpp"
#include "reference/problem/digest.hpp"

namespace attest::ci {

namespace {

Record record_of(const auto& report) {
    return Record::parse(record_line(report));
}

void copy(const Record& from, Record& into, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
        if (from.contains(key)) into[key] = from[key];
}

Record law_entry(const search::LawReport& law) {
    Record entry{{"statement", full_statement(law)}, {"worst", nullptr}};
    copy(record_of(law), entry,
         {"law", "compares", "verdict", "reason", "cases", "discarded", "refused", "elements",
          "worst", "statistic", "pooled", "doubt", "doubted", "counterexample", "largest",
          "promised"});
    entry["missed_share"] = missed_share(law);
    return entry;
}

/// Lists and what has parts as words with commas between: "queries one, head_dims 64 128".
std::string fact_text(const Record& value) {
    if (value.is_null() || (value.is_structured() && value.empty())) return "none";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_structured()) return value.dump();
    std::string text;
    for (const auto& [key, part] : value.items())
        text += (text.empty() ? "" : ", ") + (value.is_object() ? key + " " : "") + fact_text(part);
    return text;
}

Facts facts(const Record& object) {
    Facts list;
    for (const auto& [key, value] : object.items()) list.emplace_back(key, fact_text(value));
    return list;
}

}  // namespace

std::string certificate_text(const Certificate& c) {
    const RunVerdict& v = c.report.end->verdict;
    const Record run = record_of(c.report.run);
    Record out{{"certificate", "attest/conformance/v1"},
               {"title", c.title()},
               {"whole", c.whole()},
               {"verdict", name(v.decision)},
               {"reason", v.reason},
               {"laws", Record::array()},
               {"causes", Record::array()},
               {"refusals", c.refusals},
               {"does_not_say", c.does_not_say},
               {"result_sha256", c.result_sha256}};
    copy(run, out,
         {"attest", "profile", "seed", "shard", "started", "machine", "argv", "budget", "threads"});
    copy(record_of(*c.report.end), out,
         {"cases", "elements", "at", "kernel_sha256", "libraries", "narrowed"});
    out["profile_sha256"] = sha256_hex(profile_text(c.report.run.profile));
    out.update(record_of(*c.report.end)["laws"]);
    out["kernel"] = run["kernel"];
    for (const char* key : {"dialect", "numerics", "typed"}) out["kernel"].erase(key);
    out["claims"] = run["kernel"]["numerics"];
    out["dialect"] = run["kernel"]["dialect"];
    for (const search::LawReport& law : c.report.laws) out["laws"].push_back(law_entry(law));
    for (const diagnosis::CauseReport& cause : c.report.causes)
        out["causes"].push_back(record_of(cause));
    const std::string& own = c.report.run.own_profile;
    if (!own.empty()) out["own_profile"] = {{"text", own}, {"sha256", sha256_hex(own)}};
    return record_text(out, 1) + "\n";
}

RunFacts facts_of(const RunHeader& header) {
    Record run = record_of(header);
    Record& kernel = run["kernel"];
    RunFacts out{{}, facts(kernel["numerics"]), facts(kernel["dialect"]), facts(run["machine"])};
    for (const char* key : {"dialect", "numerics", "typed", "libraries"}) kernel.erase(key);
    out.kernel = facts(kernel);
    return out;
}

}  // namespace attest::ci
