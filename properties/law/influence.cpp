#include "properties/law/influence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

double largest(const Tensor& tensor) {
    double most = 0;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const double x = std::abs(tensor.get(i));
        if (std::isfinite(x)) most = std::max(most, x);
    }
    return most;
}

/// q times a power of two, so that no score is beyond 1 in size: |scale q.k| <= |scale| d max|q|
/// max|k|. Then no visible key weighs less than exp(-2) of another one (before any bias).
TensorSet with_flat_scores(const Problem& problem, const TensorSet& inputs) {
    TensorSet flat = inputs;
    Tensor& q = flat[Role::q];
    const double score = std::abs(effective_scale(problem)) * static_cast<double>(problem.dim_qk) *
                         largest(q) * largest(inputs[Role::k]);
    if (!(score > 1)) return flat;
    int exponent = 0;
    std::frexp(score, &exponent);
    for (std::int64_t i = 0; i < q.size(); ++i) q.set(i, std::ldexp(q.get(i), -exponent));
    return flat;
}

/// Keys where masks and tiles go wrong: the first and last one a query sees, early ones, any.
std::int64_t pick_key(const Trial& trial, const Visibility& visibility, const Row& group,
                      std::uint64_t use) {
    const std::uint64_t stream = stream_of("masking.influence.key");
    const std::int64_t keys = visibility.length_kv(group.batch);
    const std::int64_t queries = visibility.length_q(group.batch);
    const std::int64_t way = trial.random_below(stream, use, 4);
    if (way < 2 && queries > 0) {
        const Row row{group.batch, group.head, trial.random_below(stream + 1, use, queries)};
        std::int64_t first = -1, last = -1;
        for (std::int64_t j = 0; j < keys; ++j) {
            if (!visibility.sees(row, j)) continue;
            if (first < 0) first = j;
            last = j;
        }
        if (last >= 0) return way == 0 ? first : last;
    }
    constexpr std::int64_t early = 8;
    return trial.random_below(stream + 2, use, way == 2 ? std::min(early, keys) : keys);
}

/// The spike stands out of all other values by 2^10, so that a weight down to about 2^-10 of a
/// row's error in units of |v| still shows, and stays a quarter of the format's range away from
/// overflow.
double spike_size(const Problem& problem, const Tensor& values) {
    const double most = largest(values);
    const double room = traits(problem.format_kv).max_finite / 4;
    const double room_out = traits(problem.format_o).max_finite / 4;
    return std::min({most > 0 ? std::ldexp(most, 10) : 1.0, room, room_out});
}

/// Which key carries the spike in a channel of a head of a sequence.
class SpikePlan {
public:
    SpikePlan(const Trial& trial, const Run& base, std::int64_t round)
        : channels_(value_dim(base.problem())), heads_(base.problem().heads_kv) {
        const Problem& problem = base.problem();
        const Visibility visibility = base.visibility();
        for (std::int64_t b = 0; b < problem.batch; ++b)
            for (std::int64_t g = 0; g < heads_; ++g)
                for (std::int64_t c = 0; c < channels_; ++c) {
                    const std::int64_t keys = visibility.length_kv(b);
                    const auto use = static_cast<std::uint64_t>(
                        ((round * problem.batch + b) * heads_ + g) * channels_ + c);
                    const bool all_in_turn = keys <= few_rounds * channels_;
                    const Row group{b, g * group_size(problem), 0};
                    if (keys == 0)
                        key_.push_back(-1);
                    else if (all_in_turn)
                        key_.push_back((round * channels_ + c) % keys);
                    else
                        key_.push_back(pick_key(trial, visibility, group, use));
                }
    }
    std::int64_t key(std::int64_t batch, std::int64_t head_kv, std::int64_t channel) const {
        return key_[static_cast<std::size_t>((batch * heads_ + head_kv) * channels_ + channel)];
    }
    /// Rounds in which every key of a short sequence has its turn; one round for long ones.
    static std::int64_t rounds(const Problem& problem) {
        const std::int64_t channels = std::max<std::int64_t>(value_dim(problem), 1);
        const std::int64_t needed = (problem.len_kv + channels - 1) / channels;
        return needed <= few_rounds ? std::max<std::int64_t>(needed, 1) : 1;
    }

private:
    static constexpr std::int64_t few_rounds = 4;
    std::int64_t channels_, heads_;
    std::vector<std::int64_t> key_;
};

TensorSet with_spikes(const Trial& trial, const Run& base, const SpikePlan& plan) {
    const Problem& problem = base.problem();
    TensorSet inputs = base.inputs();
    Tensor& values = inputs[Role::v];
    const double size = spike_size(problem, values);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t c = 0; c < value_dim(problem); ++c) {
                const std::int64_t key = plan.key(b, g, c);
                if (key < 0) continue;
                const std::int64_t flat = values.flat(b, g, key, c);
                const bool up = trial.random_bits(stream_of("masking.influence.sign"),
                                                  static_cast<std::uint64_t>(flat)) %
                                    2 ==
                                0;
                values.set(flat, up ? size : -size);
            }
    return inputs;
}

}  // namespace

