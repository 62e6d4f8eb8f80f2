// What a kernel declares and takes, before and after.

#include <algorithm>

#include "ci/gate.hpp"
#include "ci/number.hpp"
#include "ci/record.hpp"
#include "ci/run_words.hpp"
#include "ci/screen.hpp"
#include "kernels/interface/manifest_takes.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

namespace {

using Kind = GateChange::Kind;

struct KernelComparison {
    const RunReport& baseline;
    const RunReport& candidate;
    GateChanges& changes;

    template <typename... Words>
    void add(Words&&... words) {
        changes.add(std::forward<Words>(words)...);
    }
};

void compare_claims(KernelComparison& c) {
    const RunFacts then = facts_of(c.baseline.run), now = facts_of(c.candidate.run);
    const auto each = [&](const char* prefix, const Facts& before, const Facts& after) {
        for (const auto& [key, value] : after) {
            const auto at = std::ranges::find(before, key, &Facts::value_type::first);
            const std::string was = at == before.end() ? "none" : at->second;
            if (was != value)
                c.add(Kind::worse, prefix + key, clean(was), clean(value),
                      "the bounds follow from what is declared: another claim is another promise");
        }
    };
    each("claims.", then.claims, now.claims);
    each("dialect.", then.dialect, now.dialect);
}

std::string takes_text(const kernel::Manifest& manifest) {
    const auto takes = kernel::takes_json(manifest.takes);
    return takes.empty() ? "all it lists" : clean(takes.dump());
}

void compare_taken(KernelComparison& c) {
    const kernel::Manifest &then = c.baseline.run.kernel.manifest,
                           &now = c.candidate.run.kernel.manifest;
    for (int n = 0; n < feature_count; ++n) {
        const auto feature = static_cast<Feature>(n);
        const std::string subject = "feature." + std::string(name(feature));
        if (then.features.has(feature) && !now.features.has(feature))
            c.add(Kind::worse, subject, "declared", "not declared");
        if (!then.features.has(feature) && now.features.has(feature))
            c.add(Kind::better, subject, "not declared", "declared");
    }
    for (const kernel::Formats& formats : then.formats)
        if (std::ranges::find(now.formats, formats) == now.formats.end())
            c.add(Kind::worse, "format." + words(formats), "taken", "not taken");
    if (then.takes != now.takes) {
        const auto lost =
            std::ranges::find_if(c.baseline.cases, [&](const search::CaseReport& one) {
                return kernel::refusal(now.takes, one.record.tried.problem).has_value();
            });
        const bool less = lost != c.baseline.cases.end();
        c.add(less ? Kind::worse : Kind::told, "takes", takes_text(then), takes_text(now),
              less ? "it takes no longer " + print(lost->record.tried.problem)
                   : "of the cases kept of the baseline it takes all");
    }
    const std::vector<std::string>&before = c.baseline.end->narrowed,
          &after = c.candidate.end->narrowed;
    for (const std::string& limit : after)
        if (std::ranges::find(before, limit) == before.end())
            c.add(Kind::worse, "taken", "more", "less", "takes now only " + clean(limit));
    const search::Sizes was = sizes_of(c.baseline).judged, is = sizes_of(c.candidate).judged;
    for (int n = 0; n < search::size_axis_count; ++n) {
        const auto axis = static_cast<search::SizeAxis>(n);
        // Fewer cases, since attest itself stopped, reach less far: that is said of the cases.
        if (is[axis] < was[axis] && (is[axis] == 0 || stopped_by(c.candidate) == nullptr))
            c.add(Kind::worse, "size." + std::string(name(axis)), count_text(was[axis]),
                  count_text(is[axis]), "the largest that was judged");
    }
    const auto refused = [](const RunReport& report) {
        std::int64_t sum = 0;
        for (const search::LawReport& law : report.laws) sum += law.refused;
        return sum;
    };
    if (refused(c.candidate) > refused(c.baseline))
        c.add(Kind::worse, "refused", counted(refused(c.baseline), "draw"),
              counted(refused(c.candidate), "draw"), "it says no to what was taken before");
}

// Pairs of features that were drawn together and no longer can be.
void compare_pairs(KernelComparison& c) {
    for (const search::CoverageReport& now : c.candidate.coverage) {
        const auto at =
            std::ranges::find(c.baseline.coverage, now.format, &search::CoverageReport::format);
        if (at == c.baseline.coverage.end() || at->features != now.features) continue;
        std::int64_t lost = 0;
        std::string first;
        for (const search::CoverageReport::Pair& pair : now.impossible) {
            if (std::ranges::find(at->impossible, pair) != at->impossible.end()) continue;
            if (++lost == 1)
                first = now.features[static_cast<std::size_t>(pair[0])] + " with " +
                        now.features[static_cast<std::size_t>(pair[1])];
        }
        if (lost > 0)
            c.add(Kind::worse, "pairs." + std::string(name(now.format)), "taken", "refused",
                  counted(lost, "feature pair") + ", such as " + clean(first));
    }
}

}  // namespace

void compare_kernels(const RunReport& baseline, const RunReport& candidate, GateChanges& changes) {
    KernelComparison c{baseline, candidate, changes};
    compare_claims(c);
    compare_taken(c);
    compare_pairs(c);
}

}  // namespace attest::ci
