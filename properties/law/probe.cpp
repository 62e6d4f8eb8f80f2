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
    const Trial& trial, const Problem& problem, std::uint64_t stream,
    const std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>& key_of) {
    UnitColumns units;
    units.heads = problem.heads_kv;
    units.columns = value_dim(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t c = 0; c < units.columns; ++c) {
                units.key.push_back(key_of(b, g, c));
                const std::uint64_t at = units.at(b, g, c);
                const auto exponent = static_cast<int>(trial.random_below(stream, at, 5));
                units.size.push_back(std::ldexp(1.0, 4 + exponent));
            }
    return units;
}

Tensor unit_values(const Trial& trial, const Problem& problem, const UnitColumns& units,
                   std::uint64_t stream) {
    return tensor_of(
        problem, Role::v, [&](std::int64_t b, std::int64_t g, std::int64_t t, std::int64_t c) {
            const std::size_t at = units.at(b, g, c);
            if (units.key[at] >= 0) return units.key[at] == t ? units.size[at] : 0.0;
            const auto index =
                static_cast<std::uint64_t>(static_cast<std::int64_t>(at) * problem.len_kv + t);
            return trial.random_normal(stream + 1, index);
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

Weights Weights::read(const Trial& trial, const Problem& problem, const TensorSet& inputs,
                      std::uint64_t stream) {
    Weights all;
    all.heads_ = problem.heads_q;
    all.queries_ = problem.len_q;
    all.keys_ = problem.len_kv;
    all.weight_.resize(static_cast<std::size_t>(score_count(problem)));
    // One run shows everything where the kernel takes a value dimension of one column a key.
    Problem wide = problem;
    wide.dim_v = problem.len_kv + 1;
    if (!trial.supports(canonical(wide))) wide = problem;
    wide = canonical(wide);

    const std::int64_t step = probing_columns(value_dim(wide));
    Tally tally(wide);
    for (std::int64_t from = 0; from < problem.len_kv; from += step) {
        const std::uint64_t part = mixed(stream, from, 0);
        std::vector<std::vector<std::int64_t>> orders;
        for (std::int64_t head = 0; head < problem.batch * problem.heads_kv; ++head)
            orders.push_back(permutation(trial, mixed(stream, -1, head), problem.len_kv));
        const auto key_of = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
            const auto& order = orders[static_cast<std::size_t>(b * problem.heads_kv + g)];
            const bool shows = c < step && from + c < problem.len_kv;
            return shows ? order[static_cast<std::size_t>(from + c)] : std::int64_t{-1};
        };
        UnitRun shown =
            run_units(trial, wide, inputs, part, unit_columns(trial, wide, part, key_of));
        for (const Row& row : all_rows(wide)) {
            const std::int64_t g = row.head / group_size(wide);
            for (std::int64_t c = 0; c < step; ++c) {
                const std::int64_t key = shown.units.key[shown.units.at(row.batch, g, c)];
                if (key < 0) continue;
                const Interval weight = shown.weight(row, c);
                const std::int64_t at = flat(wide, row) * problem.len_kv + key;
                all.weight_[static_cast<std::size_t>(at)] = weight;
                if (tally.violated() || blind(shown.call, row)) continue;
                tally.at_most(weight, {1, 1}, output_at(row, c), [&] {
                    return fmt::format("the weight of key {} for {} is {}", key, name_of(wide, row),
                                       output(shown.call, row, c));
                });
            }
        }
        if (!all.first_) all.first_ = std::move(shown.call);
    }
    if (tally.violated()) all.fault_ = tally.verdict({});
    return all;
}

}  // namespace attest::law
