// Dropout, judged by masks that are read off the kernel's answers and never taken from it: how many
// weights it drops, whether their fates are independent, and what it makes of those it keeps.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/dropout_cases.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/law/kept_count.hpp"
#include "properties/law/reading.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::law {

namespace {

constexpr const char* source = "Srivastava et al. 2014; Vaswani et al. 2017, section 5.4";

/// With so many cells none dropped, or none kept, is a surprise: (1 - p)^n < kept_rate / 2; and
/// some more, for other wrong rates.
std::int64_t cells_enough(double p) {
    return 2048 + static_cast<std::int64_t>(24 / std::min(p, 1 - p));
}
constexpr std::int64_t calls_most = 160, calls_most_of_rare = 400;
/// One case of these says as much as hundreds of calls can.
constexpr std::int64_t cases_of_masks = 24;

/// Seeds come in pairs so far apart, no two the same: beyond 2^31 they may be cut off.
constexpr std::array<std::uint64_t, 4> seed_steps = {1, 256, 65536, 8388608};
Problem with_seed(const Problem& p, std::uint64_t number) {
    const std::uint64_t pair = number / 2;
    return reseeded(p, 1000 * pair + (number % 2 == 1 ? seed_steps[pair % seed_steps.size()] : 0));
}

/// Masks of one seed after another until there are cells enough; `visit` takes each with its
/// number.
template <typename Visit>
std::optional<Judgement> each_mask(const Trial& trial, const Problem& p, const TensorSet& inputs,
                                   Visit visit) {
    const double rare = std::min(p.dropout.p, 1 - p.dropout.p);
    const std::int64_t calls = rare < 0x1p-8 ? calls_most_of_rare : calls_most;
    const std::int64_t masks = std::max<std::int64_t>(2, calls / reading_calls(p));
    std::int64_t cells = 0;
    for (std::int64_t n = 0; n < masks && cells < cells_enough(p.dropout.p); ++n) {
        const auto number = static_cast<std::uint64_t>(n);
        const KeptMask mask = read_mask(trial, with_seed(p, number), inputs);
        if (mask.contradiction) return mask.contradiction;
        visit(mask, number);
        cells += mask.cells;
    }
    return std::nullopt;
}

template <typename Visit>
std::optional<Judgement> each_mask(const Trial& trial, Visit visit) {
    return each_mask(trial, trial.problem(), trial.inputs(), visit);
}

KeptCount dropped_weights(const Problem& p) {
    return {"visible weights are dropped", p.dropout.p};
}

void count_dropped(const KeptMask& mask, KeptCount& dropped) {
    dropped.of += mask.cells;
    dropped.hits += mask.dropped();
}

Judgement check_rate(const Trial& trial) {
    KeptCount dropped = dropped_weights(trial.problem());
    const auto lie = each_mask(
        trial, [&](const KeptMask& mask, std::uint64_t) { count_dropped(mask, dropped); });
    return lie ? *lie : judge_counts({dropped});
}

/// Pairs of cells of one mask, no cell in two of them: one that is `shift` away along the
/// axes, or the one with query and key exchanged.
struct DistantPairs {
    Shape shift{};
    bool exchanged = false;
    KeptCount alike;

