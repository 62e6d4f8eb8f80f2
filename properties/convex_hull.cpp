// Each output is a convex combination of the values its query sees. This needs no reference: how
// far a correct kernel may leave the hull follows from its declared numerics and the number of
// keys, because weights are non-negative whatever the error of their exponents.

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/nnls.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/row_hull.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

CaseSpace space(std::int64_t cost) {
    return {.allow = attention, .cost = cost};
}

Judgement check_box(const Trial& trial) {
    const Run call(trial);
    const Problem& problem = call.problem();
    const Hulls hulls(call);
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        const RowHull hull = hulls.of(row);
        if (hull.keys.empty()) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const auto at = static_cast<std::size_t>(c);
            // The middle of the box, and half its width with the slack: one interval test.
            const double centre = hull.low[at] / 2 + hull.high[at] / 2;
            const double radius = std::max(hull.high[at] - centre, centre - hull.low[at]);
            const double observed = output(call, row, c);
            tally.element(
                observed, {centre, 0, radius + hull.slack[at]}, problem.format_o, output_at(row, c),
                [&] {
                    return fmt::format(
                        "the output of {}, channel {}, lies outside [{:.6g}, {:.6g}], the values "
                        "it sees",
                        name_of(problem, row), c, hull.low[at], hull.high[at]);
                });
        }
    }
    return tally.judgement(nothing_visible);
}

Property box() {
    return {
        .id = "convex_hull.box",
        .statement = "Every output lies between the least and the largest value its query sees.",
        .statement_short = "every output lies within the values its query sees",
        .why =
            "O_ic = sum_j P_ij v_jc with P_ij >= 0 and sum_j P_ij = 1, so it is a mean of the "
            "visible v_jc (a sink is one more, of value 0). Computed weights are non-negative as "
            "well, whatever the error of their exponents, and their sum misses one by no more than "
            "the roundings of the two sums and of P: that is the whole slack, and no reference is "
            "needed.",
        .source = "convexity; Boyd and Vandenberghe 2004, section 2.1.4",
        .compares = Compares::bound,
        .cases = space(1),
        .check = always<check_box>,
        .turned_red_by = {planted::answers_times(3)},
        .knows_more = true,
    };
}

/// How far u.O exceeds max_j u.v_j, and by how much it may: both enclosed. Column c's number before
/// rounding is sum_j w_jc v_jc with weights that may differ from column to column, which the slack
/// of each column covers.
struct Support {
    double excess = 0, allowed = 0;
};

Support support(const Run& call, const Hulls& hulls, const Row& row, const RowHull& hull,
                const std::vector<double>& direction) {
    const std::int64_t columns = value_dim(call.problem());
    double shown = 0, allowed = 0, magnitude = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<std::size_t>(c);
        // Below a power of two numbers lie closer together: what rounds to o is not centred on it.
        const Interval rounded = preimage(output(call, row, c), call.output_format());
        const double u = direction[at], o = rounded.mid();
        shown += u * o;
        magnitude += std::abs(u * o);
        allowed += std::abs(u) * (hull.slack[at] + rounded.radius());
    }
    double reach = call.problem().sink ? 0 : -infinite, largest = 0;
    for (const std::int64_t j : hull.keys) {
        const std::span<const double> v = hulls.value(row, j);
        double projected = 0, size = 0;
        for (std::size_t c = 0; c < v.size(); ++c) {
            const double term = direction[c] * v[c];
            projected += term;
            size += std::abs(term);
        }
        reach = std::max(reach, projected);
        largest = std::max(largest, size);
    }
    // The sums here are of dim_v products in double; each may also lose half of 2^-1074.
    const double own =
        static_cast<double>(columns + 2) * (0x1p-52 * (magnitude + largest) + 0x1p-1074);
    return {shown - reach, evaluation * allowed + own};
}

/// Whether nothing is claimed of the row: the numerics promise nothing for so many keys, or the
/// values lie so near the largest number of the format that a right output may round to infinity.
bool unclaimed(const Run& call, const RowHull& hull) {
    const double largest = traits(call.output_format()).max_finite;
    for (std::size_t c = 0; c < hull.slack.size(); ++c)
        if (!(std::max(std::abs(hull.low[c]), std::abs(hull.high[c])) + hull.slack[c] < largest))
            return true;
    return false;
}

