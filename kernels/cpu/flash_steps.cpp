// The correct steps of cpu_flash_plain.

#include "kernels/cpu/flash_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace attest::cpu::plain {

std::int64_t kv_head(const Call& call, std::int64_t head) {
    return head / call.group;
}

void load(const Operand& operand, const std::byte* from, std::int64_t count, float* to) {
    load_row(from, operand.format, operand.stride[3], count, to);
}

void load_query(const QueryBlock& b, std::int64_t i, float* to) {
    b.step.load(b.call.q, b.call.q.at(b.segment.batch, b.head, i), b.call.problem.dim_qk, to);
}

/// No key seen yet; or, with a sink, one score seen that has no value.
void start(const PlainRow& row) {
    const Call& call = row.block.call;
    row.seen = call.problem.sink != 0;
    row.max = row.seen ? call.sinks.real(row.block.head) : minus_infinity;
    row.sum = row.seen ? 1.0f : 0.0f;
}

std::int64_t diagonal(const QueryBlock& b, std::int64_t i) {
    return i + b.segment.offset;
}

bool causal(const QueryBlock& b, std::int64_t i, std::int64_t j) {
    return j <= b.step.causal_diagonal(b, i);
}

bool visible(const QueryBlock& b, std::int64_t i, std::int64_t j) {
    const attest_problem& p = b.call.problem;
    if (p.causal != 0 && !b.step.causal(b, i, j)) return false;
    const std::int64_t diagonal = b.step.window_diagonal(b, i);
    if (p.window_left >= 0 && j < diagonal - p.window_left) return false;
    return p.window_right < 0 || j - diagonal <= p.window_right;
}

SegmentKeys needed(const QueryBlock& b) {
    const attest_problem& p = b.call.problem;
    const std::int64_t last_row = b.row0 + b.rows - 1;
    SegmentKeys keys{0, b.segment.keys};
    if (p.causal != 0) keys.last = std::min(keys.last, b.step.causal_diagonal(b, last_row) + 1);
    const std::int64_t diagonal = b.step.window_diagonal(b, last_row);
    if (p.window_right >= 0 && p.window_right < keys.last - diagonal) {
        keys.last = diagonal + p.window_right + 1;  // compared so that nothing overflows
    }
    if (p.window_left >= 0) {
        keys.first = std::max(keys.first, b.step.window_diagonal(b, b.row0) - p.window_left);
    }
    return keys;
}

float dot(const QueryBlock& b, const float* query, const float* key) {
    float dot = 0;
    for (std::int64_t c = 0; c < b.call.problem.dim_qk; ++c) dot += query[c] * key[c];
    return dot;
}

Bias<float> mask(const QueryBlock& b, std::int64_t i, std::int64_t j) {
    const Operand& mask = b.call.mask;
    const std::int32_t kind = b.call.problem.mask_kind;
    Bias<float> bias;
    if (kind == ATTEST_MASK_NONE) return bias;
    const std::byte* at = mask.at(b.segment.batch, b.head, i, j);
    if (kind == ATTEST_MASK_BOOL) return {0, *at == std::byte{0}};
    load_row(at, mask.format, 1, 1, &bias.value);
    bias.hidden = bias.value == minus_infinity;
    return bias;
}

float alibi(const QueryBlock& b, std::int64_t i, std::int64_t j) {
    if (b.call.problem.alibi == 0) return 0;
    const std::int64_t distance = std::abs(i + b.segment.offset - j);
    return -(b.call.alibi_slopes.real(b.head) * static_cast<float>(distance));
}

float score(const QueryBlock& b, float dot, float bias) {
    const attest_problem& p = b.call.problem;
    return soft_capped(static_cast<float>(p.scale) * dot, p.softcap) + bias;
}

bool sees_any(const PlainRow& row) {
    return std::find(row.hidden, row.hidden + row.keys, false) != row.hidden + row.keys;
}

float largest(const PlainRow& row) {
    float max = minus_infinity;
    for (std::int64_t j = 0; j < row.keys; ++j) {
        if (!row.hidden[j]) max = larger(row.scores[j], max);
    }
    return max;
}

float weight(const PlainRow& row, float score, float frame) {
    return row.block.step.exp(score - frame);
}

float kept_factor(const QueryBlock& b) {
    return static_cast<float>(cpu::kept_factor(b.call.problem));
}

void rescale(const PlainRow& row, float factor) {
    for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c) row.output[c] *= factor;
}

void add_value(const PlainRow& row, float weight, const float* value) {
    const float fed = rounded(weight, row.block.call.format_q);
    for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c) row.output[c] += fed * value[c];
}

float total(const PlainRow& row, float factor, float sum) {
    return row.sum * factor + sum;
}

namespace {

bool keeps(const PlainRow& row, std::int64_t j) {
    const QueryBlock& b = row.block;
    const attest_problem& p = b.call.problem;
    return p.dropout_p == 0 || b.step.kept(p, cell_of(b.segment, b.head, row.i, j));
}

}  // namespace

/// Where m grows, l and acc are multiplied by exp(m_old - m_new).
void absorb(const PlainRow& row) {
    if (!sees_any(row)) return;
    const FlashSteps& step = row.block.step;
    row.seen = true;
    const float max = larger(row.max, step.largest(row));
    const float frame = max == minus_infinity ? 0 : max;  // scores of -inf alone: weights of zero
    const float factor = step.exp(row.max - frame);
    step.rescale(row, factor);
    float sum = 0;
    for (std::int64_t j = 0; j < row.keys; ++j) {
        if (row.hidden[j]) continue;
        const float weight = step.weight(row, row.scores[j], frame);
        sum += weight;
        if (!keeps(row, row.key0 + j)) continue;
        const float fed = weight * step.kept_factor(row.block);
        step.add_value(row, fed, row.values + j * row.block.call.problem.dim_v);
    }
    row.sum = step.total(row, factor, sum);
    row.max = max;
}

float lse(const PlainRow& row) {
    return row.seen ? row.max + std::log(row.sum) : minus_infinity;
}

void divide(const PlainRow& row, float lse) {
    const float sum = row.seen ? row.sum : 1;
    for (std::int64_t c = 0; c < row.block.call.problem.dim_v; ++c) {
        row.written[c] = row.output[c] / sum;
    }
    row.block.step.store(row, row.written, lse);
}

void finish(const PlainRow& row) {
    divide(row, row.block.step.lse(row));
}

void store(const PlainRow& row, float* output, float lse) {
    write_row(row.block.call, row.block.segment.batch, row.block.head, row.i, output, lse);
}

}  // namespace attest::cpu::plain
