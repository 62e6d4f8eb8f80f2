#pragma once
// Runs the gradients' definition over a call in one arithmetic.

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "reference/oracle/definition_rows.hpp"
#include "reference/oracle/gradient_book.hpp"
#include "reference/oracle/gradient_facts.hpp"
#include "reference/oracle/gradient_runs.hpp"
#include "reference/oracle/gradient_sums.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

template <typename Real, bool turned>
class GradientEngine {
public:
    GradientEngine(const Prepared& call, const Prepared& clean, const bound::KernelModel& model,
                   const OutputGradients& given)
        : call_(call),
          p_(call.problem),
          given_(given),
          owned_(std::make_unique<DefinitionRows<Real, turned>>(clean)),
          rows_(owned_.get()),
          book_(call, model, rows_->error(), rows_->head().rotation().channel_frequency()),
          runner_(call, clean, model, std::move(owned_)),
          facts_(call, model.uf > 0),
          zeros_add_nothing_(zeros_add_nothing(call)) {
        sums_.d_q.resize(book_.d_q.own.size());
        sums_.d_k.resize(book_.d_k.own.size());
        sums_.d_v.resize(book_.d_v.own.size());
        sums_.d_mask.resize(book_.d_mask.own.size());
        sums_.d_sinks.resize(book_.d_sinks.own.size());
        sums_.d_slopes.resize(book_.d_slopes.own.size());
        const std::size_t rows = static_cast<std::size_t>(p_.batch * p_.heads_q * p_.len_q);
        forward_.output.resize(rows * static_cast<std::size_t>(call.dim_v));
        forward_.lse.resize(rows);
        forward_.row_empty.resize(rows);
    }

    bound::ExpectedGradients run() {
        for (std::int64_t b = 0; b < p_.batch; ++b)
            for (std::int64_t h = 0; h < p_.heads_q; ++h)
                for (std::int64_t i = 0; i < p_.len_q; ++i) row(b, h, i);
        if constexpr (turned) sums_.turn_back(call_, rows_->head().rotation());
        book_.round_heads();
        const double own = book_.own_once(), bound = book_.bound_once();
        return {.d_q = book_.d_q.expect(nearest(sums_.d_q), own, bound),
                .d_k = book_.d_k.expect(nearest(sums_.d_k), own, bound),
                .d_v = book_.d_v.expect(nearest(sums_.d_v), own, bound),
                .d_mask = book_.d_mask.expect(nearest(sums_.d_mask), own, bound),
                .d_sinks = book_.d_sinks.expect(nearest(sums_.d_sinks), own, bound),
                .d_slopes = book_.d_slopes.expect(nearest(sums_.d_slopes), own, bound)};
    }

private:
    static double round(const Real& x) { return Arithmetics<Real>::nearest(x); }
    void row(std::int64_t b, std::int64_t h, std::int64_t i) {
        const std::int64_t flat = (b * p_.heads_q + h) * p_.len_q + i;
        const double* d_o = given_.o.data() + flat * call_.dim_v;
        // Past lens_q dO and dLSE may hold anything; so may dLSE of an empty row.
        if (!keys_of(p_, call_.dialect, b, i).is_query) return;
        const double d_lse = given_.lse.empty() ? 0 : given_.lse[static_cast<std::size_t>(flat)];
        const auto all = [&](auto is) { return std::all_of(d_o, d_o + call_.dim_v, is); };
        const bool zero = zeros_add_nothing_ && d_lse == 0 && all([](double x) { return x == 0; });
        if (zero && (p_.sink || call_.dialect.empty_row == EmptyRow::zeros)) return;
        visible_keys(call_, b, h, i, seen_);
        if (zero && !seen_.empty()) return;
        runner_.row(flat, forward_);
        const bool empty = seen_.empty() && !p_.sink;
        const bool finite = !runner_.tainted() && (empty || std::isfinite(d_lse)) &&
                            all([](double x) { return x - x == 0; });
        const bool open = empty && call_.dialect.empty_row != EmptyRow::zeros;
        if (open) {
            // What is not promised of the row's weights, NaN among it, is added to every key's sum.
            seen_.resize(static_cast<std::size_t>(p_.len_kv));
            std::iota(seen_.begin(), seen_.end(), 0);
        }
        if (!finite || open) return book_.disclaim(b, h, i, seen_);
        if (runner_.values().score.empty()) return;
        const Real of_lse = of_natural_lse<Real>(call_.dialect.lse_base, d_lse);
        gradient_row(rows_->inputs(), rows_->computed(), d_o, of_lse, gradient_);
        write(b, h, i, flat, d_o, round(of_lse));
        sums_.add(call_, {b, h, i}, seen_, rows_->inputs(), gradient_, d_o);
    }

    /// The row's errors and bounds.
    void write(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t flat, const double* d_o,
               double d_lse) {
        facts_.dp.clear();
        facts_.slope.clear();
        for (const Real& x : gradient_.dp) facts_.dp.push_back(round(x));
        for (const Real& x : gradient_.slope) facts_.slope.push_back(std::abs(round(x)));
        query_size_ = rows_->head().query_size;
        if constexpr (turned) rows_->head().rotation().spread(query_size_.data());
        load_sizes(b, h / call_.group);
        GradientEntry e{.b = b, .h = h, .i = i, .visible = seen_, .distance = {}};
        e.position = keys_of(p_, call_.dialect, b, i).position;
        e.distance = rows_->inputs().distance;
        e.row = runner_.facts();
        e.own = runner_.own();
        e.back = facts_.make(flat, seen_, d_o, rows_->inputs().values, forward_, round(gradient_.d),
                             d_lse);
        e.own_output = facts_.own_output();
        e.d_output = d_o;
        e.query_size = query_size_.data();
        e.key_size = key_size_.data();
        book_.add(e);
    }

    void load_sizes(std::int64_t b, std::int64_t h_kv) {
        if (b == sizes_b_ && h_kv == sizes_h_) return;
        sizes_b_ = b;
        sizes_h_ = h_kv;
        key_size_ = rows_->head().key_size;
        if constexpr (turned)
            for (std::int64_t j = 0; j < p_.len_kv; ++j)
                rows_->head().rotation().spread(key_size_.data() + j * p_.dim_qk);
    }

    const Prepared& call_;
    const Problem& p_;
    const OutputGradients& given_;
    std::unique_ptr<DefinitionRows<Real, turned>> owned_;
    DefinitionRows<Real, turned>* rows_;
    GradientBook book_;
    RowRunner runner_;
    GradientFacts facts_;
    bool zeros_add_nothing_ = false;
    bound::Expected forward_;
    GradientRow<Real> gradient_;
    GradientSums<Real> sums_;
    std::vector<std::int64_t> seen_;
    std::vector<double> query_size_, key_size_;
    std::int64_t sizes_b_ = -1, sizes_h_ = -1;
};

template <typename Real>
bound::ExpectedGradients run_gradients(const Prepared& call, const Prepared& clean,
                                       const bound::KernelModel& model,
                                       const OutputGradients& given) {
    if (call.problem.rope.style == RopeStyle::none)
        return GradientEngine<Real, false>(call, clean, model, given).run();
    return GradientEngine<Real, true>(call, clean, model, given).run();
}

}  // namespace attest::oracle
