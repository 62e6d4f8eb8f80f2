#include "properties/law/score_sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "properties/law/probe.hpp"

namespace attest::law {

namespace {

/// Of one case, all stages and both tails together.
constexpr double variance_rate = 1e-9;
/// Calls after stage n: 4^n.
constexpr int stages = 5;

/// Call `number` of a sampling, and where its zero keys stand.
class SampleCall {
public:
    SampleCall(const Given& given, const Sampling& sampling, int number)
        : sampling_(sampling),
          stream_(sampling.stream + (static_cast<std::uint64_t>(number) << 8)),
          inputs_(drawn(given)),
          probe_(given, sampling.problem, inputs_, stream_ + 3) {}

    bool readable() const { return probe_.readable(); }
    void add(const Trial& trial, ScoreSample& sample) const;

private:
    /// Of every head one key is zero: its score is 0, so log P_ij - log P_i0 = S_ij and no LSE is
    /// needed.
    std::int64_t zero_key(const Given& given, std::int64_t b, std::int64_t g) const {
        const auto head = static_cast<std::uint64_t>(b * sampling_.problem.heads_kv + g);
        return given.random_below(stream_, head, sampling_.problem.len_kv);
    }
    TensorSet drawn(const Given& given) const;

    const Sampling& sampling_;
    std::uint64_t stream_;
    TensorSet inputs_;
    WeightProbe probe_;
};

TensorSet SampleCall::drawn(const Given& given) const {
    const Problem& problem = sampling_.problem;
    TensorSet inputs = blank_inputs(problem);
    for (const Role role : {Role::q, Role::k}) {
        const std::uint64_t own = stream_ + (role == Role::q ? 1 : 2);
        std::uint64_t index = 0, word = 0;
        inputs.put(role, tensor_of(problem, role, [&](auto, auto, auto, auto) {
                       const std::uint64_t at = index++;
                       if (!sampling_.signs)
                           return std::ldexp(given.random_normal(own, at), -sampling_.exponent);
                       if (at % 64 == 0) word = given.random_bits(own, at / 64);
                       return std::ldexp((word >> at % 64 & 1) != 0 ? 1.0 : -1.0,
                                         -sampling_.exponent);
                   }));
    }
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t c = 0; c < problem.dim_qk; ++c)
                inputs[Role::k].put(b, g, zero_key(given, b, g), c, 0);
    return inputs;
}

// Only the first query head of a group is read: heads of a group share their keys, and their scores
// are not independent.
void SampleCall::add(const Trial& trial, ScoreSample& sample) const {
    const Problem& problem = sampling_.problem;
    const Weights weights = probe_.read(trial);
    sample.rounding = sampling_.signs ? 0 : traits(problem.format_kv).unit_roundoff;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g) {
            const Row row{b, g * group_size(problem), 0};
            double norm = 0;
            for (std::int64_t c = 0; c < problem.dim_qk; ++c) {
                const double q =
                    std::ldexp(inputs_[Role::q].at(b, row.head, 0, c), sampling_.exponent);
                norm += q * q;
            }
            // Given q_i the standard deviation is that of the law times |q_i| / sqrt(D).
            const double own =
                sampling_.deviation * std::sqrt(norm / static_cast<double>(problem.dim_qk));
            const std::int64_t zero = zero_key(trial, b, g);
            const Interval at_zero = log(weights.at(row, zero));
            for (std::int64_t j = 0; j < problem.len_kv; ++j) {
                if (j == zero) continue;
                const Interval score = log(weights.at(row, j)) - at_zero;
                const double z = score.mid() / own, error = score.radius() / own;
                sample.squares += z * z;
                sample.noise_squares += evaluation * error * error;
                ++sample.count;
            }
        }
}

}  // namespace

Problem sampling_problem(const Problem& from, std::int64_t dim) {
    constexpr std::int64_t samples = 256, keys = 64;
    Problem p = plain(from, 1, keys);
    p.batch = (samples + keys * p.heads_kv - 1) / (keys * p.heads_kv);
    p.dim_v = value_dim(from);
    p.dim_qk = dim;
    return canonical(p);
}

Estimate variance_of(const Samples& samples, double rate) {
    const VarianceBand band = band_of(samples[0], rate);
    return {samples[0].mean(), band.low, band.high};
}

