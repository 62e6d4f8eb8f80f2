#pragma once
// Runs the gradients' definition over a call in one arithmetic.

#include <memory>
#include <vector>

#include "reference/oracle/definition_rows.hpp"
#include "reference/oracle/gradient_book.hpp"
#include "reference/oracle/gradient_definition.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest {

template <typename Real, bool turned>
class GradientEngine {
public:
    GradientEngine(const Prepared& call, const Prepared& clean, const KernelModel& model,
                   const std::vector<double>& d_output)
        : call_(call),
          p_(call.problem),
          d_output_(d_output),
          owned_(std::make_unique<DefinitionRows<Real, turned>>(clean)),
          rows_(owned_.get()),
          book_(call, model, rows_->error(), rows_->head().rotation().channel_frequency()),
          runner_(call, clean, model, std::move(owned_)) {
        d_q_.resize(book_.d_q.own.size(), Real(0.0));
        d_k_.resize(book_.d_k.own.size());
        d_v_.resize(book_.d_v.own.size());
        d_mask_.resize(book_.d_mask.own.size());
        d_sinks_.resize(book_.d_sinks.own.size());
        const std::size_t rows = static_cast<std::size_t>(p_.batch * p_.heads_q * p_.len_q);
        forward_.output.resize(rows * static_cast<std::size_t>(call.dim_v));
        forward_.lse.resize(rows);
        forward_.row_empty.resize(rows);
    }

    ExpectedGradients run() {
        for (std::int64_t b = 0; b < p_.batch; ++b)
            for (std::int64_t h = 0; h < p_.heads_q; ++h)
                for (std::int64_t i = 0; i < p_.len_q; ++i) row(b, h, i);
        if constexpr (turned) turn_keys_back();
        const double own = book_.own_once(), bound = book_.bound_once();
        return {.d_q = book_.d_q.expect(nearest(d_q_), own, bound),
                .d_k = book_.d_k.expect(nearest(d_k_), own, bound),
                .d_v = book_.d_v.expect(nearest(d_v_), own, bound),
                .d_mask = book_.d_mask.expect(nearest(d_mask_), own, bound),
                .d_sinks = book_.d_sinks.expect(nearest(d_sinks_), own, bound)};
    }

private:
    static double round(const Real& x) { return Arithmetics<Real>::nearest(x); }
    static std::vector<double> nearest(const std::vector<Real>& from) {
        std::vector<double> out;
        for (const Real& x : from) out.push_back(round(x));
        return out;
    }
    static std::vector<double> nearest(const std::vector<Sum<Real>>& from) {
        std::vector<double> out;
        for (const Sum<Real>& x : from) out.push_back(round(x.value()));
        return out;
    }

    void row(std::int64_t b, std::int64_t h, std::int64_t i) {
        const std::int64_t flat = (b * p_.heads_q + h) * p_.len_q + i;
        const double* d_o = d_output_.data() + flat * call_.dim_v;
        visible_keys(call_, b, h, i, seen_);
        runner_.row(flat, forward_);
        bool finite = !runner_.tainted();
        for (std::int64_t c = 0; c < call_.dim_v; ++c) finite = finite && std::isfinite(d_o[c]);
        const bool queried = keys_of(p_, call_.dialect, b, i).is_query;
        const bool open = queried && seen_.empty() && !p_.sink &&
                          call_.dialect.empty_row != EmptyRow::zeros;
        if (!finite || open) return book_.disclaim(b, h, i, seen_);
        if (runner_.values().score.empty()) return;
        gradient_row(rows_->inputs(), rows_->computed(), d_o, gradient_);
        write(b, h, i, flat, d_o);
        add(b, h, i);
    }

