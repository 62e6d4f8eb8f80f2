// Deviations of a part of the output's channels: a second pass, or a second register file, for
// those past some number.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// The first channel in which an output is wrong.
std::int64_t first_wrong_channel(const std::vector<Evidence>& wrong) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const Evidence& e : wrong) {
        if (!e.output_wrong) continue;
        const Precision format = e.asked.problem.format_o;
        for (std::size_t n = 0; n < e.truth.output.size(); ++n) {
            const auto flat = static_cast<std::int64_t>(n);
            if (bound::judge(e.observed[Role::o].get(flat), e.truth.output[n], format) ==
                bound::Agreement::disagrees)
                first = std::min(first, flat % value_dim(e.asked.problem));
        }
    }
    return first;
}

/// From channel `at` on, or from the first that keys do not have, or from the first behind the last
/// whole vector of so many.
struct FirstChannel {
    std::string id;
    std::optional<std::int64_t> at;
    std::int64_t vector = 0;

    std::int64_t of(const Problem& p) const {
        if (vector > 0) return value_dim(p) - value_dim(p) % vector;
        return at.value_or(p.dim_qk);
    }
    std::string says() const {
        return vector > 0 ? fmt::format("behind the last whole {}", vector)
                          : fmt::format("from {} on", id);
    }
};

Deviation from_channel(const Deviation& d, const FirstChannel& first) {
    return {.id = fmt::format("{}_from_channel_{}", d.id, first.id),
            .says = fmt::format("{}, in the output's channels {}", d.says, first.says()),
            .formula = [d, first](const Specification& s,
                                  const bound::Expected& truth) -> std::optional<bound::Expected> {
                const std::int64_t dim = value_dim(s.problem), from = first.of(s.problem);
                if (dim <= from) return std::nullopt;
                std::optional<bound::Expected> own = predict(d, s, truth);
                if (!own || own->output.empty()) return std::nullopt;
                for (std::size_t n = 0; n < own->output.size(); ++n)
                    if (static_cast<std::int64_t>(n) % dim < from) own->output[n] = truth.output[n];
                own->lse = truth.lse;
                return own;
            },
            .tells = d.tells,
            .by_parts = d.by_parts};
}

}  // namespace

std::vector<Deviation> in_some_channels(const AllEvidence& evidence) {
    std::vector<Deviation> list;
    const std::int64_t first = first_wrong_channel(evidence.wrong);
    const auto call = std::ranges::find_if(evidence.wrong, &Evidence::output_wrong);
    if (call == evidence.wrong.end()) return list;
    std::vector<FirstChannel> firsts;
    if (first > 0) firsts = {{"D", std::nullopt}, {fmt::format("{}", first), first}};
    for (const std::int64_t vector : {4, 8, 16, 32})
        firsts.push_back({fmt::format("rest_{}", vector), std::nullopt, vector});
    const auto try_one = [&](const Deviation& d) {
        for (const FirstChannel& from : firsts)
            if (Deviation mine = from_channel(d, from); agrees(mine, *call))
                list.push_back(std::move(mine));
    };
    std::ranges::for_each(deviations(), try_one);
    return list;
}

}  // namespace attest::diagnosis