    std::optional<Shape> other(const Shape& at, const Shape& shape) const {
        if (exchanged) {
            const Shape to{at[0], at[1], at[3], at[2]};
            return at[2] < at[3] && at[3] < shape[2] ? std::optional(to) : std::nullopt;
        }
        Shape to = at;
        bool first = true;
        for (std::size_t axis = 0; axis < to.size(); ++axis) {
            if (shift[axis] != 0 && std::exchange(first, false) && at[axis] / shift[axis] % 2 != 0)
                return std::nullopt;
            to[axis] += shift[axis];
            if (to[axis] < 0 || to[axis] >= shape[axis]) return std::nullopt;
        }
        return to;
    }
    void add(const KeptMask& mask) {
        const Shape& shape = mask.keep.shape();
        for (std::int64_t at = 0; at < mask.keep.size(); ++at) {
            const auto to = mask.sees(at) ? other(index_of(shape, at), shape) : std::nullopt;
            if (!to) continue;
            const std::int64_t second = mask.keep.flat((*to)[0], (*to)[1], (*to)[2], (*to)[3]);
            if (mask.sees(second)) alike.add(mask.kept(at) == mask.kept(second));
        }
    }
};

// Distances at which real generators repeat themselves: neighbours, tiles, heads of one group; and
// cells that one sum, one difference or one unordered pair of numbers stands for.
std::vector<DistantPairs> pairs_of(const Problem& p, double chance, const std::string& among = "") {
    const char* names[] = {"sequences", "heads", "queries", "keys"};
    const Shape shape{p.batch, p.heads_q, p.len_q, p.len_kv};
    std::vector<DistantPairs> all;
    const auto add = [&](const Shape& shift, bool exchanged, const std::string& which) {
        all.push_back({shift, exchanged, {"weights of " + which + among + " are alike", chance}});
    };
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        std::set<std::int64_t> distances{1, 2, 4, 8, 16, 32, 64, 128, 256};
        if (axis == 1) distances = {1, p.heads_kv, group_size(p)};
        for (const std::int64_t distance : distances) {
            Shape shift{};
            shift[axis] = distance;
            if (distance < shape[axis])
                add(shift, false, fmt::format("{} {} apart", names[axis], distance));
        }
    }
    add({0, 0, 1, 1}, false, "neighbours down a diagonal");
    add({0, 0, 1, -1}, false, "neighbours up a diagonal");
    // Of one sum of two indices, or of one place in memory by a stride of something else.
    add({1, -1, 0, 0}, false, "sequences 1 apart, a head before,");
    add({1, 0, -1, 0}, false, "sequences 1 apart, a query before,");
    add({1, 0, 0, -1}, false, "sequences 1 apart, a key before,");
    add({0, 1, -1, 0}, false, "heads 1 apart, a query before,");
    add({0, 1, 0, -1}, false, "heads 1 apart, a key before,");
    add({1, -p.heads_kv, 0, 0}, false, "sequences 1 apart, Hkv heads before,");
    add({0, 0, 1, -p.len_q}, false, "queries 1 apart, Tq keys before,");
    add({}, true, "query and key exchanged");
    return all;
}

Judgement check_independent(const Trial& trial) {
    const double p = trial.problem().dropout.p, chance = p * p + (1 - p) * (1 - p);
    std::vector<DistantPairs> pairs = pairs_of(trial.problem(), chance);
    // Of another rate, other shares are alike: that is told first.
    std::vector<KeptCount> counts{dropped_weights(trial.problem())};
    for (const std::uint64_t step : seed_steps)
        counts.push_back({fmt::format("weights of seeds {} apart are alike", step), chance});
    Tensor before;
    const auto lie = each_mask(trial, [&](const KeptMask& mask, std::uint64_t number) {
        count_dropped(mask, counts.front());
        for (DistantPairs& one : pairs) one.add(mask);
        KeptCount& seeds = counts[1 + number / 2 % seed_steps.size()];
        for (std::int64_t at = 0; number % 2 == 1 && at < mask.keep.size(); ++at)
            if (mask.sees(at)) seeds.add(mask.keep.bits(at) == before.bits(at));
        before = mask.keep;
    });
    if (lie) return *lie;
    const auto taken = [&trial](const Problem& more) { return trial.supports(more); };
    if (const std::optional<Problem> more = with_more_keys(trial.problem(), taken)) {
        std::vector<DistantPairs> far =
            pairs_of(*more, chance, fmt::format(" among {} keys", more->len_kv));
        const auto other_lie = each_mask(trial, *more, make_inputs({*more, {}}),
                                         [&](const KeptMask& mask, std::uint64_t) {
                                             for (DistantPairs& one : far) one.add(mask);
                                         });
        if (other_lie) return *other_lie;
        std::ranges::move(far, std::back_inserter(pairs));
    }
    for (DistantPairs& one : pairs) counts.push_back(std::move(one.alike));
    return judge_counts(counts);
}

/// What is read, with values of one: O_i is 1/(1-p) times the share that is kept of the row.
TensorSet ones(const Problem& p, TensorSet inputs) {
    inputs[Role::v] = tensor_of(p, Role::v, [](auto, auto, auto, auto) { return 1.0; });
    return inputs;
}

// T = sum over the visible cells of w (M/(1-p) - 1), w = 1/n of the row's n, is a sum of
// independent terms of mean 0, variance w^2 p/(1-p), and size at most b = w max(1, p/(1-p)):
// Bernstein, P(|T| > t) <= 2 exp(-t^2 / (2 (V + b t/3))), which is the rate at t = sqrt(2 V L +
// (bL/3)^2) + bL/3.
struct RowSums {
    double sum = 0, variance = 0, most = 0;
    std::int64_t cells = 0;