/// False where the support law is violated in this direction.
bool compare_support(Tally& tally, const Run& call, const Hulls& hulls, const Row& row,
                     const RowHull& hull, const std::vector<double>& direction) {
    const Support s = support(call, hulls, row, hull, direction);
    // The number compared is the excess over the support function; it is at most zero in truth. An
    // output that is infinite or NaN exceeds it in every direction.
    const bool a_number = std::isfinite(s.excess) && std::isfinite(s.allowed);
    const Interval excess =
        a_number ? Interval::around(s.excess, s.allowed) : Interval{infinite, infinite};
    return tally.at_most(excess, {0, 0}, output_at(row, 0), [&] {
        return fmt::format("the output of {} lies outside the convex hull of the values it sees",
                           name_of(call.problem(), row));
    });
}

// O = sum_j w_j v_j with w >= 0 and sum 1 gives u.O <= max_j u.v_j for every u. The directions:
// random ones, and those from the mean of the values, and from the value nearest, to the output,
// which a point outside is most likely to be told by.
Judgement check_support(const Trial& trial) {
    const Run call(trial);
    const Problem& problem = call.problem();
    const Hulls hulls(call);
    const std::uint64_t stream = stream_of("convex_hull.support");
    const std::int64_t columns = value_dim(problem);
    constexpr std::int64_t random_directions = 3;
    Tally tally(problem);
    std::vector<double> direction(static_cast<std::size_t>(columns));
    const auto compare = [&](const Row& row, const RowHull& hull, const auto& component) {
        for (std::int64_t c = 0; c < columns; ++c)
            direction[static_cast<std::size_t>(c)] = component(c);
        return compare_support(tally, call, hulls, row, hull, direction);
    };
    for (const Row& row : all_rows(problem)) {
        const RowHull hull = hulls.of(row);
        if (hull.keys.empty() || unclaimed(call, hull)) continue;
        for (std::int64_t k = 0; k < random_directions; ++k)
            compare(row, hull, [&](std::int64_t c) {
                const std::int64_t at = (flat(problem, row) * random_directions + k) * columns + c;
                return trial.random_normal(stream, static_cast<std::uint64_t>(at));
            });
        std::vector<double> shown, mean(static_cast<std::size_t>(columns), 0.0);
        for (std::int64_t c = 0; c < columns; ++c) shown.push_back(output(call, row, c));
        std::span<const double> nearest = hulls.value(row, hull.keys[0]);
        double least = infinite;
        for (const std::int64_t j : hull.keys) {
            const std::span<const double> v = hulls.value(row, j);
            double distance = 0;
            for (std::size_t c = 0; c < v.size(); ++c) {
                mean[c] += v[c] / static_cast<double>(hull.keys.size());
                distance += std::abs(shown[c] - v[c]);
            }
            if (!(distance < least)) continue;
            least = distance;
            nearest = v;
        }
        for (const std::span<const double> from : {std::span<const double>(mean), nearest})
            compare(row, hull, [&](std::int64_t c) {
                const auto at = static_cast<std::size_t>(c);
                return shown[at] - from[at];
            });
    }
    return tally.judgement(nothing_visible);
}

Property support() {
    return {
        .id = "convex_hull.support",
        .statement = "In every direction the output reaches no further than some visible value.",
        .statement_short = "no output reaches beyond the hull in any direction",
        .why =
            "u.O_i = sum_j P_ij u.v_j <= max_j u.v_j for every direction u, since the weights are "
            "non-negative and sum to one. The box asks along the axes alone; mixed-up columns show "
            "in other directions. Each column may be off by the slack of the box, so u.O by sum_c "
            "|u_c| slack_c.",
        .source = "support functions; Boyd and Vandenberghe 2004, section 2.5",
        .compares = Compares::bound,
        .cases = space(4),
        .check = always<check_support>,
        .turned_red_by = {planted::answers_times(3)},
        .knows_more = true,
    };
}

CaseSpace membership_space() {
    CaseSpace s = space(32);
    s.len_max = 32;
    s.dim_max = 16;
    s.limited_because =
        "non-negative least squares takes the cube of a row's keys; of many, few rows are fitted";
    s.allow = s.allow.without(Feature::sink);
    return s;
}

