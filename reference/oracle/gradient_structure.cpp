#include "reference/oracle/gradient_structure.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "reference/bound/gradient_structure_bound.hpp"
#include "reference/oracle/definition_rows.hpp"
#include "reference/oracle/gradient_facts.hpp"
#include "reference/oracle/gradient_own_error.hpp"
#include "reference/oracle/gradient_sums.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

namespace {

bool all_finite(const double* x, std::int64_t count) {
    return std::all_of(x, x + count, [](double e) { return std::isfinite(e); });
}

class StructuredGradients {
public:
    StructuredGradients(const Prepared& call, const Prepared& clean, const Numerics& numerics,
                        const TensorSet& inputs)
        : call_(call),
          p_(call.problem),
          model_(bound::resolve(p_, numerics)),
          d_o_(inputs[Role::d_o].to_doubles()),
          o_(inputs[Role::o].to_doubles()),
          lse_(inputs[Role::lse].to_doubles()),
          owned_(std::make_unique<DefinitionRows<double, false>>(clean)),
          rows_(owned_.get()),
          error_(rows_->error()),
          runner_(call, clean, model_, std::move(owned_)),
          facts_(call),
          structure_(p_, numerics) {
        if (inputs.has(Role::d_lse)) d_lse_ = inputs[Role::d_lse].to_doubles();
        resize(d_q_, sums_.d_q, p_.batch * p_.heads_q * p_.len_q * p_.dim_qk);
        resize(d_k_, sums_.d_k, p_.batch * p_.heads_kv * p_.len_kv * p_.dim_qk);
        resize(d_v_, sums_.d_v, p_.batch * p_.heads_kv * p_.len_kv * call.dim_v);
        sums_.d_sinks.resize(static_cast<std::size_t>(p_.heads_q));
        forward_.output.resize(o_.size());
        forward_.lse.resize(lse_.size());
        forward_.row_empty.resize(lse_.size());
    }

    bound::ExpectedGradients run() {
        for (std::int64_t b = 0; b < p_.batch; ++b)
            for (std::int64_t h = 0; h < p_.heads_q; ++h)
                for (std::int64_t i = 0; i < p_.len_q; ++i) row({b, h, i});
        const double terms = static_cast<double>(p_.batch * p_.heads_q * p_.len_q + p_.len_kv);
        const double own = 8 * terms * (1 + model_.scale) * error_.underflow;
        const double bound = structure_.absolute(terms, model_.scale);
        bound::ExpectedGradients expected;
        expected.d_q = d_q_.expect(nearest(sums_.d_q), own, bound);
        expected.d_k = d_k_.expect(nearest(sums_.d_k), own, bound);
        expected.d_v = d_v_.expect(nearest(sums_.d_v), own, bound);
        return expected;
    }

private:
    static void resize(GradientErrors& errors, std::vector<Sum<double>>& sums, std::int64_t size) {
        errors.resize(size);
        sums.resize(static_cast<std::size_t>(size));
    }

    void row(const RowPlace& at) {
        const std::int64_t flat = (at.b * p_.heads_q + at.h) * p_.len_q + at.i;
        const auto row = static_cast<std::size_t>(flat);
        if (!keys_of(p_, call_.dialect, at.b, at.i).is_query) return;
        visible_keys(call_, at.b, at.h, at.i, seen_);
        const bool empty = seen_.empty() && !p_.sink;
        if (empty && call_.dialect.empty_row == EmptyRow::zeros) return;
        if (empty) {
            // What is not promised of the row's weights is added to every key's sum.
            seen_.resize(static_cast<std::size_t>(p_.len_kv));
            std::iota(seen_.begin(), seen_.end(), 0);
            return disclaim(at);
        }
        runner_.row(flat, forward_);
        const double d_lse = d_lse_.empty() ? 0 : d_lse_[row];
        const bool finite = !runner_.tainted() && std::isfinite(d_lse) &&
                            std::isfinite(lse_[row]) &&
                            all_finite(d_o_.data() + flat * call_.dim_v, call_.dim_v) &&
                            all_finite(o_.data() + flat * call_.dim_v, call_.dim_v);
        if (!finite || runner_.values().score.empty()) return disclaim(at);
        weigh(at, flat, of_natural_lse<double>(call_.dialect.lse_base, d_lse));
        add(at, flat);
    }

