#include "reference/oracle/collapsed.hpp"

#include <algorithm>

#include "reference/oracle/collapsed_block.hpp"
#include "reference/oracle/collapsed_head.hpp"
#include "reference/oracle/nonfinite.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"

namespace attest::oracle {

namespace {

bool covers(const Problem& p) {
    return !has_positions(p) && p.mask.tensor.kind == MaskKind::none &&
           p.mask.documents_q.empty() && p.mask.window.left < 0;
}

class Collapsed {
public:
    Collapsed(const Prepared& call, const bound::KernelModel& model, bound::Expected& out)
        : call_(call), p_(call.problem), block_(call, model, head_), out_(out) {}

    bool head(std::int64_t b, std::int64_t h, std::int64_t classes_max) {
        if (!head_.load(call_, b, h / call_.group, classes_max)) return false;
        // Rows see [0, last) with last not falling from row to row; those that see the same keys
        // go together.
        for (std::int64_t i = 0; i < p_.len_q;) {
            const KeyRange range = keys_of(p_, call_.dialect, b, i);
            const std::int64_t flat = (b * p_.heads_q + h) * p_.len_q + i;
            bound::ExpectedElement* o = out_.output.data() + flat * call_.dim_v;
            if (!sees(range)) {
                out_.row_empty[static_cast<std::size_t>(flat)] = 1;
                put_empty(range, o, out_.lse[static_cast<std::size_t>(flat)]);
                ++i;
                continue;
            }
            std::size_t n = 1;
            for (; n < block_rows && i + static_cast<std::int64_t>(n) < p_.len_q; ++n) {
                const KeyRange next =
                    keys_of(p_, call_.dialect, b, i + static_cast<std::int64_t>(n));
                if (!sees(next) || next.last != range.last) break;
            }
            head_.take(range.last);
            block_.compute(b, h, i, n, o, out_.lse.data() + flat);
            i += static_cast<std::int64_t>(n);
        }
        return true;
    }

private:
    static bool sees(const KeyRange& range) { return range.is_query && range.last > 0; }

    /// Rare, and of no interest here: zeros past the queries, otherwise nothing is claimed.
    void put_empty(const KeyRange& range, bound::ExpectedElement* o,
                   bound::ExpectedElement& lse) const {
        const bound::ExpectedElement nothing = claimed(Claim::nothing);
        const bool open = range.is_query || call_.dialect.empty_row == EmptyRow::refuse;
        std::fill(o, o + call_.dim_v, open ? nothing : bound::ExpectedElement{});
        lse = open ? nothing : bound::ExpectedElement{-infinite, 0, 0};
    }

    const Prepared& call_;
    const Problem& p_;
    CollapsedHead head_;
    CollapsedBlock block_;
    bound::Expected& out_;
};

}  // namespace

std::optional<bound::Expected> attend_collapsed(const Problem& problem, const Dialect& dialect,
                                                const Numerics& numerics, const TensorSet& inputs,
                                                std::int64_t classes_max) {
    if (!covers(problem)) return std::nullopt;
    const Prepared call = prepare(problem, dialect, inputs);
    if (call.any_nonfinite) return std::nullopt;
    bound::Expected out;
    const std::size_t rows =
        static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q);
    out.output_shape = {problem.batch, problem.heads_q, problem.len_q, call.dim_v};
    out.output.resize(rows * static_cast<std::size_t>(call.dim_v));
    out.lse.resize(rows);
    out.row_empty.resize(rows);
    Collapsed collapsed(call, model_of(call, numerics), out);
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

}  // namespace attest::oracle
