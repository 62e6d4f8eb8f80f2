#include "reference/oracle/other_bounds.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/probable_bound.hpp"
#include "reference/oracle/lanes.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

namespace {

Precision weights_format(const Problem& problem, const Numerics& numerics) {
    return resolved(numerics.weights, problem.format_q);
}

/// Inputs, and one result to write rows into.
struct BoundSetting {
    Prepared call, clean;
    bound::KernelModel model;
    bound::Expected out;
    BoundSetting(const Problem& problem, const Dialect& dialect, const Numerics& numerics,
                 const TensorSet& inputs)
        : call(prepare(problem, dialect, inputs)),
          clean(call),
          model(bound::resolve(problem, numerics)) {
        if (call.any_nonfinite) clean_values(clean);
        const std::size_t rows =
            static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q);
        out.output_shape = {problem.batch, problem.heads_q, problem.len_q, call.dim_v};
        out.output.resize(rows * static_cast<std::size_t>(call.dim_v));
        out.lse.resize(rows);
        out.row_empty.resize(rows);
    }
    std::int64_t rows() const { return static_cast<std::int64_t>(out.lse.size()); }
    const double* values(std::int64_t flat) const {
        const Problem& p = call.problem;
        const std::int64_t bh = flat / p.len_q;
        return clean.value(bh / p.heads_q, bh % p.heads_q / call.group, 0);
    }
    bound::ExpectedElement* output(std::int64_t flat) {
        return out.output.data() + flat * call.dim_v;
    }
};

/// Elements whose value is a number that attend() claims something about.
bool judged(const bound::ExpectedElement& e) {
    return std::isfinite(e.value) && e.bound < infinite;
}

/// The replayed row over what attend() expects of it.
void put_structure(const BoundSetting& setting, const RowRunner& runner,
                   const bound::StructureRow& row, const double* values, bound::ExpectedElement* o,
                   bound::ExpectedElement& lse) {
    const std::int64_t dim_v = setting.call.dim_v;
    const auto& visible = runner.visible();
    const double relative = 4 * runner.own().weight + 4 * runner.own().sum;
    for (std::int64_t c = 0; c < dim_v; ++c) {
        if (!judged(o[c])) continue;
        double value = 0, mass = 0, slack = 0, total = 0;
        for (std::size_t j = 0; j < visible.size(); ++j) {
            const double v = values[visible[j] * dim_v + c];
            value += row.share()[j] * v;
            mass += row.share()[j] * std::abs(v);
            slack += row.slack()[j] * std::abs(v);
            total += std::abs(v);
        }
        o[c].value = value;
        // 1.01 covers the products of two errors.
        o[c].error =
            1.01 * relative * mass + runner.own().absolute * total + double_rounding(value);
        o[c].bound = row.output(value, slack, total);
    }
    if (!judged(lse) || !setting.model.sums_rounded_weights) return;
    const bool two = setting.call.dialect.lse_base == LseBase::two;
    const double scale = two ? 1 / std::log(2.0) : 1.0;
    const double units = two ? 4 * setting.model.ua * std::abs(row.lse() * scale) : 0;
    lse.value = row.lse() * scale;
    lse.error = scale * (runner.own().lse + relative) + 4 * double_rounding(lse.value);
    // 1.0001: what is evaluated in double, as in forward_bound.cpp.
    lse.bound = 1.0001 * scale * row.lse_bound() + units;
}

}  // namespace

std::optional<bound::Expected> attend_structure(const Problem& problem, const Dialect& dialect,
                                                const Numerics& numerics, const TensorSet& inputs,
                                                bound::TileOrder order) {
    BoundSetting setting(problem, dialect, numerics, inputs);
    if (!bound::structure_declared(setting.model, problem.splits)) return std::nullopt;
    RowRunner runner(setting.call, setting.clean, setting.model, lanes_in_double(setting.clean));
    bound::StructureRow row(setting.model, weights_format(problem, numerics), order);
    for (std::int64_t flat = 0; flat < setting.rows(); ++flat) {
        runner.row(flat, setting.out);
        if (runner.values().score.empty() || runner.visible().empty()) continue;
        row.weigh(runner.facts(), runner.visible(), runner.own().weight);
        put_structure(setting, runner, row, setting.values(flat), setting.output(flat),
                      setting.out.lse[static_cast<std::size_t>(flat)]);
    }
    return std::move(setting.out);
}

bound::Expected attend_probable(const Problem& problem, const Dialect& dialect,
                                const Numerics& numerics, const TensorSet& inputs, double delta) {
    BoundSetting setting(problem, dialect, numerics, inputs);
    const bool wide = setting.model.ua < 0x1p-40;
    RowRunner runner(setting.call, setting.clean, setting.model,
                     wide ? lanes_in_double_double(setting.clean) : lanes_in_double(setting.clean));
    bound::ProbableRow row(setting.model, weights_format(problem, numerics));
    const std::size_t dim_v = static_cast<std::size_t>(setting.call.dim_v);
    std::vector<double> bounds(dim_v);
    for (std::int64_t flat = 0; flat < setting.rows(); ++flat) {
        runner.row(flat, setting.out);
        if (runner.values().score.empty()) continue;
        bound::ExpectedElement* o = setting.output(flat);
        for (std::size_t c = 0; c < dim_v; ++c) bounds[c] = o[c].bound;
        row.bound(runner.facts(), runner.visible(), setting.values(flat), setting.call.dim_v,
                  runner.values().output, bound::azuma_factor(delta), bounds);
        for (std::size_t c = 0; c < dim_v; ++c)
            if (judged(o[c])) o[c].bound = bounds[c];
    }
    return std::move(setting.out);
}

bound::ErrorBudget attend_budget(const Problem& problem, const Dialect& dialect,
                                 const Numerics& numerics, const TensorSet& inputs) {
    BoundSetting setting(problem, dialect, numerics, inputs);
    RowRunner runner(setting.call, setting.clean, setting.model, lanes_in_double(setting.clean));
    bound::BudgetRow row(setting.model, weights_format(problem, numerics), problem.format_o);
    const auto dim_v = static_cast<std::size_t>(setting.call.dim_v);
    bound::ErrorBudget budget{setting.out.output_shape, {}, setting.model.ua, setting.model.up};
    budget.output.resize(setting.out.output.size());
    for (std::int64_t flat = 0; flat < setting.rows(); ++flat) {
        runner.row(flat, setting.out);
        if (runner.values().score.empty() || runner.tainted()) continue;
        row.predict(runner.facts(), runner.visible(), setting.values(flat), setting.call.dim_v,
                    runner.values().output,
                    {budget.output.data() + static_cast<std::size_t>(flat) * dim_v, dim_v});
    }
    return budget;
}

}  // namespace attest::oracle