/// If both means are within their bands, so is their ratio.
Estimate drift_of(const Samples& samples, double rate) {
    const VarianceBand first = band_of(samples[0], rate / 2),
                       second = band_of(samples[1], rate / 2);
    const double high = first.low > 0 ? second.high / first.low : infinite;
    return {samples[1].mean() / samples[0].mean(), second.low / first.high, high};
}

namespace {

/// In half formats a weight may be known to little more than its size, and one of them would spoil
/// the pool: where the kernel takes finer ones, those alone are pooled.
bool is_pooled(const Given& given, const Problem& problem) {
    const auto fine = [](Precision p) { return p == Precision::f32 || p == Precision::f64; };
    if (fine(problem.format_q) && fine(problem.format_kv) && fine(problem.format_o)) return true;
    for (const Precision format : {Precision::f32, Precision::f64}) {
        Problem finer = problem;
        finer.format_q = finer.format_kv = finer.format_o = format;
        if (given.supports(canonical(finer))) return false;
    }
    return true;
}

Judgement judge_sequentially(const Trial& trial, const Sought& sought,
                             const std::vector<std::shared_ptr<const SampleCall>>& first) {
    Samples samples(sought.samplings.size());
    Samples first_call;
    Estimate estimate;
    int calls = 0;
    bool readable = true;
    for (int stage = 0; stage < stages && readable; ++stage) {
        for (; calls < 1 << 2 * stage && readable; ++calls) {
            auto next = first;
            for (std::size_t k = 0; k < next.size() && calls > 0; ++k) {
                next[k] = std::make_shared<SampleCall>(trial, sought.samplings[k], calls);
                readable = readable && next[k]->readable();
            }
            for (std::size_t k = 0; k < next.size() && readable; ++k)
                next[k]->add(trial, samples[k]);
        }
        if (stage == 0 && is_pooled(trial, sought.samplings[0].problem)) first_call = samples;
        estimate = sought.estimate(samples, variance_rate / stages);
        if (!estimate.within() || estimate.settled()) break;
    }
    std::int64_t count = 0;
    for (const ScoreSample& sample : samples) count += sample.count;
    Judgement judgement = holds(count);
    if (!estimate.within()) {
        Violation v;
        v.problem = sought.sentence(sought, samples);
        v.index = {0, 0, 0, 0};
        v.element_name = sought.name;
        v.expected = sought.unit;
        v.observed = estimate.value * sought.unit;
        v.bound = estimate.room() * sought.unit;
        v.bound_kind = BoundKind::statistic;
        v.ratio = std::abs(estimate.value - 1) / estimate.room();
        judgement = violated(std::move(v), count);
    }
    judgement.statistic =
        Statistic{sought.name, estimate.value - 1,   estimate.room(), variance_rate,
                  count,       std::move(first_call)};
    return judgement;
}

Pooled pooled(const Samples& all, Estimate (*of)(const Samples&, double rate), const char* what) {
    const Estimate estimate = of(all, variance_rate);
    Pooled out;
    std::int64_t count = 0;
    for (const ScoreSample& sample : all) count += sample.count;
    out.statistic = {fmt::format("{} of all cases together", what), estimate.value - 1,
                     estimate.room(), variance_rate, count};
    if (estimate.within()) return out;
    Violation& v = out.doubt.emplace();
    v.problem = fmt::format("over all cases together, {} scores, {} is {:.4g}; it should be 1",
                            count, what, estimate.value);
    v.index = {0, 0, 0, 0};
    v.element_name = what;
    v.expected = 1;
    v.observed = estimate.value;
    v.bound = estimate.room();
    v.bound_kind = BoundKind::statistic;
    v.violation_class = ViolationClass::suspect;
    v.ratio = std::abs(estimate.value - 1) / estimate.room();
    return out;
}

}  // namespace

Pooled pooled_variance(const Samples& all) {
    return pooled(all, variance_of, "the variance of the scores");
}

Pooled pooled_drift(const Samples& all) {
    return pooled(all, drift_of, "the ratio of two dimensions' variances");
}

Plan estimated(const Given& given, Sought sought) {
    // The calls refer to their sampling: both live as long as the plan.
    const auto kept = std::make_shared<const Sought>(std::move(sought));
    std::vector<std::shared_ptr<const SampleCall>> first;
    for (const Sampling& sampling : kept->samplings) {
        first.push_back(std::make_shared<const SampleCall>(given, sampling, 0));
        if (!first.back()->readable()) return not_applicable(unreadable_weights);
    }
    return [kept, first](const Trial& trial) { return judge_sequentially(trial, *kept, first); };
}

}  // namespace attest::law