    void add(const KeptMask& mask, double p) {
        const std::int64_t keys = mask.keep.shape()[3];
        for (std::int64_t row = 0; row < mask.keep.size(); row += keys) {
            std::int64_t seen = 0, kept = 0;
            for (std::int64_t at = row; at < row + keys; ++at)
                if (mask.sees(at)) ++seen, kept += mask.kept(at) ? 1 : 0;
            if (seen == 0) continue;
            const auto n = static_cast<double>(seen);
            sum += static_cast<double>(kept) / (1 - p) / n - 1;
            variance += p / (1 - p) / n;
            most = std::max(most, std::max(1.0, p / (1 - p)) / n);
            cells += seen;
        }
    }
    double threshold() const {
        const double l = std::log(2 / kept_rate), third = most * l / 3;
        return std::sqrt(2 * variance * l + third * third) + third;
    }
};

Judgement check_mean(const Trial& trial) {
    const double p = trial.problem().dropout.p;
    RowSums sums;
    Judgement scaled = holds(0);
    const auto lie = each_mask(trial, [&](const KeptMask& mask, std::uint64_t number) {
        const Problem problem = with_seed(trial.problem(), number);
        sums.add(mask, p);
        if (number > 0 || scaled.violated()) return;  // once says it
        TensorSet known = ones(problem, trial.inputs());
        const TensorSet answer = trial.run(problem, known);
        known.put(Role::dropout_keep, mask.keep);
        scaled = trial.compare(problem, known, answer);
    });
    if (lie) return *lie;
    if (scaled.violated() || sums.cells == 0) return scaled;
    const double threshold = sums.threshold();
    if (!(std::abs(sums.sum) <= threshold)) {
        Violation v;
        v.problem = fmt::format(
            "row sums of the weights are {:.4g} too much in all; by chance it "
            "would be {:.4g} at most",
            sums.sum, threshold);
        v.index = {0, 0, 0, 0};
        v.element_name = "sum of the weights";
        v.observed = sums.sum;
        v.bound = threshold;
        v.bound_kind = BoundKind::statistic;
        v.ratio = std::abs(sums.sum) / threshold;
        scaled = violated(std::move(v), sums.cells);
    }
    scaled.statistic = Statistic{"sum of the weights", sums.sum, threshold, kept_rate, sums.cells};
    return scaled;
}

Property of_masks(std::string id, std::string statement, std::string statement_short,
                  std::string why, Plan (*check)(const Given&),
                  std::vector<PlantedDeviation> turned_red_by) {
    return {.id = std::move(id),
            .statement = std::move(statement),
            .statement_short = std::move(statement_short),
            .why = std::move(why),
            .source = source,
            .compares = Compares::statistic,
            .cases = dropout_cases(1),
            .cases_enough = cases_of_masks,
            .check = check,
            .turned_red_by = std::move(turned_red_by)};
}

}  // namespace

std::vector<Property> dropout_masks() {
    using namespace planted;
    return {
        of_masks(
            "dropout.rate", "Dropout drops a share of p of the weights.",
            "a share of p of the weights is dropped",
            "With queries of zero a row's weights are alike, and with one-hot values the "
            "output is one of them: zero where it was dropped. The number dropped is binomial; "
            "Chernoff's bound on its tails is left with probability 1e-9.",
            always<check_rate>, {dropped_by_one_minus_p()}),
        of_masks("dropout.independent",
                 "Weights are dropped independently across keys, queries, heads, sequences, seeds.",
                 "each weight is dropped by itself",
                 "Two cells are alike with probability p^2 + (1-p)^2. Pairs that share no "
                 "cell are "
                 "counted along each axis, at the distances of neighbours, tiles and groups, on "
                 "diagonals, and between seeds, and again among more keys than a tile has, "
                 "where the kernel takes so many; "
                 "Chernoff's bounds on all counts are left with probability 1e-9.",
                 always<check_independent>,
                 {one_mask_for_all_heads(), one_mask_for_all_seeds(), one_mask_for_all_sequences(),
                  one_mask_for_all_rows(), one_mask_for_128_keys(), one_mask_for_sums()}),
        of_masks("dropout.mean", "On average over seeds dropout changes no row sum.",
                 "kept weights make up for dropped ones",
                 "E[M/(1-p)] = 1. With values of one, and equal scores, a row's output is within "
                 "its bound of (kept / seen) / (1-p); and those numbers differ from 1 by a sum of "
                 "independent terms, which leaves Bernstein's bound with probability 1e-9.",
                 always<check_mean>, {dropout_factor_missing(), dropped_by_one_minus_p()}),
    };
}

}  // namespace attest::law
