#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ci/embedded.hpp"
#include "ci/machine.hpp"
#include "ci/profile.hpp"
#include "ci/run.hpp"
#include "ci/suggest.hpp"
#include "properties/search/glob.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

namespace fs = std::filesystem;

// The run that was begun here, asked for again with what it has already shown.
Options resumed(const Options& now, Records& earlier) {
    const std::string path = now.resume + "/result.jsonl";
    if (!fs::exists(path))
        throw BadInput("--resume " + now.resume + ": has no result.jsonl",
                       {"the folder of an earlier run, such as attest-out"});
    if (!now.arguments.empty())
        throw BadInput("--resume " + now.resume + ": the kernel is the earlier run's",
                       {"attest check --resume " + now.resume});
    Records records = read_records(path);
    Options then = parse_command_line(records.run.at("argv").get<std::vector<std::string>>());
    then.seed = parse_integer<std::uint64_t>(records.run.at("seed").get<std::string>());
    then.out = then.resume = now.resume;
    then.colour = now.colour;
    then.ascii = now.ascii;
    const auto again = [](const Record& law) {
        return was_cut(law) || (law.at("verdict") == "not_run" &&
                                law.value("reason_kind", "") == name(Reason::Kind::not_selected));
    };
    std::erase_if(records.laws, again);
    // A violation whose counterexample is missing was cut while it was shrunk: its law runs again.
    std::erase_if(records.laws, [&](const Record& law) {
        return law.at("verdict") == "violated" &&
               (!law.contains("counterexample") ||
                records.counterexample(law["counterexample"].get<std::string>()) == nullptr);
    });
    std::erase_if(records.cases, [&](const Record& one) {
        return records.law(one.at("law").get<std::string>()) == nullptr;
    });
    std::erase_if(records.counterexamples, [&](const Record& one) {
        return records.law(one.at("law").get<std::string>()) == nullptr;
    });
    records.causes.clear();
    earlier = std::move(records);
    return then;
}

void require_some_law(const Options& options) {
    if (options.match.empty()) return;
    std::vector<std::string> near;
    for (const Property& law : catalogue()) {
        if (matches_any(options.match, law.id)) return;
        for (std::string name : {law.id, law.family() + ".*", law.family()})
            if (std::find(near.begin(), near.end(), name) == near.end())
                near.push_back(std::move(name));
    }
    const std::string& glob = options.match.front();
    throw BadInput("--match \"" + glob + "\" matches none of " +
                       std::to_string(catalogue().size()) + " laws" + suggestion(glob, near),
                   {"attest list laws shows them"});
}

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

std::string relative_text(const std::string& text) {
    if (!text.starts_with("/")) return text;
    std::error_code error;
    const fs::path relative = fs::relative(text, error);
    return error || relative.empty() ? fs::path(text).filename().string() : relative.string();
}

std::string file_digest(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return file ? sha256_hex(bytes.str()) : "";
}

Record kernel_record(const KernelSpec& spec, const Manifest& manifest) {
    constexpr const char* borders[] = {"builtin", "c_abi", "python", "executable"};
    Record record = Record::parse(to_json(manifest));
    record["id"] = spec.id.empty() ? spec.text : spec.id;
    record["typed"] = relative_text(spec.text);
    record["border"] = borders[static_cast<int>(spec.border)];
    if (!record.contains("features")) {
        record["features"] = Record::array();
        for (int n = 0; n < feature_count; ++n)
            if (offered_features(manifest).has(static_cast<Feature>(n)))
                record["features"].push_back(name(static_cast<Feature>(n)));
    }
    const std::string digest = spec.path.empty() ? "" : file_digest(spec.path);
    record["file"] =
        spec.path.empty() ? Record(nullptr) : Record(fs::path(spec.path).filename().string());
    record["sha256"] = digest.empty() ? Record(nullptr) : Record(digest);
    return record;
}

}  // namespace

RunPlan plan_run(const Options& options) {
    RunPlan plan;
    plan.options = options.resume.empty() ? options : resumed(options, plan.earlier);
    const Options& o = plan.options;
    if (o.arguments.empty())
        throw BadInput(o.command + ": no kernel named", {"attest " + o.command + " cpu_flash",
                                                         "attest list kernels shows those "
                                                         "built in"});
    plan.profile = load_profile(o.profile);
    require_some_law(o);
    plan.kernel = parse_kernel_spec(o.arguments.front(), o.python);
    plan.seed = o.seed ? *o.seed : random_seed();
    plan.match = o.match;
    if (!o.resume.empty()) {
        plan.match.clear();
        for (const Property& law : catalogue())
            if ((o.match.empty() || matches_any(o.match, law.id)) &&
                plan.earlier.law(law.id) == nullptr)
                plan.match.push_back(law.id);
    }
    return plan;
}

Record run_record(const RunPlan& plan, const Manifest& manifest) {
    const Options& o = plan.options;
    const Profile& p = plan.profile;
    Record argv = Record::array();
    for (const std::string& word : o.argv) argv.push_back(relative_text(word));
    const bool whole = o.match.empty() && !o.cases && !o.seconds && o.shard_count == 1;
    Record record{{"record", "run"},
                  {"v", 1},
                  {"command", o.command},
                  {"argv", argv},
                  {"attest",
                   {{"version", attest_version()},
                    {"catalogue", catalogue_digest()},
                    {"laws", catalogue().size()}}},
                  {"started", time_now()},
                  {"seed", std::to_string(plan.seed)},
                  {"shard", {{"index", o.shard_index}, {"count", o.shard_count}}},
                  {"budget",
                   {{"seconds", o.seconds ? Record(*o.seconds) : Record(nullptr)},
                    {"cases", o.cases ? Record(*o.cases) : Record(nullptr)}}},
                  {"profile",
                   {{"name", p.name},
                    {"version", p.version},
                    {"cases_per_law", p.cases_per_law},
                    {"discard_max", p.discard_max},
                    {"refuse_max", p.refuse_max},
                    {"undrawn_pairs_max", p.undrawn_pairs_max}}},
                  {"kernel", kernel_record(plan.kernel, manifest)},
                  {"machine", machine_record()},
                  {"whole", whole}};  // nothing of the profile was left out by options
    if (!o.source.empty()) record["source"] = o.source;
    return record;
}

void sort_records(Records& records) {
    std::vector<std::string> order;
    for (const Property& law : catalogue()) order.push_back(law.id);
    const auto place = [&](const Record& record) {
        return std::find(order.begin(), order.end(), record.at("law").get<std::string>()) -
               order.begin();
    };
    const auto by_law = [&](const Record& a, const Record& b) { return place(a) < place(b); };
    std::stable_sort(records.laws.begin(), records.laws.end(), by_law);
    std::stable_sort(records.counterexamples.begin(), records.counterexamples.end(), by_law);
    std::stable_sort(records.cases.begin(), records.cases.end(),
                     [&](const Record& a, const Record& b) {
                         return std::pair(place(a), a.at("number").get<std::int64_t>()) <
                                std::pair(place(b), b.at("number").get<std::int64_t>());
                     });
}

}  // namespace attest
