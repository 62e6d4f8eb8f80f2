#include "reference/oracle/collapsed_block.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "reference/bound/rounding.hpp"
#include "reference/oracle/column_loops.hpp"
#include "reference/oracle/lanes.hpp"
#include "reference/oracle/real.hpp"

namespace attest::oracle {

namespace {}  // namespace

CollapsedBlock::CollapsedBlock(const Prepared& call, const bound::KernelModel& model,
                               const CollapsedHead& head)
    : call_(call),
      p_(call.problem),
      model_(model),
      head_(head),
      arithmetic_(Arithmetics<double>::error()),
      rows_(block_rows, Row(model)) {
    arithmetic_.weight_floor = 0x1p-1021;  // exponentials() stops at exp(-708)
}

void CollapsedBlock::compute(std::int64_t b, std::int64_t h, std::int64_t i, std::size_t rows,
                             bound::ExpectedElement* output, bound::ExpectedElement* lse) {
    classes_ = static_cast<std::int64_t>(head_.classes());
    width_ = TiledKeys::room(classes_);
    dot_products(call_.query(b, h, i), rows);
    const std::size_t room = rows * static_cast<std::size_t>(width_);
    weight_.resize(room);
    single_weight_.resize(room);
    plain_.resize(room);
    for (std::size_t row = 0; row < rows; ++row) weigh(row, h);
    class_sums(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        put_outputs(row, output + static_cast<std::int64_t>(row) * call_.dim_v);
        put_lse(rows_[row], lse[row]);
    }
}

void CollapsedBlock::dot_products(const double* q, std::size_t rows) {
    const std::int64_t d = p_.dim_qk, count = static_cast<std::int64_t>(rows);
    query_size_.resize(rows * static_cast<std::size_t>(d));
    query_max_.resize(rows);
    for (std::int64_t row = 0; row < count; ++row) {
        double& most = query_max_[static_cast<std::size_t>(row)];
        most = extent(q + row * d, d).largest;
        narrow_sizes(q + row * d, 1 / power_below(most), d, query_size_.data() + row * d);
    }
    dot_.resize(rows * static_cast<std::size_t>(width_));
    size_.resize(dot_.size());
    for (std::int64_t r = 0; r < width_; r += key_tile) {
        add_product(Product<double>{count, d, key_tile, q, d, head_.keys().hi + r * d, key_tile,
                                    dot_.data() + r, width_, true});
        add_product(Product<float>{count, d, key_tile, query_size_.data(), d,
                                   head_.key_size().data() + r * d, key_tile, size_.data() + r,
                                   width_, true});
    }
}

/// Scores and weights of the classes that have a visible key, and the sink's.
void CollapsedBlock::weigh(std::size_t index, std::int64_t h) {
    Row& row = rows_[index];
    const std::size_t base = index * static_cast<std::size_t>(width_);
    const std::int64_t room = padded(classes_ + 1);
    for (std::vector<double>* x : {&row.score, &row.weight, &row.magnitude, &row.count})
        x->resize(static_cast<std::size_t>(room));
    const SizeUnits units(p_.dim_qk, query_max_[index], head_.key_unit(), call_.scale);
    scaled(dot_.data() + base, call_.scale, classes_, row.score.data());
    widen_upward(size_.data() + base, units.factor(), units.least(), classes_,
                 row.magnitude.data());
    std::copy(head_.count().begin(), head_.count().end(), row.count.begin());
    std::size_t n = head_.classes();
    seen_.clear();
    if (head_.unseen() > 0) n = keep_seen(row);
    if (p_.softcap > 0)
        for (std::size_t r = 0; r < n; ++r)
            row.score[r] = p_.softcap * std::tanh(row.score[r] / p_.softcap);
    const std::size_t classes = n;
    row.bias.clear();
    if (p_.sink) {
        row.score[n] = call_.sinks[static_cast<std::size_t>(h)];
        row.bias.assign(n + 1, 0.0);
        row.bias[n] = std::abs(row.score[n]);
        row.magnitude[n] = 0;
        row.count[n++] = 1;
    }
    std::fill(row.score.begin() + static_cast<std::ptrdiff_t>(n), row.score.end(), -infinite);
    const double most = scaled(row.score.data(), 1, room, row.score.data());
    exponentials(row.score.data(), most, room, row.weight.data());
    double sum = 0;
    for (std::size_t r = 0; r < n; ++r) sum += row.count[r] * row.weight[r];
    scaled(row.weight.data(), 1 / sum, static_cast<std::int64_t>(n), row.weight.data());
    read(row, n, most, most + std::log(sum), query_max_[index]);
    put_weights(row, classes, base);
}

/// Leaves out what no visible key is of.
std::size_t CollapsedBlock::keep_seen(Row& row) {
    for (std::size_t r = 0; r < head_.classes(); ++r) {
        if (head_.count()[r] == 0) continue;
        const std::size_t to = seen_.size();
        row.score[to] = row.score[r];
        row.magnitude[to] = row.magnitude[r];
        row.count[to] = row.count[r];
        seen_.push_back(r);
    }
    return seen_.size();
}

/// Weights and coefficients of the row, a number each class.
void CollapsedBlock::put_weights(const Row& row, std::size_t n, std::size_t base) {
    const double *weight = row.weight.data(), *plain = row.bound.plain().data();
    if (seen_.empty()) {
        const std::int64_t count = static_cast<std::int64_t>(n);
        std::copy(weight, weight + n, weight_.data() + base);
        narrow(weight, 1, count, single_weight_.data() + base);
        narrow(plain, 1, count, plain_.data() + base);
        return;
    }
    const std::size_t end = base + head_.classes();
    std::fill(weight_.data() + base, weight_.data() + end, 0.0);
    std::fill(single_weight_.data() + base, single_weight_.data() + end, 0.0f);
    std::fill(plain_.data() + base, plain_.data() + end, 0.0f);
    for (std::size_t r = 0; r < n; ++r) {
        weight_[base + seen_[r]] = weight[r];
        single_weight_[base + seen_[r]] = static_cast<float>(weight[r]);
        plain_[base + seen_[r]] = static_cast<float>(plain[r]);
    }
}

void CollapsedBlock::read(Row& row, std::size_t n, double most, double lse, double q_max) {
    bound::RowFacts& facts = row.facts;
    facts.score = std::span(row.score).first(n);
    facts.weight = std::span(row.weight).first(n);
    facts.magnitude = std::span(row.magnitude).first(n);
    facts.bias = row.bias;
    facts.count = std::span(row.count).first(n);
    facts.max = most;
    facts.lse = lse;
    facts.sink = p_.sink;
    facts.q_max = q_max;
    facts.k_max = head_.key_max();
    row.bound.weigh(facts);
    row.own =
        own_error(arithmetic_, model_, facts.outline(), row.bound.maxima(), head_.largest(), 0);
    // sum_j centred_j |v_j - O| <= sqrt(sum_j centred_j^2 / p_j) sqrt(sum_j p_j (v_j - O)^2).
    const double square =
        weighted_squares(row.count.data(), row.bound.centred().data(), row.weight.data(), n);
    row.spread = std::sqrt(square) * (1 + 0x1p-40);
}

void CollapsedBlock::class_sums(std::size_t rows) {
    const std::int64_t stride = head_.stride(), count = static_cast<std::int64_t>(rows);
    const std::size_t room = rows * static_cast<std::size_t>(stride);
    value_.resize(room);
    plain_sum_.resize(room);
    square_sum_.resize(room);
    add_product(Product<double>{count, classes_, stride, weight_.data(), width_, head_.sum().data(),
                                stride, value_.data(), stride, true});
    add_product(Product<float>{count, classes_, stride, plain_.data(), width_, head_.size().data(),
                               stride, plain_sum_.data(), stride, true});
    add_product(Product<float>{count, classes_, stride, single_weight_.data(), width_,
                               head_.square().data(), stride, square_sum_.data(), stride, true});
}

// Sums in single precision, as in HeadColumns::sums: of numbers below 2 n, each off by 2^-24 of
// itself or 2^-150, over the classes: at most S (1 + chain_error(classes + 3)) + n 2^-143.
//
// With the sink a key of value 0, sum_j p_j (v_j - O)^2 = sum_j p_j v_j^2 - O^2. The difference
// is off by the rounding of both: at most gamma(n + classes + 4) of the first, three times.
void CollapsedBlock::put_outputs(std::size_t index, bound::ExpectedElement* o) {
    Row& row = rows_[index];
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    const std::size_t base = index * static_cast<std::size_t>(head_.stride());
    const double n = row.facts.keys_counted(), classes = static_cast<double>(classes_);
    const double upward = 1 + bound::chain_error(classes + 3, 0x1p-24), least = n * 0x1p-143;
    const double lost = 3 * arithmetic_.sum(n + 4 + classes);
    // Weights that underflowed have no share in the sums above.
    const double floor = 2 * arithmetic_.weight_floor;
    for (std::vector<double>* x : {&spread_, &sums_, &error_, &limit_}) x->resize(dim_v);
    const double *value = value_.data() + base, *total = head_.total().data();
    deviations({.plain = plain_sum_.data() + base,
                .square = square_sum_.data() + base,
                .value = value,
                .unit = head_.unit().data(),
                .total = total,
                .upward = upward,
                .least = least,
                .factor = row.spread,
                .lost = lost,
                .floor = floor},
               dim_v, spread_.data(), sums_.data());
    output_errors(row.own,
                  {.value = value,
                   .size = sums_.data(),
                   .total = total,
                   .share = 1 / row.bound.plain_share(),
                   .value_max = head_.largest()},
                  dim_v, error_.data());
    row.bound.outputs(dim_v, value, {spread_.data(), sums_.data(), total}, limit_.data());
    put_elements(value, error_.data(), limit_.data(), dim_v, o);
}

void CollapsedBlock::put_lse(const Row& row, bound::ExpectedElement& lse) const {
    const bool two = call_.dialect.lse_base == LseBase::two;
    const double scale = two ? 1 / std::log(2.0) : 1.0;
    lse.value = row.facts.lse * scale;
    // 1.01 covers the products of two errors.
    lse.error = 1.01 * scale * row.own.lse + 4 * double_rounding(lse.value);
    lse.bound = (two ? row.bound.lse_base_two() : row.bound.lse()).value();
    const bound::ExpectedElement of_lse = lse;
    put_elements(&of_lse.value, &of_lse.error, &of_lse.bound, 1, &lse);
}

}  // namespace attest::oracle
