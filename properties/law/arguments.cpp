// Every documented argument changes the result when it should. An argument that is taken and
// ignored is the commonest real bug, and no other law needs two values of it.

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "properties/law/neighbours.hpp"
#include "properties/law/paired_cases.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

struct Alternative {
    std::string argument;
    Problem problem;
    std::optional<Role> doubled{};  ///< the numbers of this tensor, instead of the problem
};

/// The case with one of its arguments taken away or given another value.
std::vector<Alternative> alternatives_of(const Problem& base) {
    std::vector<Alternative> list;
    const auto offer = [&](const char* argument, auto change) {
        Problem problem = base;
        change(problem);
        list.push_back({argument, std::move(problem)});
    };
    offer("the scale", [](Problem& p) {
        if (p.scale)
            p.scale.reset();
        else
            p.scale = 2 * effective_scale(p);
    });
    if (base.mask.causal) offer("the causal mask", [](Problem& p) { p.mask.causal = false; });
    if (base.mask.window.limited()) offer("the window", [](Problem& p) { p.mask.window = {}; });
    // Slots of a cache past the lengths hold no key: there the lengths cannot be taken away.
    if (!base.mask.lens_kv.empty() && !base.cache.present)
        offer("the list of key lengths", [](Problem& p) { p.mask.lens_kv.clear(); });
    if (!base.mask.documents_q.empty())
        offer("the packing of documents", [](Problem& p) {
            p.mask.documents_q.clear();
            p.mask.documents_kv.clear();
        });
    if (base.mask.tensor.kind != MaskKind::none)
        offer("the mask tensor", [](Problem& p) { p.mask.tensor = {}; });
    if (base.softcap > 0) offer("the soft cap", [](Problem& p) { p.softcap = 0; });
    if (base.sink) {
        offer("the sink", [](Problem& p) { p.sink = false; });
        list.push_back({"the value of the sinks", base, Role::sinks});
    }
    if (base.alibi) {
        offer("ALiBi", [](Problem& p) { p.alibi = false; });
        list.push_back({"the value of the slopes", base, Role::alibi_slopes});
    }
    if (base.rope.style != RopeStyle::none) {
        offer("the rotary embedding", [](Problem& p) {
            p.rope = {};
            p.cache.keys_rotated = false;
        });
        offer("the rotary base", [](Problem& p) { p.rope.base *= 16; });
        if (base.rope.dims != 0 && base.rope.dims != base.dim_qk && base.dim_qk % 2 == 0)
            offer("the number of rotary channels", [](Problem& p) { p.rope.dims = 0; });
    }
    return list;
}

/// nullopt: nothing was certain to change.
std::optional<Judgement> try_alternative(const Run& base, const Alternative& alternative,
                                         std::int64_t& compared) {
    const Trial& trial = base.trial();
    if (!trial.supports(alternative.problem)) return std::nullopt;
    PairedCase paired = adopt(alternative.problem, base.inputs());
    if (alternative.doubled) {
        Tensor& numbers = paired.inputs[*alternative.doubled];
        for (std::int64_t h = 0; h < numbers.size(); ++h) numbers.set(h, 2 * numbers.get(h));
    }
    const Run other(trial, paired.problem, std::move(paired.inputs));
    for (const RowMatch& match : defined_rows(base)) {
        const auto [b, h, i] = match.first;
        for (std::int64_t c = 0; c < value_dim(base.problem()); ++c) {
            const std::int64_t at = base.output().flat(b, h, i, c);
            const auto change = contrast(other, at, base, at);
            if (!change) continue;
            ++compared;
            if (!change->absent()) continue;
            return violated(
                missing_change(other, *change,
                               fmt::format("{} makes no difference to {}", alternative.argument,
                                           name_of(base.problem(), match.first))),
                compared);
        }
    }
    return std::nullopt;
}

}  // namespace

Judgement arguments_matter(const Trial& trial) {
    const Run base(trial);
    std::int64_t compared = 0;
    for (const Alternative& alternative : alternatives_of(base.problem()))
        if (auto verdict = try_alternative(base, alternative, compared)) return *verdict;
    return nothing_compared(compared, 0, "no argument of this case changes the result for certain");
}

}  // namespace attest::law
