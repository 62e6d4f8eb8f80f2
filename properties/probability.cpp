// The weights are a distribution over the visible keys. All of it is read off the kernel by the
// values it is given: a constant column shows the sum of the weights, unit columns the weights
// themselves.

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/property.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

// The bound of a column that is constant: all of its centred terms vanish, so what is left is how
// far the sum of the weights, as they are summed into the output, may be from their sum in the
// denominator. The element's own bound is that of exactly this column.
Judgement check_row_sum(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("probability.row_sum");
    const auto head_index = [&](std::int64_t b, std::int64_t g) {
        return static_cast<std::uint64_t>(b * problem.heads_kv + g);
    };
    const auto column = [&](std::int64_t b, std::int64_t g) {
        return trial.random_below(stream, head_index(b, g), value_dim(problem));
    };
    const auto size = [&](std::int64_t b, std::int64_t g) {
        const auto at = head_index(b, g);
        return std::ldexp(1.0, static_cast<int>(trial.random_below(stream + 1, at, 8)) - 3);
    };
    TensorSet inputs = trial.inputs();
    Tensor& values = inputs[Role::v];
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t j = 0; j < problem.len_kv; ++j)
                values.put(b, g, j, column(b, g), size(b, g));

    const Run summed(trial, problem, std::move(inputs));
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(summed, row)) continue;
        const std::int64_t g = row.head / group_size(problem);
        const std::int64_t c = column(row.batch, g);
        const double whole = size(row.batch, g), observed = output(summed, row, c);
        const bound::ExpectedElement one{whole, 0, element(summed, row, c).bound};
        tally.element(observed, one, summed.output_format(), output_at(row, c), [&] {
            return fmt::format("the weights of {} sum to {:.6g}", name_of(problem, row),
                               observed / whole);
        });
    }
    return tally.judgement(nothing_visible);
}

Property row_sum() {
    return {
        .id = "probability.row_sum",
        .statement = "The weights of every query that sees a key sum to one.",
        .statement_short = "the weights of a query sum to one",
        .why =
            "Softmax divides every weight by the sum of the weights. A column of V that is one "
            "constant c comes out as c sum_j P_ij = c. Errors of the scores move weight between "
            "keys but not the sum, so the bound holds only the roundings of the two sums and of P.",
        .source = "Vaswani et al. 2017, eq. 1",
        .compares = Compares::bound,
        .cases = weighing_cases(sinkless),
        .check = always<check_row_sum>,
        .turned_red_by = {planted::answers_times(1.02)},
    };
}

// Weights, values and every partial sum are non-negative, and so is every rounding of them: no
// bound is involved. IEEE sums of +0 and non-negative numbers are never -0.
Judgement check_nonnegative(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv == 0) return nothing_compared("there is no key");
    const std::uint64_t stream = stream_of("probability.nonnegative");
    const auto key_of = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
        const std::int64_t at = (b * problem.heads_kv + g) * value_dim(problem) + c;
        return trial.random_below(stream, static_cast<std::uint64_t>(at), problem.len_kv);
    };
    const UnitRun shown = run_units(trial, problem, trial.inputs(), stream,
                                    unit_columns(trial, problem, stream, key_of));
    // Values less a mean show a weight within the bound, to either side.
    if (trial.numerics().centred_values)
        return trial.compare(shown.call.problem(), shown.call.inputs(), shown.call.outputs());
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(shown.call, row)) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            if (may_overflow(shown.call, element(shown.call, row, c))) continue;
            const double observed = output(shown.call, row, c);
            // Not `observed < 0`: a NaN is not non-negative either.
            const bool right = observed >= 0 && !std::signbit(observed);
            tally.fact(right, 0, observed, output_at(row, c), [&] {
                const auto at = shown.units.at(row.batch, row.head / group_size(problem), c);
                return fmt::format("the weight of key {} for {} is {:.6g}", shown.units.key[at],
                                   name_of(problem, row), observed / shown.units.size[at]);
            });
        }
    }
    return tally.judgement(nothing_visible);
}

Property nonnegative() {
    return {
        .id = "probability.nonnegative",
        .statement = "No weight is negative, -0 or NaN.",
        .statement_short = "no weight is negative, -0 or NaN",
        .why =
            "exp is positive and so is the sum of the weights. A column of V that is zero but for "
            "one key shows that key's weight; products and sums of non-negative numbers round to "
            "non-negative numbers, so no bound is needed.",
        .source = "Vaswani et al. 2017, eq. 1; IEEE 754-2019, 6.3",
        .compares = Compares::property,
        .cases = weighing_cases(attention),
        .check = always<check_nonnegative>,
        .turned_red_by = {planted::answers_times(-1)},
        .knows_more = true,
    };
}

