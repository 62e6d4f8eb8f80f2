#include "properties/invariance_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/law/key_twins.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/tally.hpp"

namespace attest::laws {

namespace {

constexpr const char* nothing_visible = "no query sees a key";

/// Both runs' outputs are one truth, and the second L exceeds the first by shift(row).
template <typename Shift>
void compare_shifted(Tally& tally, const Call& first, const Call& second, const char* change,
                     Shift&& shift) {
    const Problem& problem = first.problem();
    for (const Row& row : all_rows(problem)) {
        if (blind(first, row)) continue;
        for (int64_t c = 0; c < value_dim(problem); ++c)
            tally.same(truth(first, row, c), truth(second, row, c), output_at(row, c), [&] {
                return fmt::format("{} changes the output of {}", change, name_of(problem, row));
            });
        if (!first.has_lse() || !second.has_lse()) continue;
        tally.same(lse_truth(first, row) + shift(row), lse_truth(second, row), lse_at(row), [&] {
            return fmt::format("{} does not shift the log-sum-exp of {} by {:.6g}", change,
                               name_of(problem, row), shift(row).mid());
        });
    }
}

/// The case, or one time in three the case with a narrow window, if the kernel takes one: a running
/// maximum must get over leading tiles that are hidden whole, at scores far from zero.
Problem with_hidden_beginning(const Trial& trial, std::uint64_t stream) {
    Problem narrowed = trial.problem();
    if (trial.random_below(stream, 0, 3) != 0 || narrowed.mask.window.limited()) return narrowed;
    narrowed.mask.window.left = trial.random_below(stream, 1, 9);
    return trial.supports(narrowed) ? narrowed : trial.problem();
}

/// A constant added to every score of a row: `with` holds the inputs after it, shift(row) says by
/// how much.
struct KeyShift {
    TensorSet without, with;
    std::vector<double> added;  ///< u, [batch, heads_kv, dim_qk]
};

// Either a random vector, keys and vector multiples of 1/16 whose sums are exact in every format;
// or a channel that queries hold at 64 and keys at 0, then at one large number: that shifts all
// scores by up to -1e5, where sentinels and clamps show. A constant column among the values shows
// weights that are lost altogether, which a bound this far out would otherwise forgive.
KeyShift shifted_keys(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    constexpr double far[] = {-1e5, -120, -120, -30, 30, 120, 1000};
    KeyShift shift{trial.inputs(), {}, {}};
    const auto heads = static_cast<std::size_t>(problem.batch * problem.heads_kv);
    const auto dim = static_cast<std::size_t>(problem.dim_qk);
    shift.added.assign(heads * dim, 0);
    Tensor &q = shift.without[Role::q], &k = shift.without[Role::k], &v = shift.without[Role::v];
    const int64_t channel = trial.random_below(stream, 0, problem.dim_qk);
    // Far shifts meet hidden leading tiles where there is something to hide them: mostly drawn
    // there.
    const Mask& mask = problem.mask;
    const bool hides = mask.causal || mask.window.limited() || mask.tensor.kind != MaskKind::none;
    if (trial.random_below(stream, 1, 4) < (hides ? 3 : 2)) {
        for (int64_t at = channel; at < q.size(); at += problem.dim_qk) q.set(at, 64);
        for (int64_t at = channel; at < k.size(); at += problem.dim_qk) k.set(at, 0);
        const double wanted = far[trial.random_below(stream, 2, std::size(far))];
        const double step = round_to(wanted / (64 * effective_scale(problem)), problem.format_kv);
        for (std::size_t head = 0; head < heads; ++head)
            shift.added[head * dim + static_cast<std::size_t>(channel)] = step;
    } else {
        for (int64_t at = 0; at < k.size(); ++at)
            k.set(at, std::clamp(std::round(k.get(at) * 16) / 16, -4.0, 4.0));
        for (std::size_t at = 0; at < shift.added.size(); ++at)
            shift.added[at] = on_grid(trial, stream + 1, at, 64, 16);
    }
    const int64_t constant = trial.random_below(stream, 3, value_dim(problem));
    for (int64_t at = constant; at < v.size(); at += value_dim(problem)) v.set(at, 2);
    shift.with = shift.without;
    for (int64_t at = 0; at < k.size(); ++at) {
        const auto head = static_cast<std::size_t>(at / (problem.len_kv * problem.dim_qk));
        const auto c = static_cast<std::size_t>(at % problem.dim_qk);
        shift.with[Role::k].set(at, k.get(at) + shift.added[head * dim + c]);
    }
    return shift;
}

}  // namespace

Verdict check_key_shift(const Trial& trial) {
    const Problem problem = with_hidden_beginning(trial, stream_of("invariance.key_shift") + 2);
    const KeyShift shift = shifted_keys(trial, problem, stream_of("invariance.key_shift"));
    for (const double u : shift.added)
        if (!(std::abs(u) < traits(Precision::f16).max_finite))
            return not_applicable("the scale is too small for such a shift");
    const Call first(trial, problem, shift.without), second(trial, problem, shift.with);
    const Interval scale = Interval::exactly(effective_scale(problem));
    Tally tally(problem);
    compare_shifted(tally, first, second, "adding one vector to every key", [&](const Row& row) {
        const int64_t head = row.batch * problem.heads_kv + row.head / group_size(problem);
        Interval sum;
        for (int64_t c = 0; c < problem.dim_qk; ++c)
            sum = sum +
                  Interval::exactly(first.inputs()[Role::q].at(row.batch, row.head, row.query, c)) *
                      Interval::exactly(
                          shift.added[static_cast<std::size_t>(head * problem.dim_qk + c)]);
        return scale * sum;
    });
    return tally.verdict(nothing_visible);
}

// Biases become multiples of 1/4 up to 8, the constants multiples of 1/4 up to 24: sums are exact.
// A mask that is shared by rows is shifted by one constant for all of them.
Verdict check_bias_shift(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("invariance.bias_shift");
    TensorSet without = trial.inputs();
    Tensor& mask = without[Role::mask];
    for (int64_t at = 0; at < mask.size(); ++at)
        if (std::isfinite(mask.get(at)))
            mask.set(at, std::clamp(std::round(mask.get(at) * 4) / 4, -8.0, 8.0));
    const auto constant = [&](int64_t mask_row) {
        return on_grid(trial, stream, static_cast<std::uint64_t>(mask_row), 96, 4);
    };
    TensorSet with = without;
    for (int64_t at = 0; at < mask.size(); ++at)
        with[Role::mask].set(at, mask.get(at) + constant(at / problem.len_kv));
    const Call first(trial, problem, without), second(trial, problem, with);
    const Shape& shape = mask.shape();
    Tally tally(problem);
    compare_shifted(tally, first, second, "adding a constant to a bias row", [&](const Row& row) {
        const int64_t b = shape[0] == 1 ? 0 : row.batch, h = shape[1] == 1 ? 0 : row.head;
        const int64_t i = shape[2] == 1 ? 0 : row.query;
        return Interval::exactly(constant((b * shape[1] + h) * shape[2] + i));
    });
    return tally.verdict(nothing_visible);
}

Verdict check_duplicate(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("invariance.duplicate");
    const bool side_by_side = (trial.random_bits(stream, 0) & 1) != 0;
    const Twin twice = with_keys_twice(problem, trial.inputs(), side_by_side);
    if (!trial.supports(twice.problem))
        return not_applicable("the kernel does not take so many keys");
    const Call first(trial), second(trial, twice.problem, twice.inputs);
    const Interval log_two = log(Interval::exactly(2));
    Tally tally(problem);
    compare_shifted(tally, first, second, "giving every key and value twice",
                    [&](const Row&) { return log_two; });
    return tally.verdict(nothing_visible);
}

}  // namespace attest::laws