    /// The row as the O and LSE that were handed over give it.
    void weigh(const RowPlace& at, std::int64_t flat, double d_lse) {
        const auto row = static_cast<std::size_t>(flat);
        const double natural = call_.dialect.lse_base == LseBase::two ? std::log(2.0) : 1.0;
        const double lse = natural * lse_[row];
        given_ = rows_->computed();
        weight_.clear();
        double size = std::abs(lse);
        for (std::size_t j = 0; j < given_.score.size(); ++j) {
            given_.weight[j] = std::exp(given_.score[j] - lse);
            weight_.push_back(given_.weight[j]);
            size = std::max(size, std::abs(given_.score[j]));
        }
        given_.sum = 1;
        const double* o = o_.data() + flat * call_.dim_v;
        std::copy(o, o + call_.dim_v, given_.output.begin());
        const double* d_o = d_o_.data() + flat * call_.dim_v;
        gradient_row(rows_->inputs(), given_, d_o, d_lse, gradient_);
        facts_.dp = gradient_.dp;
        facts_.slope = gradient_.slope;
        for (std::int64_t c = 0; c < call_.dim_v; ++c)
            forward_.output[static_cast<std::size_t>(flat * call_.dim_v + c)] = {.value = o[c]};
        forward_.lse[row] = {.value = lse_[row]};

        GradientEntry e{.b = at.b, .h = at.h, .i = at.i, .visible = seen_, .distance = {}};
        e.row = runner_.facts();
        e.row.weight = weight_;
        e.row.lse = lse;
        // S - L is rounded, and in base 2 the product that L comes from.
        e.own = runner_.own();
        e.own.weight += 8 * error_.unit * (size + 1);
        e.back = facts_.make(flat, seen_, d_o, rows_->inputs().values, forward_, gradient_.d,
                             std::abs(d_lse));
        e.back.d_output = 0;  // it is the O that is read
        own_scores(call_, model_, error_, e, own_);
        structure_.weigh(e.row, e.back, {2 * e.own.weight, own_});
    }

    void add(const RowPlace& at, std::int64_t flat) {
        const auto& weights = structure_.weights();
        const auto& scores = structure_.scores();
        gradient_.weight = weights.value;
        gradient_.ds = scores.value;
        gradient_.slope.clear();  // it is in the scores
        const double* d_o = d_o_.data() + flat * call_.dim_v;
        sums_.add(call_, at, seen_, rows_->inputs(), gradient_, d_o);
        const double scale = std::abs(call_.scale), lost = (1 + scale) * model_.oma;
        const double own = 2 * error_.sum(static_cast<double>(p_.len_kv + p_.len_q * call_.group)) +
                           8 * error_.unit;
        const std::int64_t d = p_.dim_qk, head = at.b * p_.heads_kv + at.h / call_.group;
        const double* query = call_.query(at.b, at.h, at.i);
        for (std::size_t j = 0; j < seen_.size(); ++j) {
            const std::int64_t key = head * p_.len_kv + seen_[j];
            const double* k = call_.key(at.b, at.h / call_.group, seen_[j]);
            const double x = std::abs(scores.value[j]) + scores.reach[j];
            const double of_queries = scores.reach[j] + structure_.of_queries() * x;
            const double of_keys = scores.reach[j] + structure_.of_keys() * x;
            for (std::int64_t c = 0; c < d; ++c) {
                const double q_size = scale * std::abs(query[c]), k_size = scale * std::abs(k[c]);
                d_k_.add(static_cast<std::size_t>(key * d + c), own * q_size * x,
                         part(q_size, of_queries) + lost * x);
                d_q_.add(static_cast<std::size_t>(flat * d + c), own * k_size * x,
                         part(k_size, of_keys) + lost * x);
            }
            const double w = weights.value[j] + weights.reach[j];
            const double of_weight = weights.reach[j] + structure_.of_queries() * w;
            for (std::int64_t c = 0; c < call_.dim_v; ++c)
                d_v_.add(static_cast<std::size_t>(key * call_.dim_v + c),
                         own * std::abs(d_o[c]) * w, part(std::abs(d_o[c]), of_weight));
        }
    }

    /// Where nothing is claimed of a weight, a factor of 0 does not mend it: it may be infinite.
    static double part(double size, double error) {
        return error < infinite ? size * error : infinite;
    }

    void disclaim(const RowPlace& at) {
        const auto d = static_cast<std::size_t>(p_.dim_qk);
        const auto dim_v = static_cast<std::size_t>(call_.dim_v);
        d_q_.disclaim(static_cast<std::size_t>((at.b * p_.heads_q + at.h) * p_.len_q + at.i) * d,
                      d);
        for (const std::int64_t key : seen_) {
            const auto row = static_cast<std::size_t>(
                (at.b * p_.heads_kv + at.h / call_.group) * p_.len_kv + key);
            d_k_.disclaim(row * d, d);
            d_v_.disclaim(row * dim_v, dim_v);
        }
    }

    const Prepared& call_;
    const Problem& p_;
    bound::KernelModel model_;
    std::vector<double> d_o_, o_, lse_, d_lse_;
    std::unique_ptr<DefinitionRows<double, false>> owned_;
    DefinitionRows<double, false>* rows_;
    ArithmeticError error_;
    RowRunner runner_;
    GradientFacts facts_;
    bound::GradientStructureRow structure_;
    bound::Expected forward_;
    AttentionRow<double> given_;
    GradientRow<double> gradient_;
    GradientSums<double> sums_;
    GradientErrors d_q_, d_k_, d_v_;
    std::vector<std::int64_t> seen_;
    std::vector<double> weight_, own_;
};

}  // namespace

std::optional<bound::ExpectedGradients> attend_gradient_structure(const Problem& problem,
                                                                  const Dialect& dialect,
                                                                  const Numerics& numerics,
                                                                  const TensorSet& inputs) {
    if (!bound::gradient_structure_declared(problem, numerics)) return std::nullopt;
    const Prepared call = prepare(problem, dialect, inputs);
    Prepared clean = call;
    if (call.any_nonfinite) clean_values(clean);
    return StructuredGradients(call, clean, numerics, inputs).run();
}

}  // namespace attest::oracle
