#pragma once
// A call of backward with all that its steps are made of, as the model (backward_model.hpp) reads
// it.

#include <cstdint>
#include <vector>

#include "properties/diagnosis/deviation.hpp"
#include "properties/diagnosis/near.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::diagnosis {

/// The number of the document that a place lies in; that of documents behind the last, and so 0
/// where there are none.
std::int64_t document_of(const std::vector<std::int64_t>& documents, std::int64_t at);

/// One query's key, as the call has it.
struct BackwardScore {
    double dot = 0, mask = 0, alibi = 0;  ///< dot unscaled
    double ahead = 0;                     ///< i + off - j; its size is ALiBi's distance
    double magnitude = 0, turn = 0;       ///< as RowFacts
    Near dp;                              ///< dO . v
    bool visible = false;
    bool inside = false;  ///< a key of the row's own sequence or document, hidden or not
    bool masked = false;  ///< hidden by the mask tensor alone
    double kept = 1;      ///< what dropout multiplies the weight by
};

/// A call of backward, with all that its steps are made of.
class BackwardCall {
public:
    /// `asked` holds d_o, o, d_lse where it is given, where the kernel returns one lse, and
    /// dropout_keep where weights are dropped. `visible` is the problem whose mask says what is
    /// seen, of the same shape; `forward` the truth. Throws BadInput.
    BackwardCall(const Specification& asked, const Specification& visible,
                 const bound::Expected& forward);

    struct RowFacts {
        bool is_query = false;
        std::int64_t position = 0;
        Near lse, delta;  ///< natural; delta: dO.O alone, or sum P dP
        Near d_lse;       ///< the gradient of the natural LSE, which dS has less delta
        double sum_of_d_o = 0, max = 0, q_max = 0, k_max = 0;
        std::vector<Near> output;   // [dim_v], as stored
        std::vector<double> query;  // [dim_qk], turned
        std::vector<double> d_o;    // [dim_v]
    };

    const Problem& problem() const { return call.problem; }
    const RowFacts& row(std::int64_t b, std::int64_t h, std::int64_t i) const {
        return rows_[static_cast<std::size_t>((b * call.problem.heads_q + h) * call.problem.len_q +
                                              i)];
    }
    const BackwardScore& score(std::int64_t b, std::int64_t h, std::int64_t i,
                               std::int64_t j) const {
        const Problem& p = call.problem;
        return scores_[static_cast<std::size_t>(((b * p.heads_q + h) * p.len_q + i) * p.len_kv +
                                                j)];
    }
    /// A query of any key; a key of any query of the group.
    bool sees_any(std::int64_t b, std::int64_t h, std::int64_t i) const;
    bool is_seen(std::int64_t b, std::int64_t h_kv, std::int64_t j) const;
    const double* key(std::int64_t b, std::int64_t h_kv, std::int64_t j) const {
        const Problem& p = call.problem;
        return keys_.data() + ((b * p.heads_kv + h_kv) * p.len_kv + j) * p.dim_qk;
    }
    /// A row's dO times a value, over the first `channels`.
    Near dp_of(const RowFacts& row, std::int64_t b, std::int64_t h_kv, std::int64_t j,
               std::int64_t channels) const;
    /// A sum of n products, or of n numbers: what it loses, relative to their sizes.
    double of_products(double n) const;
    double of_sum(double n) const;

    oracle::Prepared call;
    bound::KernelModel model;
    TensorSet inputs;

private:
    void fill_rows(const bound::Expected& forward);
    void fill_scores(const Specification& visible);
    void admit_delta_of_weights();

    std::vector<RowFacts> rows_;
    std::vector<BackwardScore> scores_;
    std::vector<double> keys_;  // turned
};

}  // namespace attest::diagnosis
