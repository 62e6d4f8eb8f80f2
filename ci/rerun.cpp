#include "ci/rerun.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "ci/machine.hpp"
#include "ci/number.hpp"
#include "ci/process_files.hpp"
#include "ci/session_options.hpp"
#include "kernels/interface/builtin.hpp"
#include "properties/search/few_shapes.hpp"
#include "properties/search/glob.hpp"
#include "properties/search/limited_kernel.hpp"
#include "properties/search/session_kernel.hpp"
#include "properties/search/workbench.hpp"

namespace attest::ci {

namespace {

using Place = std::pair<std::string, std::int64_t>;  // law and number

/// What is recorded of a number, or what came of it now.
struct Came {
    const search::CaseRecord* record = nullptr;
    std::int64_t discarded = 0, refused = 0;
};

std::map<Place, Came> recorded_numbers(const RunReport& report) {
    std::map<Place, Came> all;
    for (const search::CaseReport& one : report.cases)
        if (one.record.number >= 0) all[{one.law, one.record.number}].record = &one.record;
    for (const search::DrawReport& one : report.draws) {
        if (one.number < 0) continue;
        Came& came = all[{one.law, one.number}];
        came.discarded = one.discarded;
        came.refused = one.refused;
    }
    return all;
}

/// Empty where both say the same.
std::string difference(const Came& then, const search::SlotResult& now, bool bits) {
    if (then.discarded != now.discarded || then.refused != now.refused)
        return "other draws were dropped or refused";
    if ((then.record == nullptr) != !now.record) return "one of the two judged no case";
    if (then.record == nullptr) return {};
    const search::CaseRecord &a = *then.record, &b = *now.record;
    if (a.tried != b.tried) return "the seed draws another case: " + print(b.tried);
    if (a.verdict.decision != b.verdict.decision || a.outcome != b.outcome)
        return std::string(name(a.verdict.decision)) + " is recorded, and " +
               std::string(name(b.verdict.decision)) + " came";
    if (bits && a.outputs != b.outputs) return "other bits came out";
    return {};
}

/// A law that is recorded as not applicable must be so of this kernel, and the other way round.
std::string other_laws(const RunReport& report, const search::Capability& capability) {
    for (const law::Property& property : law::catalogue()) {
        const search::LawReport* law = report.law(property.id);
        const auto kind = law->verdict.reason.kind;
        if (law->verdict.reason.on_purpose()) continue;
        if (search::why_not_applicable(property, capability).has_value() !=
            (kind == law::Reason::Kind::kernel_lacks))
            return property.id + ": whether it applies to this kernel is not as recorded";
    }
    return {};
}

std::vector<law::Property> laws_asked(const RunHeader& run) {
    std::vector<law::Property> laws;
    for (const law::Property& law : law::catalogue())
        if (run.profile.has(law.id) && search::selected(run.match, law.id)) laws.push_back(law);
    return laws;
}

/// attest's own program and kernels are others in every build; its version and laws have been
/// compared.
std::set<std::string> other_files(const RunReport& report, const FileDigests& now) {
    FileDigests judged = report.run.kernel.libraries;
    std::set<std::string> others;
    if (judged.empty()) return others;
    judged.insert(report.end->libraries.begin(), report.end->libraries.end());
    for (const auto& [name, digest] : now) {
        const auto then = judged.find(name);
        const bool own =
            name.starts_with("attest_worker") || name.starts_with(kernel::builtin_library);
        if (!own && (then == judged.end() || then->second != digest)) others.insert(name);
    }
    return others;
}

Rerun judged_again(const RunReport& report, const CommandOptions& options,
                   const search::CampaignOptions& campaign) {
    search::TimeLimit limit(campaign.session, search::patience_of(campaign.kernel));
    auto loaded = std::make_unique<search::SessionKernel>(campaign.kernel, campaign.session);
    search::LimitedKernel kernel(std::move(loaded), limit);
    std::vector<std::string> narrowed;
    search::Capability capability = search::probed_capability(kernel, narrowed);
    if (std::string other = other_laws(report, capability); !other.empty()) return {other, {}};
    capability.shapes =
        search::shapes_for(laws_asked(report.run), kernel, capability, campaign, {});
    if (capability.shapes &&
        !std::ranges::equal(capability.shapes->chosen(), report.end->shapes_chosen))
        return {{}, {}, "not made: failures that were stored before it were among its shapes"};
    kernel.keep_to(capability.shapes);

    const std::map<Place, Came> all = recorded_numbers(report);
    std::vector<Place> places;
    for (const auto& [place, came] : all) places.push_back(place);
    const std::uint64_t seed = options.seed ? *options.seed : std::random_device()();
    std::shuffle(places.begin(), places.end(), std::mt19937_64(seed));
    places.resize(std::min(places.size(), static_cast<std::size_t>(options.rerun)));

    const bool bits = report.run.kernel.manifest.numerics.deterministic &&
                      report.run.machine.isa == this_machine().isa;
    search::Workbench bench(campaign, capability, limit);
    std::int64_t elements = 0;
    for (const Place& place : places) {
        const law::Property& property = *law::find_property(place.first);
        const search::SlotResult now = bench.try_slot(kernel, property, {0, place.second, {}});
        const std::string other = difference(all.at(place), now, bits);
        if (!other.empty())
            return {property.id + ", case number " + std::to_string(place.second) + ": " + other +
                        " (--seed " + std::to_string(seed) + " picks it again)",
                    {}};
        if (now.record) elements += now.record->verdict.elements;
    }
    return {{},
            counted(static_cast<std::int64_t>(places.size()), "number") +
                " drawn and judged again, " + large_count_text(elements) + " elements: the same" +
                (bits ? ", every bit of each answer too" : "; bits not compared") + " (--seed " +
                std::to_string(seed) + ")"};
}

}  // namespace

Rerun rerun_cases(const RunReport& report, const CommandOptions& options) {
    search::CampaignOptions campaign;
    campaign.kernel = kernel::parse_kernel_spec(options.kernel, options.python);
    campaign.shapes = report.run.shapes;
    campaign.profile = search::profile_for(report.run.profile, report.run.shapes);
    campaign.seed = report.run.seed;
    campaign.session = session_options(options);
    campaign.session.poison_seed = report.run.seed;
    const FileDigests first = kernel_files(campaign.kernel, campaign.session);
    LaterFiles later(first);
    campaign.session.before_end = [&](worker::Session& session) { later.look(session); };
    Rerun rerun = judged_again(report, options, campaign);
    rerun.other_files = other_files(report, first);
    FileDigests more = later.found();
    // How many modules of a package some of the cases import says nothing.
    std::erase_if(more, [](const auto& file) { return file.first.ends_with(" modules)"); });
    rerun.other_files.merge(other_files(report, more));
    return rerun;
}

}  // namespace attest::ci
