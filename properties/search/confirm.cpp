#include "properties/search/confirm.hpp"

#include <algorithm>
#include <cmath>

namespace attest::search {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds replays_time{4};

// A thousand cases take seconds to judge again; what needs longer is told as not repeated.
constexpr std::chrono::seconds sequence_time{20};

constexpr PlacementOrder other(PlacementOrder placement) {
    return placement == PlacementOrder::even ? PlacementOrder::odd : PlacementOrder::even;
}

/// Replays up to the limit, or until the time is spent and a few were made.
template <typename Fails>
Replays replay(ReplayLimit limit, const Fails& fails) {
    Replays replays;
    const auto deadline = Clock::now() + replays_time;
    while (replays.of < limit.most && (replays.of < replays_least || Clock::now() < deadline)) {
        ++replays.of;
        replays.failed += fails();
        if (limit.until_both && replays.failed > 0 && replays.failed < replays.of) break;
    }
    return replays;
}

/// The past of one failure, tried in parts.
class PastSearch {
public:
    PastSearch(Kernel& kernel, const law::Property& property, const CaseRecord& found)
        : kernel_(kernel), property_(property), found_(found), kind_(*failure_kind(found)) {}

    /// The shortest sequence found after which the case fails, in two fresh processes; empty where
    /// there is none.
    std::vector<Judging> find() {
        std::vector<Judging> all;
        if (found_.past)
            for (const auto& judged : *found_.past) all.push_back(*judged);
        std::vector<Judging> last;
        for (std::size_t length = 1; open(); length *= 2) {
            const std::size_t taken = std::min(length, all.size());
            last.assign(all.end() - static_cast<std::ptrdiff_t>(taken), all.end());
            if (fails(last)) break;
            if (taken == all.size()) return {};
        }
        if (last.empty() || !open()) return {};
        reduce(last);
        return fails(last) ? last : std::vector<Judging>{};
    }

private:
    bool open() const { return Clock::now() < deadline_; }
    bool fails(std::span<const Judging> before) {
        const CaseRecord again =
            try_after(kernel_, before, property_, found_.tried, placement_order_of(found_.number));
        return failure_kind(again) == kind_;
    }

    /// Leaves out what is not needed: halves, quarters, ..., single cases.
    void reduce(std::vector<Judging>& before) {
        for (std::size_t part = before.size() / 2; part > 0; part /= 2)
            for (std::size_t at = 0; at < before.size() && open();) {
                std::vector<Judging> without = before;
                const auto begin = without.begin() + static_cast<std::ptrdiff_t>(at);
                const std::size_t count = std::min(part, without.size() - at);
                without.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
                if (!without.empty() && fails(without))
                    before = std::move(without);
                else
                    at += part;
            }
    }

    Kernel& kernel_;
    const law::Property& property_;
    const CaseRecord& found_;
    const FailureKind kind_;
    const Clock::time_point deadline_ = Clock::now() + sequence_time;
};

/// In either of two fresh processes, its tensors laid one way and the other.
bool fails_alone(Kernel& kernel, const law::Property& property, const Case& tried,
                 FailureKind kind) {
    for (const PlacementOrder placement : {PlacementOrder::even, PlacementOrder::odd})
        if (failure_kind(try_after(kernel, {}, property, tried, placement)) == kind) return true;
    return false;
}

}  // namespace

CaseRecord try_after(Kernel& kernel, std::span<const Judging> before, const law::Property& property,
                     const Case& tried, PlacementOrder placement) {
    kernel.restart();
    for (const Judging& earlier : before)
        judge_case(kernel, *earlier.law, earlier.tried, 0, earlier.placement);
    return judge_case(kernel, property, tried, 0, placement).record;
}

Replays replay_alone(Kernel& kernel, const law::Property& property, const Case& tried,
                     FailureKind kind, ReplayLimit limit) {
    return replay(limit, [&] { return fails_alone(kernel, property, tried, kind); });
}

std::optional<CaseRecord> first_failing(Kernel& kernel, const law::Property& property,
                                        std::span<const Case> cases, FailureKind kind) {
    // Where one of them failed the first time, none of four times as many does in 2 runs of 100.
    constexpr int passes = 4;
    const auto deadline = Clock::now() + replays_time;
    for (int pass = 0; pass < passes; ++pass)
        for (const Case& tried : cases) {
            if (Clock::now() >= deadline) return std::nullopt;
            CaseRecord record = try_after(kernel, {}, property, tried, PlacementOrder::even);
            if (failure_kind(record) == kind) return record;
        }
    return std::nullopt;
}

Confirmed by_itself(Kernel& kernel, const law::Property& property, const Case& tried,
                    FailureKind kind, Replays alone) {
    Confirmed confirmed{Confirmation::alone, alone, {}, {}};
    if (alone.failed == alone.of) return confirmed;
    // So many that, did it fail there as often, none of them would in one run of a hundred.
    constexpr double chance = 0.01;
    const double holds = 1 - static_cast<double>(alone.failed) / static_cast<double>(alone.of);
    const auto wanted = static_cast<std::int64_t>(std::ceil(std::log(chance) / std::log(holds)));
    kernel.use_processors(worker::Processors::one);
    confirmed.one_processor =
        replay({wanted}, [&] { return fails_alone(kernel, property, tried, kind); });
    kernel.use_processors(worker::Processors::all);
    kernel.restart();
    if (confirmed.one_processor.failed == 0 && confirmed.one_processor.of == wanted)
        confirmed.how = Confirmation::schedule;
    return confirmed;
}

Confirmed after_its_past(Kernel& kernel, const law::Property& property, const CaseRecord& found,
                         Replays alone) {
    Confirmed confirmed{Confirmation::flaky, alone, {}, {}};
    for (const Judging& earlier : PastSearch(kernel, property, found).find())
        confirmed.before.push_back({earlier.law->id, earlier.tried, earlier.placement});
    if (!confirmed.before.empty()) confirmed.how = Confirmation::sequence;
    return confirmed;
}

}  // namespace attest::search
