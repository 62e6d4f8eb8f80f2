#include "ci/run_words.hpp"

#include <algorithm>
#include <utility>

#include "ci/number.hpp"
#include "ci/screen.hpp"
#include "kernels/worker/confinement.hpp"
#include "properties/search/campaign.hpp"
#include "properties/search/capability.hpp"

namespace attest::ci {

std::string chance_text(const RunReport& report) {
    const double chance = chance_of(report);
    if (chance == 0) return {};
    return "statistics accuse or suspect a correct kernel in at most " + bound_text(chance) +
           " of such runs";
}

std::string unjudged(const RunReport& report) {
    const auto of_backward = [](const search::LawReport& law) {
        const law::Property* property = law::find_property(law.law);
        return property != nullptr && property->needs.backward && law.cases > 0;
    };
    const bool judged = std::ranges::any_of(report.laws, of_backward);
    const auto of_dropout = [](const search::LawReport& law) {
        const law::Property* property = law::find_property(law.law);
        return property != nullptr && property->cases.require.has(Feature::dropout) &&
               law.cases > 0;
    };
    const bool dropout = report.run.kernel.manifest.features.has(Feature::dropout) &&
                         std::ranges::none_of(report.laws, of_dropout);
    const bool listed = !report.run.kernel.manifest.gradients.empty();
    return (judged   ? ""
            : listed ? "backward, "
                     : "backward (the manifest lists no gradients), ") +
           std::string("append (no law calls it)") + (dropout ? ", dropout" : "");
}

std::string sizes_text(const search::Sizes& sizes) {
    std::string text;
    for (int n = 0; n < search::size_axis_count; ++n) {
        const auto axis = static_cast<search::SizeAxis>(n);
        if (sizes[axis] == 0) continue;
        text.append(text.empty() ? "" : ", ").append(search::short_name(axis));
        text += " " + count_text(sizes[axis]);
    }
    return text;
}

std::string absent_barriers(const KernelReport& kernel) {
    const bool asked = std::ranges::find(kernel.options, "--unconfined") != kernel.options.end();
    // Earlier records say nothing of it.
    if (kernel.interface == kernel::KernelInterface::builtin || (kernel.barriers.empty() && !asked))
        return {};
    std::string names;
    for (const std::string_view barrier : worker::barrier_names)
        if (std::ranges::find(kernel.barriers, barrier) == kernel.barriers.end())
            names.append(names.empty() ? "" : ", ").append(barrier);
    return names;
}

namespace {

/// Those that were not run for this reason; by name, where they are few.
std::string laws_without(const RunReport& report, law::Reason::Kind reason) {
    constexpr std::int64_t named_max = 2;
    std::int64_t count = 0;
    std::string names;
    for (const search::LawReport& law : report.laws)
        if (law.verdict.decision == law::Decision::not_run && law.verdict.reason.kind == reason)
            names.append(count++ == 0 ? "" : ", ").append(law.law);
    return count <= named_max ? names : counted(count, "law");
}

}  // namespace

std::string skipped_text(const RunReport& report) {
    const RunVerdict& v = report.end->verdict;
    std::string text =
        v.not_applicable == 0 ? "" : counted(v.not_applicable, "law") + " not applicable";
    for (const auto& [reason, by] :
         {std::pair{law::Reason::Kind::not_in_profile, " left out by the profile"},
          std::pair{law::Reason::Kind::not_selected, " left out by --match"}})
        if (const std::string laws = laws_without(report, reason); !laws.empty())
            text.append(text.empty() ? "" : "; ").append(laws + by);
    if (text.empty()) text = "no law";
    if (v.cases + v.discarded > 0)
        text += "; " +
                share_text(static_cast<double>(v.discarded) /
                           static_cast<double>(v.cases + v.discarded)) +
                " of draws redrawn";
    return text;
}

std::string shard_text(const RunHeader& run) {
    return std::to_string(run.shard_index) + "/" + std::to_string(run.shard_count);
}

std::map<std::string, std::int64_t> refusals_of(const RunReport& report) {
    std::map<std::string, std::int64_t> sum;
    for (const search::LawReport& law : report.laws)
        for (const auto& [reason, count] : law.refusals) sum[reason] += count;
    return sum;
}

std::string refused_text(const RunReport& report) {
    std::int64_t refused = 0, judged = 0;
    for (const search::LawReport& law : report.laws) {
        judged += law.cases;
        refused += law.refused;
    }
    if (refused == 0) return {};
    return share_text(static_cast<double>(refused) / static_cast<double>(refused + judged)) +
           " of the draws, by the kernel" + search::commonest(refusals_of(report));
}

namespace {

/// Of each law, by what the kernel takes.
std::int64_t cases_afforded(const RunReport& report) {
    return search::cases_afforded(report.run.profile.cases_per_law,
                                  report.run.kernel.manifest.takes);
}

}  // namespace

const search::LawReport* stopped_by(const RunReport& report) {
    const auto first = std::ranges::find_if(report.laws, [](const search::LawReport& law) {
        return law.verdict.decision == law::Decision::violated ||
               law.verdict.reason.kind == law::Reason::Kind::flaky;
    });
    const auto whole = [](const search::LawReport& law) {
        return law.cases > search::cases_once_violated;
    };
    const bool cut = first != report.laws.end() &&
                     search::cases_once_violated < cases_afforded(report) &&
                     std::none_of(first + 1, report.laws.end(), whole);
    return cut && !report.run.cases && !report.run.seconds ? &*first : nullptr;
}

std::string stopped_text(const RunReport& report) {
    using Kind = law::Reason::Kind;
    const auto cut = [&](std::initializer_list<Kind> kinds) {
        return std::ranges::count_if(report.laws, [&](const search::LawReport& law) {
            return was_cut(law) && std::ranges::find(kinds, law.verdict.reason.kind) != kinds.end();
        });
    };
    const auto not_tried = [](std::int64_t laws) {
        return counted(laws, "law") + (laws == 1 ? " was" : " were") + " not tried";
    };
    const std::int64_t dead = cut({Kind::always_dead}), late = cut({Kind::time_spent}),
                       all = report.end->verdict.cut, rest = all - dead - late;
    std::string text;
    if (dead > 0)
        text +=
            "; attest stopped early: every case of the laws before ended without an answer to "
            "judge, and " +
            not_tried(dead) + ", since they could only repeat that";
    if (late > 0) text += "; the time (--time) was spent, and " + not_tried(late);
    const bool first = report.run.until_first && !report.end->interrupted;
    if (rest > 0 || report.end->interrupted)
        text += std::string(first ? "; -x ended the run with its first violation"
                                  : "; the run was interrupted") +
                (rest > 0 ? ", and " + not_tried(rest) : "");
    return text.empty() ? text : text.substr(2);
}

std::string fewer_cases_text(const RunReport& report) {
    const search::LawReport* first = stopped_by(report);
    const std::int64_t all = report.run.profile.cases_per_law, few = cases_afforded(report);
    const bool few_asked = report.run.cases && *report.run.cases < all;
    if (report.run.seconds)
        return "as many cases of each law as " + time_text(*report.run.seconds) +
               " allow (--time)" +
               (few_asked ? ", and at most " + count_text(*report.run.cases) + " (--cases)" : "") +
               ", where profile " + clean(report.run.profile.name) + " has " + count_text(all);
    if (few_asked)
        return "at most " + counted(*report.run.cases, "case") +
               " of each law (--cases), beside fixtures, where profile " +
               clean(report.run.profile.name) + " has " + count_text(all);
    if (report.run.cases || (first == nullptr && few == all)) return {};
    const std::string tries_all = "; --cases " + std::to_string(all) + " tries all";
    if (first == nullptr)
        return "at most " + count_text(few) +
               " cases of each law: the smallest problem that the kernel takes is large" +
               tries_all;
    return "at most " + count_text(search::cases_once_violated) + " cases of each law after " +
           first->law + ", which failed" + tries_all;
}

}  // namespace attest::ci