    /// The row in double, for the book.
    void write(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t flat,
               const double* d_o) {
        const std::size_t entries = gradient_.ds.size(), keys = seen_.size();
        const std::int64_t dim_v = call_.dim_v;
        GradientEntry e;
        e.b = b;
        e.h = h;
        e.i = i;
        e.position = keys_of(p_, call_.dialect, b, i).position;
        e.visible = seen_;
        e.row = runner_.facts();
        e.own = runner_.own();
        e.d_output = d_o;
        dp_.assign(entries, 0.0);
        dp_size_.assign(entries, 0.0);
        slope_.clear();
        for (std::size_t j = 0; j < entries; ++j) {
            dp_[j] = round(gradient_.dp[j]);
            if (!gradient_.slope.empty())
                slope_.push_back(std::abs(round(gradient_.slope[j])));
            if (j >= keys) continue;
            const double* v = rows_->inputs().values + seen_[j] * dim_v;
            for (std::int64_t c = 0; c < dim_v; ++c) dp_size_[j] += std::abs(d_o[c] * v[c]);
        }
        e.back.dp = dp_;
        e.back.dp_size = dp_size_;
        e.back.slope = slope_;
        e.back.d = round(gradient_.d);
        e.back.dim_v = static_cast<double>(dim_v);
        const FormatTraits o = traits(p_.format_o);
        for (std::int64_t c = 0; c < dim_v; ++c) {
            const ExpectedElement& x =
                forward_.output[static_cast<std::size_t>(flat * dim_v + c)];
            const double size = std::abs(d_o[c]);
            e.back.d_size += size * std::abs(x.value);
            // Stored O: the bound, its rounding, and half a subnormal step.
            e.back.d_output += size * (x.bound + o.unit_roundoff * (std::abs(x.value) + x.bound) +
                                       std::ldexp(1.0, o.exponent_min - o.significand_bits));
            e.own_output +=
                size * std::max(0.0, x.error - double_rounding(x.value)) * 1.01;
        }
        const ExpectedElement& lse = forward_.lse[static_cast<std::size_t>(flat)];
        const double unit = p_.format_q == Precision::f64 ? 0x1p-53 : 0x1p-24;
        const double natural = call_.dialect.lse_base == LseBase::two ? 0.6931471805599454 : 1.0;
        // In base 2 it is multiplied by log(2) again: two units more.
        e.back.lse_error =
            1.0001 * natural * (lse.bound + 3 * unit * (std::abs(lse.value) + lse.bound));
        query_size_ = rows_->head().query_size;
        if constexpr (turned) rows_->head().rotation().spread(query_size_.data());
        load_sizes(b, h / call_.group);
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

    void add(std::int64_t b, std::int64_t h, std::int64_t i) {
        const std::size_t d = static_cast<std::size_t>(p_.dim_qk);
        const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
        const std::int64_t flat = (b * p_.heads_q + h) * p_.len_q + i;
        const double* d_o = d_output_.data() + flat * call_.dim_v;
        const auto& in = rows_->inputs();
        const std::int64_t key_row = (b * p_.heads_kv + h / call_.group) * p_.len_kv;
        const bool late = in.cap_after_bias;
        std::vector<Sum<Real>>& d_query = d_query_;
        d_query.assign(d, Sum<Real>());
        for (std::size_t j = 0; j < seen_.size(); ++j) {
            const std::size_t key = static_cast<std::size_t>(key_row + seen_[j]);
            Real dx = gradient_.ds[j];
            if (!gradient_.slope.empty()) dx = dx * gradient_.slope[j];
            if (!d_mask_.empty())
                d_mask_[call_.mask_index(b, h, i, seen_[j])].add(late ? dx : gradient_.ds[j]);
            const Real scaled = dx * Real(in.scale);
            const Element* k = in.keys + seen_[j] * in.dim_qk;
            for (std::size_t c = 0; c < d; ++c) {
                d_query[c].add_product(scaled, k[c]);
                d_k_[key * d + c].add_product(scaled, in.query[c]);
            }
            for (std::size_t c = 0; c < dim_v; ++c)
                d_v_[key * dim_v + c].add_product(gradient_.weight[j], d_o[c]);
        }
        if (in.sink != nullptr)
            d_sinks_[static_cast<std::size_t>(h)].add(gradient_.ds[seen_.size()]);
        Real* to = d_q_.data() + static_cast<std::size_t>(flat) * d;
        for (std::size_t c = 0; c < d; ++c) to[c] = d_query[c].value();
        if constexpr (turned)
            rows_->head().rotation().turn_back(
                to, p_.rope.offset + keys_of(p_, call_.dialect, b, i).position);
    }

    void turn_keys_back() {
        if (p_.cache.present && p_.cache.keys_rotated) return;
        const std::size_t d = static_cast<std::size_t>(p_.dim_qk);
        std::vector<Real> row(d, Real(0.0));
        for (std::size_t at = 0; at < d_k_.size(); at += d) {
            for (std::size_t c = 0; c < d; ++c) row[c] = d_k_[at + c].value();
            const std::int64_t key = static_cast<std::int64_t>(at / d) % p_.len_kv;
            rows_->head().rotation().turn_back(row.data(),
                                               p_.rope.offset + key_position(p_, key));
            for (std::size_t c = 0; c < d; ++c) {
                d_k_[at + c] = Sum<Real>();
                d_k_[at + c].add(row[c]);
            }
        }
    }

    const Prepared& call_;
    const Problem& p_;
    const std::vector<double>& d_output_;
    std::unique_ptr<DefinitionRows<Real, turned>> owned_;
    DefinitionRows<Real, turned>* rows_;
    GradientBook book_;
    RowRunner runner_;
    Expected forward_;
    GradientRow<Real> gradient_;
    std::vector<Real> d_q_;
    std::vector<Sum<Real>> d_k_, d_v_, d_mask_, d_sinks_, d_query_;
    std::vector<std::int64_t> seen_;
    std::vector<double> dp_, dp_size_, slope_, query_size_, key_size_;
    std::int64_t sizes_b_ = -1, sizes_h_ = -1;

    using Element = typename DefinitionRows<Real, turned>::Element;
};

template <typename Real>
ExpectedGradients run_gradients(const Prepared& call, const Prepared& clean,
                                const KernelModel& model, const std::vector<double>& d_output) {
    if (call.problem.rope.style == RopeStyle::none)
        return GradientEngine<Real, false>(call, clean, model, d_output).run();
    return GradientEngine<Real, true>(call, clean, model, d_output).run();
}

ExpectedGradients gradients_in_double(const Prepared& call, const Prepared& clean,
                                      const KernelModel& model,
                                      const std::vector<double>& d_output);
ExpectedGradients gradients_in_double_double(const Prepared& call, const Prepared& clean,
                                             const KernelModel& model,
                                             const std::vector<double>& d_output);
ExpectedGradients gradients_in_exact(const Prepared& call, const Prepared& clean,
                                     const KernelModel& model,
                                     const std::vector<double>& d_output);

}  // namespace attest