// Each column is large at every key that one chosen row must not see, and zero elsewhere. A row
// that sees none of them has output exactly zero: exp(-inf) is 0, and sums of zeros are zero.
Judgement check_masked_zero(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("probability.masked_zero");
    const Visibility visibility(problem, trial.dialect(), trial.inputs());
    const std::int64_t group = group_size(problem), columns = value_dim(problem);
    if (problem.len_q == 0) return nothing_compared(nothing_visible);
    const auto chosen_row = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
        const auto at = static_cast<std::uint64_t>((b * problem.heads_kv + g) * columns + c);
        return Row{b, g * group + trial.random_below(stream, at, group),
                   trial.random_below(stream + 1, at, problem.len_q)};
    };
    TensorSet inputs = trial.inputs();
    const auto value = [&](std::int64_t b, std::int64_t g, std::int64_t j, std::int64_t c) {
        if (visibility.sees(chosen_row(b, g, c), j)) return 0.0;
        // 2^10 to 2^12: finite in every format, and a weight of 2^-34 that leaks shows in f16.
        const auto at = static_cast<std::uint64_t>(
            ((b * problem.heads_kv + g) * problem.len_kv + j) * columns + c);
        return std::ldexp(1.0, 10 + static_cast<int>(trial.random_below(stream + 2, at, 3)));
    };
    inputs.put(Role::v, tensor_of(problem, Role::v, value));
    const Run call(trial, problem, std::move(inputs));
    // Zeros less a mean are none: what comes back is zero within the bound.
    if (trial.numerics().centred_values)
        return trial.compare(problem, call.inputs(), call.outputs());

    Tally tally(problem);
    const Tensor& values = call.inputs()[Role::v];
    for (const Row& row : all_rows(problem)) {
        if (!visibility.is_query(row) || visibility.empty(row)) continue;
        const std::int64_t g = row.head / group;
        std::vector<std::int64_t> last_hidden(static_cast<std::size_t>(columns), -1);
        std::vector<char> seen(static_cast<std::size_t>(columns), 0);
        for (std::int64_t j = 0; j < problem.len_kv; ++j) {
            const bool visible = visibility.sees(row, j);
            for (std::int64_t c = 0; c < columns; ++c) {
                if (values.at(row.batch, g, j, c) == 0) continue;
                const auto at = static_cast<std::size_t>(c);
                visible ? void(seen[at] = 1) : void(last_hidden[at] = j);
            }
        }
        for (std::int64_t c = 0; c < columns; ++c) {
            const auto at = static_cast<std::size_t>(c);
            if (seen[at] != 0 || last_hidden[at] < 0) continue;
            if (may_overflow(call, element(call, row, c))) continue;
            const double shown = output(call, row, c);
            tally.fact(shown == 0, 0, shown, output_at(row, c), [&] {
                return fmt::format("{} gives weight to a hidden key, such as key {}, {}",
                                   name_of(problem, row), last_hidden[at],
                                   visibility.reason(row, last_hidden[at]));
            });
        }
    }
    return tally.judgement("no row has both visible and hidden keys");
}

CaseSpace hiding_space() {
    CaseSpace s = weighing_cases(attention);
    s.require_any = any_of({Feature::causal, Feature::window, Feature::lens_kv, Feature::mask_bool,
                            Feature::documents, Feature::mask_additive});
    return s;
}

Property masked_zero() {
    return {
        .id = "probability.masked_zero",
        .statement = "The weight of a hidden key is exactly zero.",
        .statement_short = "the weight of a hidden key is exactly zero",
        .why =
            "A hidden key's score is -inf and exp(-inf) = 0. A column of V that is large at keys a "
            "row must not see, and zero at all it sees, must come out as exact zero for that row: "
            "sums of zeros are zero in any order and any format.",
        .source = "Vaswani et al. 2017, section 3.2.3",
        .compares = Compares::property,
        .cases = hiding_space(),
        .check = always<check_masked_zero>,
        .turned_red_by = {planted::every_mask_ignored()},
        .knows_more = true,
    };
}

}  // namespace

std::vector<Property> probability() {
    return {row_sum(), nonnegative(), masked_zero()};
}

}  // namespace attest::law
