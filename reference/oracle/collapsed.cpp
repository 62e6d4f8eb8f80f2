#include "reference/oracle/collapsed.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "reference/bound/forward_bound.hpp"
#include "reference/oracle/collapsed_head.hpp"
#include "reference/oracle/lanes.hpp"
#include "reference/oracle/nonfinite.hpp"
#include "reference/oracle/own_error.hpp"
#include "reference/oracle/real.hpp"
#include "reference/oracle/row_arithmetic.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

bool covers(const Problem& p) {
    return p.rope.style == RopeStyle::none && !p.alibi && p.mask.tensor.kind == MaskKind::none &&
           p.mask.documents_q.empty() && p.mask.window.left < 0;
}

class Collapsed {
public:
    Collapsed(const Prepared& call, const KernelModel& model, Expected& out)
        : call_(call),
          p_(call.problem),
          model_(model),
          bound_(model),
          arithmetic_(Arithmetics<double>::error()),
          out_(out) {
        arithmetic_.weight_floor = 0x1p-1021;  // exponentials() stops at exp(-708)
    }

    bool head(std::int64_t b, std::int64_t h, std::int64_t classes_max) {
        if (!head_.load(call_, b, h / call_.group, classes_max)) return false;
        ones_.assign(head_.classes(), 1.0);
        // Rows see [0, last) with last not falling from row to row.
        for (std::int64_t i = 0; i < p_.len_q; ++i) row(b, h, i);
        return true;
    }

private:
    void row(std::int64_t b, std::int64_t h, std::int64_t i) {
        const std::int64_t flat = (b * p_.heads_q + h) * p_.len_q + i;
        const KeyRange range = keys_of(p_, call_.dialect, b, i);
        ExpectedElement* o = out_.output.data() + flat * call_.dim_v;
        ExpectedElement& lse = out_.lse[static_cast<std::size_t>(flat)];
        const bool sees = range.is_query && range.last > 0;
        out_.row_empty[static_cast<std::size_t>(flat)] = sees ? 0 : 1;
        if (!sees) {
            // Rare, and of no interest here: zeros past the queries, otherwise nothing is claimed.
            const ExpectedElement nothing = claimed(Claim::nothing);
            std::fill(o, o + call_.dim_v, range.is_query ? nothing : ExpectedElement{});
            lse = range.is_query ? nothing : ExpectedElement{-infinite, 0, 0};
            return;
        }
        head_.take(range.last);
        weigh(b, h, i);
        put_outputs(o);
        put_lse(lse);
    }

    /// Scores and weights of the classes that have a visible key, and the sink's.
    void weigh(std::int64_t b, std::int64_t h, std::int64_t i) {
        const std::size_t room = static_cast<std::size_t>(head_.keys().stride + lane_multiple);
        for (std::vector<double>* x : {&dot_, &size_, &score_, &weight_, &magnitude_, &count_})
            x->assign(room, 0.0);
        const double* q = call_.query(b, h, i);
        dots(head_.keys(), q, 0, head_.keys().stride, dot_.data(), size_.data());
        classes_.clear();
        std::size_t n = 0;
        for (std::size_t r = 0; r < head_.classes(); ++r) {
            if (head_.count()[r] == 0) continue;
            double s = dot_[r] * call_.scale;
            if (p_.softcap > 0) s = p_.softcap * std::tanh(s / p_.softcap);
            classes_.push_back(static_cast<std::int64_t>(r));
            score_[n] = s;
            count_[n] = head_.count()[r];
            magnitude_[n++] = std::abs(call_.scale) * size_[r];
        }
        bias_.clear();
        if (p_.sink) {
            score_[n] = call_.sinks[static_cast<std::size_t>(h)];
            bias_.assign(n + 1, 0.0);
            bias_[n] = std::abs(score_[n]);
            count_[n++] = 1;
        }
        const auto end = static_cast<std::ptrdiff_t>(n);
        const double most = *std::max_element(score_.begin(), score_.begin() + end);
        std::fill(score_.begin() + end, score_.end(), -infinite);
        exponentials(score_.data(), most, padded(static_cast<std::int64_t>(n)), weight_.data());
        double sum = 0;
        for (std::size_t r = 0; r < n; ++r) sum += count_[r] * weight_[r];
        for (std::size_t r = 0; r < n; ++r) weight_[r] /= sum;
        read(n, most, most + std::log(sum), q);
    }