/// All of them, or so many that the cubes of their keys stay within a case's cost.
std::vector<Row> fitted_rows(const Trial& trial, const Problem& problem) {
    constexpr std::int64_t work_max = std::int64_t{1} << 24, rows_least = 4;
    const std::vector<Row> all = all_rows(problem);
    const std::int64_t keys = std::clamp<std::int64_t>(problem.len_kv, 1, 1 << 20);
    const std::int64_t most = std::max(work_max / (keys * keys * keys), rows_least);
    const auto count = static_cast<std::int64_t>(all.size());
    if (count <= most) return all;
    const std::uint64_t stream = stream_of("convex_hull.membership");
    std::vector<Row> some;
    for (std::int64_t n = 0; n < most; ++n)
        some.push_back(all[static_cast<std::size_t>(
            trial.random_below(stream, static_cast<std::uint64_t>(n), count))]);
    return some;
}

// Weights that reproduce the output within the slack of every column exist if the kernel is right.
// Least squares, every column divided by what it may be off by, finds w >= 0 with sum 1 nearest to
// it; the row of the sum is weighted by 2^20. If the columns come out within the bound there are
// such weights. If not, the residual is the direction that separates the output from the hull, and
// the support law is asked in that direction: only its answer counts.
Judgement check_membership(const Trial& trial) {
    const Run call(trial);
    const Problem& problem = call.problem();
    const Hulls hulls(call);
    const std::int64_t columns = value_dim(problem);
    constexpr double weight_of_sum = 0x1p20;
    Tally tally(problem);
    for (const Row& row : fitted_rows(trial, problem)) {
        const RowHull hull = hulls.of(row);
        if (hull.keys.empty() || unclaimed(call, hull)) continue;
        const auto keys = static_cast<Eigen::Index>(hull.keys.size());
        Eigen::MatrixXd matrix(columns + 1, keys);
        Eigen::VectorXd target(columns + 1), unit(columns);
        for (std::int64_t c = 0; c < columns; ++c) {
            const auto at = static_cast<std::size_t>(c);
            const Interval rounded = preimage(output(call, row, c), call.output_format());
            const double o = rounded.mid();
            unit[c] = hull.slack[at] + rounded.radius();
            for (Eigen::Index j = 0; j < keys; ++j)
                matrix(c, j) =
                    hulls.value(row, hull.keys[static_cast<std::size_t>(j)])[at] / unit[c];
            target[c] = o / unit[c];
        }
        matrix.row(columns).setConstant(weight_of_sum);
        target[columns] = weight_of_sum;
        std::vector<double> direction(static_cast<std::size_t>(columns), 0.0);
        if (target.allFinite()) {
            const NonNegativeFit fit = fit_non_negative(matrix, target, static_cast<int>(4 * keys));
            // Any multiple of the direction does; this one overflows nowhere.
            const double least = unit.minCoeff();
            for (std::int64_t c = 0; c < columns; ++c)
                direction[static_cast<std::size_t>(c)] = fit.residual[c] * (least / unit[c]);
        }
        compare_support(tally, call, hulls, row, hull, direction);
    }
    return tally.judgement(nothing_visible);
}

Property membership() {
    return {
        .id = "convex_hull.membership",
        .statement = "Some non-negative weights of sum one reproduce the whole output row.",
        .statement_short = "some convex weights reproduce every output row",
        .why =
            "The weights themselves do: O_i = sum_j P_ij v_j. Non-negative least squares looks for "
            "any that reproduce the row, each column within its slack. Where it finds none its "
            "residual is a direction that separates the output from the hull (Farkas), and the "
            "violation is checked in that direction: the solver is not trusted.",
        .source = "Lawson and Hanson 1974, chapter 23; Farkas' lemma",
        .compares = Compares::bound,
        .cases = membership_space(),
        .check = always<check_membership>,
        .turned_red_by = {planted::answers_times(3)},
        .knows_more = true,
    };
}

}  // namespace

std::vector<Property> convex_hull() {
    return {box(), support(), membership()};
}

}  // namespace attest::law
