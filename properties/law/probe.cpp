#include "properties/law/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"
#include "reference/problem/counter.hpp"

namespace attest::law {

namespace {

std::uint64_t mixed(std::uint64_t stream, std::int64_t a, std::int64_t b) noexcept {
    return counter_bits(stream, static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
}

/// Columns that show keys; the rest hold data, so that no V is probes alone where it need not be.
std::int64_t probing_columns(std::int64_t columns) noexcept {
    return columns >= 3 ? columns - 1 : columns;
}

}  // namespace

// Sizes 2^4 to 2^8: the products with weights above 2^-18 are normal numbers of every format, and
// none comes near the largest of f16.
UnitColumns unit_columns(
    const Given& given, const Problem& problem, std::uint64_t stream,
    const std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>& key_of) {
    UnitColumns units;
    units.heads = problem.heads_kv;
    units.columns = value_dim(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t c = 0; c < units.columns; ++c) {
                units.key.push_back(key_of(b, g, c));
                const std::uint64_t at = units.at(b, g, c);
                const auto exponent = static_cast<int>(given.random_below(stream, at, 5));
                units.size.push_back(std::ldexp(1.0, 4 + exponent));
            }
    return units;
}

Tensor unit_values(const Given& given, const Problem& problem, const UnitColumns& units,
                   std::uint64_t stream) {
    return tensor_of(
        problem, Role::v, [&](std::int64_t b, std::int64_t g, std::int64_t t, std::int64_t c) {
            const std::size_t at = units.at(b, g, c);
            if (units.key[at] >= 0) return units.key[at] == t ? units.size[at] : 0.0;
            const auto index =
                static_cast<std::uint64_t>(static_cast<std::int64_t>(at) * problem.len_kv + t);
            return given.random_normal(stream + 1, index);
        });
}

UnitRun run_units(const Trial& trial, const Problem& problem, const TensorSet& inputs,
                  std::uint64_t stream, UnitColumns units) {
    TensorSet probed = inputs;
    probed.put(Role::v, unit_values(trial, problem, units, stream));
    return {Run(trial, problem, std::move(probed)), std::move(units)};
}

Interval UnitRun::weight(const Row& row, std::int64_t column) const {
    const std::int64_t head_kv = row.head / group_size(call.problem());
    const double size = units.size[units.at(row.batch, head_kv, column)];
    const Interval shown = truth(call, row, column);
    // Dividing by a power of two is exact, and the true weight is within [0, 1] whatever is shown.
    const Interval weight{shown.lo / size, shown.hi / size};
    if (std::isnan(weight.lo) || weight.hi < 0 || weight.lo > 1) return weight;
    return intersection(weight, {0, 1});
}

namespace {

/// Whether the weight that an element shows is told from zero whatever a kernel within its bound
/// returns: the least number it may return leaves no room for zero. Readings are monotone.
bool is_readable(const bound::ExpectedElement& e, Precision format) {
    const Admitted numbers = admitted(e, format);
    return numbers.bounded && truth_of(numbers.low, e.bound, format).lo > 0;
}

Violation unshown(const Problem& problem, const Row& row, std::int64_t key, std::int64_t column,
                  const bound::ExpectedElement& shown, double observed, double size) {
    Violation v;
    v.problem = fmt::format("the weight of key {} for {} is {:.3g}; it should be {:.3g}", key,
                            name_of(problem, row), observed / size, shown.value / size);
    v.index = {row.batch, row.head, row.query, column};
    v.element_name = element_name(problem, output_at(row, column));
    v.expected = shown.value;
    v.observed = observed;
    v.bound = shown.bound + shown.error;
    v.ratio = bound::error_ratio(observed, shown, problem.format_o);
    return v;
}

/// Calls visit(row, column, key) for every column of the call that shows a key to a row that sees
/// one.
template <typename Visit>
void each_shown(const PlannedCall& call, const UnitColumns& units, Visit&& visit) {
    for (const Row& row : all_rows(call.problem())) {
        if (blind(call, row)) continue;
        for (std::int64_t c = 0; c < units.columns; ++c) {
            const std::int64_t key =
                units.key[units.at(row.batch, row.head / group_size(call.problem()), c)];
            if (key >= 0) visit(row, c, key);
        }
    }
}

}  // namespace

WeightProbe::WeightProbe(const Given& given, const Problem& problem, const TensorSet& inputs,
                         std::uint64_t stream)
    : keys_(problem.len_kv) {
    // One run shows everything where the kernel takes a value dimension of one column a key.
    Problem wide = problem;
    wide.dim_v = problem.len_kv + 1;
    if (!given.supports(canonical(wide))) wide = problem;
    wide = canonical(wide);

    const std::int64_t step = probing_columns(value_dim(wide));
    for (std::int64_t from = 0; from < problem.len_kv; from += step) {
        const std::uint64_t part = mixed(stream, from, 0);
        std::vector<std::vector<std::int64_t>> orders;
        for (std::int64_t head = 0; head < problem.batch * problem.heads_kv; ++head)
            orders.push_back(permutation(given, mixed(stream, -1, head), problem.len_kv));
        const auto key_of = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
            const auto& order = orders[static_cast<std::size_t>(b * problem.heads_kv + g)];
            const bool shows = c < step && from + c < problem.len_kv;
            return shows ? order[static_cast<std::size_t>(from + c)] : std::int64_t{-1};
        };
        UnitColumns units = unit_columns(given, wide, part, key_of);
        TensorSet probed = inputs;
        probed.put(Role::v, unit_values(given, wide, units, part));
        parts_.push_back({PlannedCall(given, wide, std::move(probed)), std::move(units)});
    }
}

bool WeightProbe::readable() const {
    bool all = true;
    for (const Part& part : parts_)
        each_shown(part.call, part.units, [&](const Row& row, std::int64_t c, std::int64_t) {
            all = all && is_readable(element(part.call, row, c), part.call.output_format());
        });
    return all;
}

Weights WeightProbe::read(const Trial& trial) const {
    Weights all;
    const Problem& problem = parts_.front().call.problem();
    all.heads_ = problem.heads_q;
    all.queries_ = problem.len_q;
    all.keys_ = keys_;
    all.weight_.resize(static_cast<std::size_t>(score_count(problem)));
    for (const Part& part : parts_) {
        UnitRun shown{Run(trial, part.call), part.units};
        each_shown(shown.call, part.units, [&](const Row& row, std::int64_t c, std::int64_t key) {
            const Interval weight = shown.weight(row, c);
            all.weight_[static_cast<std::size_t>(flat(problem, row) * keys_ + key)] = weight;
            // Not `weight.lo > 0`: a weight above one is no weight either.
            if (weight.lo > 0 && weight.lo <= 1) return;
            const bound::ExpectedElement& e = element(shown.call, row, c);
            const bool numbers = weight.lo <= 1 && weight.hi >= 0;
            if (numbers && !is_readable(e, shown.call.output_format())) return;
            const auto at = part.units.at(row.batch, row.head / group_size(problem), c);
            throw Stopped{violated(
                unshown(problem, row, key, c, e, output(shown.call, row, c), part.units.size[at]))};
        });
        if (!all.first_) all.first_ = std::move(shown.call);
    }
    return all;
}

}  // namespace attest::law