    void read(std::size_t n, double most, double lse, const double* q) {
        facts_.score = std::span(score_).first(n);
        facts_.weight = std::span(weight_).first(n);
        facts_.magnitude = std::span(magnitude_).first(n);
        facts_.bias = bias_;
        facts_.count = std::span(count_).first(n);
        facts_.max = most;
        facts_.lse = lse;
        facts_.sink = p_.sink;
        facts_.q_max = 0;
        for (std::int64_t c = 0; c < p_.dim_qk; ++c)
            facts_.q_max = std::max(facts_.q_max, std::abs(q[c]));
        facts_.k_max = head_.key_max();
        bound_.weigh(facts_);
        own_ = own_error(arithmetic_, model_, facts_, head_.largest(), 0);
        // sum_j centred_j |v_j - O| <= sqrt(sum_j centred_j^2 / p_j) sqrt(sum_j p_j (v_j - O)^2).
        double square = 0;
        for (std::size_t r = 0; r < n; ++r)
            if (weight_[r] > 0)
                square += count_[r] * bound_.centred()[r] * bound_.centred()[r] / weight_[r];
        spread_ = std::sqrt(square) * (1 + 0x1p-40);
    }

    // With the sink a key of value 0, sum_j p_j (v_j - O)^2 = sum_j p_j v_j^2 - O^2. The difference
    // is off by the rounding of both: at most gamma(n + classes + 4) of the first, three times.
    void put_outputs(ExpectedElement* o) {
        const std::size_t stride = static_cast<std::size_t>(head_.stride());
        for (std::vector<double>* x : {&value_, &mass_, &plain_, &square_, &total_})
            x->resize(stride);
        const std::int64_t step = head_.stride();
        combine(head_.sum().data(), step, classes_, weight_.data(), value_.data());
        combine(head_.size().data(), step, classes_, weight_.data(), mass_.data());
        combine(head_.size().data(), step, classes_, bound_.plain().data(), plain_.data());
        combine(head_.square().data(), step, classes_, weight_.data(), square_.data());
        combine(head_.size().data(), step, classes_, ones_.data(), total_.data());
        const double lost =
            3 * arithmetic_.sum(facts_.keys_counted() + 4 + static_cast<double>(classes_.size()));
        // Weights that underflowed have no share in the sums above.
        const double floor = 2 * arithmetic_.weight_floor;
        for (std::size_t c = 0; c < static_cast<std::size_t>(call_.dim_v); ++c) {
            const double scaled = value_[c] / head_.unit();
            const double around = std::max(0.0, square_[c] - scaled * scaled) + lost * square_[c] +
                                  std::numeric_limits<double>::min();
            const double spread = spread_ * std::sqrt(around) * head_.unit() + floor * total_[c];
            const ColumnSums sums{spread, plain_[c], -infinite, infinite, total_[c]};
            o[c] = {.value = value_[c],
                    .error = output_error(own_, value_[c], mass_[c], total_[c]),
                    .bound = bound_.output(value_[c], sums).value()};
        }
    }

    void put_lse(ExpectedElement& lse) const {
        const bool two = call_.dialect.lse_base == LseBase::two;
        const double scale = two ? 1 / std::log(2.0) : 1.0;
        lse.value = facts_.lse * scale;
        lse.error = 1.01 * scale * own_.lse + 4 * double_rounding(lse.value);
        lse.bound = (two ? bound_.lse_base_two() : bound_.lse()).value();
    }

    const Prepared& call_;
    const Problem& p_;
    KernelModel model_;
    RowBound bound_;
    ArithmeticError arithmetic_;
    Expected& out_;
    CollapsedHead head_;
    std::vector<std::int64_t> classes_;  ///< those with a visible key
    std::vector<double> dot_, size_, score_, weight_, magnitude_, bias_, count_;
    std::vector<double> value_, mass_, plain_, square_, total_, ones_;
    double spread_ = 0;
    RowFacts facts_;
    OwnError own_;
};

}  // namespace

std::optional<Expected> attend_collapsed(const Problem& problem, const Dialect& dialect,
                                         const Numerics& numerics, const TensorSet& inputs,
                                         std::int64_t classes_max) {
    if (!covers(problem)) return std::nullopt;
    const Prepared call = prepare(problem, dialect, inputs);
    if (call.any_nonfinite) return std::nullopt;
    Expected out;
    const std::size_t rows =
        static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q);
    out.output_shape = {problem.batch, problem.heads_q, problem.len_q, call.dim_v};
    out.output.resize(rows * static_cast<std::size_t>(call.dim_v));
    out.lse.resize(rows);
    out.row_empty.resize(rows);
    Collapsed collapsed(call, resolve(problem, numerics), out);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            if (!collapsed.head(b, h, classes_max)) return std::nullopt;
    return out;
}

void collapse_keys(TensorSet& inputs, std::int64_t classes, std::uint64_t seed) {
    require(classes > 0, "keys are collapsed into at least one class");
    Tensor& k = inputs[Role::k];
    const Shape shape = k.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
            for (std::int64_t j = classes; j < shape[2]; ++j) {
                const std::uint64_t index =
                    static_cast<std::uint64_t>((b * shape[1] + h) * shape[2] + j);
                const std::int64_t from = static_cast<std::int64_t>(
                    counter_bits(seed, 0, index) % static_cast<std::uint64_t>(classes));
                for (std::int64_t c = 0; c < shape[3]; ++c) k.put(b, h, j, c, k.at(b, h, from, c));
            }
}

}  // namespace attest
