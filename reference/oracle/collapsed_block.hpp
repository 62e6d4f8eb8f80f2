#pragma once
// Rows that see the same keys of a head in classes, computed together, with their bounds.

#include <cstdint>
#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/bound/forward_bound.hpp"
#include "reference/oracle/collapsed_head.hpp"
#include "reference/oracle/own_error.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest::oracle {

class CollapsedBlock {
public:
    CollapsedBlock(const Prepared& call, const bound::KernelModel& model,
                   const CollapsedHead& head);

    /// Queries [i, i + rows) of a head, at most block_rows: each sees the keys the head has taken.
    /// output: [rows, dim_v].
    void compute(std::int64_t b, std::int64_t h, std::int64_t i, std::size_t rows,
                 bound::ExpectedElement* output, bound::ExpectedElement* lse);

private:
    struct Row {
        explicit Row(const bound::KernelModel& model) : bound(model) {}
        std::vector<double> score, weight, magnitude, bias, count;
        bound::RowFacts facts;
        bound::RowBound bound;
        OwnError own;
        double spread = 0;
    };
    void dot_products(const double* q, std::size_t rows);
    void weigh(std::size_t index, std::int64_t h);
    std::size_t keep_seen(Row& row);
    void put_weights(const Row& row, std::size_t n, std::size_t base);
    void read(Row& row, std::size_t n, double most, double lse, double q_max);
    void class_sums(std::size_t rows);
    void put_outputs(std::size_t index, bound::ExpectedElement* o);
    void put_lse(const Row& row, bound::ExpectedElement& lse) const;

    const Prepared& call_;
    const Problem& p_;
    bound::KernelModel model_;
    const CollapsedHead& head_;
    ArithmeticError arithmetic_;
    std::vector<Row> rows_;  // [block_rows]
    std::int64_t classes_ = 0, width_ = 0;
    std::vector<std::size_t> seen_;  ///< classes with a visible key; empty: all
    std::vector<double> dot_, weight_, value_, query_max_;  // [rows, width or stride]
    std::vector<float> query_size_, size_, plain_, single_weight_, plain_sum_, square_sum_;
    std::vector<double> spread_, sums_, error_, limit_;  // [dim_v]
};

}  // namespace attest::oracle