Judgement values_matter(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Run base(trial, problem, with_flat_scores(problem, trial.inputs()));
    const Visibility visibility = base.visibility();
    std::int64_t compared = 0;
    for (std::int64_t round = 0; round < SpikePlan::rounds(problem); ++round) {
        const SpikePlan plan(trial, base, round);
        const Run spiked(trial, problem, with_spikes(trial, base, plan));
        for (const RowMatch& match : defined_rows(base)) {
            const Row& row = match.first;
            for (std::int64_t c = 0; c < value_dim(problem); ++c) {
                const std::int64_t key = plan.key(row.batch, row.head / group_size(problem), c);
                if (key < 0 || !visibility.sees(row, key)) continue;
                const std::int64_t at = base.output().flat(row.batch, row.head, row.query, c);
                const auto change = contrast(base, at, spiked, at);
                if (!change) continue;
                ++compared;
                if (change->absent())
                    return violated(missing_change(base, *change,
                                                   fmt::format("{} ignores key {}, which it can "
                                                               "see",
                                                               name_of(problem, row), key)),
                                    compared);
            }
        }
    }
    return nothing_compared(compared, 0, "no query sees a key whose weight is certain to show");
}

namespace {

struct Nudge {
    std::int64_t key = -1, channel = 0;
};

/// One entry of K a head and sequence. Its change moves the score of a typical query by 3: enough
/// to change a weight by a large factor either way.
std::vector<Nudge> choose_nudges(const Trial& trial, const Run& base, std::int64_t round) {
    constexpr std::int64_t vector_width = 8;  // the tail a vector loop may forget is at most 7 wide
    const Problem& problem = base.problem();
    const Visibility visibility = base.visibility();
    const std::uint64_t stream = stream_of("masking.influence.channel");
    std::vector<Nudge> nudges;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g) {
            const auto use =
                static_cast<std::uint64_t>((round * problem.batch + b) * problem.heads_kv + g);
            Nudge nudge;
            if (visibility.length_kv(b) > 0)
                nudge.key =
                    pick_key(trial, visibility, {b, g * group_size(problem), 0}, use + (1u << 20));
            const std::int64_t tail = std::min(vector_width, problem.dim_qk);
            nudge.channel = round == 0 ? problem.dim_qk - 1 - trial.random_below(stream, use, tail)
                                       : trial.random_below(stream, use, problem.dim_qk);
            if (problem.dim_qk <= 2) nudge.channel = round % problem.dim_qk;
            nudges.push_back(nudge);
        }
    return nudges;
}

TensorSet with_nudges(const Run& base, const std::vector<Nudge>& nudges) {
    const Problem& problem = base.problem();
    const std::int64_t group = group_size(problem);
    TensorSet inputs = base.inputs();
    const Tensor& q = inputs[Role::q];
    Tensor& keys = inputs[Role::k];
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g) {
            const Nudge& nudge = nudges[static_cast<std::size_t>(b * problem.heads_kv + g)];
            if (nudge.key < 0) continue;
            double squares = 0;
            for (std::int64_t h = g * group; h < (g + 1) * group; ++h)
                for (std::int64_t i = 0; i < problem.len_q; ++i)
                    squares += std::pow(q.at(b, h, i, nudge.channel), 2);
            const double typical = std::sqrt(
                squares / static_cast<double>(group * std::max<std::int64_t>(problem.len_q, 1)));
            const double slope = std::abs(effective_scale(problem)) * typical;
            if (!(slope > 0) || !std::isfinite(slope)) continue;
            const std::int64_t flat = keys.flat(b, g, nudge.key, nudge.channel);
            const double most = traits(problem.format_kv).max_finite / 4;
            keys.set(flat, std::clamp(keys.get(flat) + 3 / slope, -most, most));
        }
    return inputs;
}

}  // namespace

Judgement key_channels_matter(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Run base(trial);
    const Visibility visibility = base.visibility();
    std::int64_t compared = 0;
    for (std::int64_t round = 0; round < 2; ++round) {
        const std::vector<Nudge> nudges = choose_nudges(trial, base, round);
        const Run nudged(trial, problem, with_nudges(base, nudges));
        for (const RowMatch& match : defined_rows(base)) {
            const Row& row = match.first;
            const Nudge& nudge = nudges[static_cast<std::size_t>(row.batch * problem.heads_kv +
                                                                 row.head / group_size(problem))];
            if (nudge.key < 0 || !visibility.sees(row, nudge.key)) continue;
            for (std::int64_t c = 0; c < value_dim(problem); ++c) {
                const std::int64_t at = base.output().flat(row.batch, row.head, row.query, c);
                const auto change = contrast(base, at, nudged, at);
                if (!change) continue;
                ++compared;
                if (change->absent())
                    return violated(
                        missing_change(
                            base, *change,
                            fmt::format("{} ignores channel {} of key {}, which it "
                                        "can see",
                                        name_of(problem, row), nudge.channel, nudge.key)),
                        compared);
            }
        }
    }
    return nothing_compared(compared, 0, "no change of a key is certain to show in this case");
}

}  // namespace attest::law
