#pragma once
// cpu_flash_plain, step by step. Each step is a function of its own, named in FlashSteps; the
// kernel (cpu_flash_plain.cpp) calls them through that table, and a planted bug of kernels/mutants
// is the same table with a step exchanged. So a bug is written where its story is told, and the
// kernel is read without any.

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/call.hpp"
#include "kernels/cpu/dropout.hpp"
#include "kernels/cpu/score.hpp"

namespace attest::cpu {

inline constexpr std::int64_t plain_rows = 8;   ///< queries a block
inline constexpr std::int64_t plain_tile = 16;  ///< keys a tile
inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

struct FlashSteps;

/// Queries [row0, row0 + rows) of one head of one segment. Queries and keys count within it.
struct QueryBlock {
    const FlashSteps& step;
    const Call& call;
    Segment segment;
    std::int64_t head = 0, kv_head = 0, row0 = 0, rows = 0;
};

/// One query's state, and the tile of keys it takes in: m is the largest score so far, l the sum of
/// exp(s - m), acc the sum of exp(s - m) v.
struct PlainRow {
    const QueryBlock& block;
    std::int64_t i = 0;  ///< the query
    float& max;          ///< m
    float& sum;          ///< l
    bool& seen;          ///< some key was visible, or a sink stands for one
    float* output;       ///< acc, [dim_v]
    std::int64_t key0 = 0, keys = 0;
    float* scores;   ///< [plain_tile]
    bool* hidden;    ///< [plain_tile]
    float* values;   ///< [plain_tile, dim_v]
    float* written;  ///< [dim_v]: what finish() stores
};

/// The correct steps, as FlashSteps names and explains them.
namespace plain {
inline void call(Call&) {}
inline void segment(const Call&, Segment&) {}
std::int64_t kv_head(const Call& call, std::int64_t head);
void load(const Operand& operand, const std::byte* from, std::int64_t count, float* to);
void load_query(const QueryBlock& block, std::int64_t i, float* to);
void start(const PlainRow& row);

std::int64_t diagonal(const QueryBlock& block, std::int64_t i);
bool causal(const QueryBlock& block, std::int64_t i, std::int64_t j);
bool visible(const QueryBlock& block, std::int64_t i, std::int64_t j);
SegmentKeys needed(const QueryBlock& block);

float dot(const QueryBlock& block, const float* query, const float* key);
Bias<float> mask(const QueryBlock& block, std::int64_t i, std::int64_t j);
float alibi(const QueryBlock& block, std::int64_t i, std::int64_t j);
float score(const QueryBlock& block, float dot, float bias);

void absorb(const PlainRow& row);
float largest(const PlainRow& row);
inline float exp(float x) {
    return std::exp(x);
}
float weight(const PlainRow& row, float score, float frame);
float kept_factor(const QueryBlock& block);
void rescale(const PlainRow& row, float factor);
void add_value(const PlainRow& row, float weight, const float* value);
float total(const PlainRow& row, float factor, float sum);

void finish(const PlainRow& row);
float lse(const PlainRow& row);
void store(const PlainRow& row, float* output, float lse);

// What several of them use.
bool sees_any(const PlainRow& row);           ///< some key of the tile is visible
void divide(const PlainRow& row, float lse);  ///< acc / l, stored with this LSE
}  // namespace plain

struct FlashSteps {
    /// What the kernel makes of the call, and of a segment, before it begins.
    void (*call)(Call&) = plain::call;
    void (*segment)(const Call&, Segment&) = plain::segment;
    /// The key head that a query head reads; a row into f32; a block's queries; a row's first
    /// state.
    std::int64_t (*kv_head)(const Call&, std::int64_t head) = plain::kv_head;
    void (*load)(const Operand&, const std::byte* from, std::int64_t count,
                 float* to) = plain::load;
    void (*load_query)(const QueryBlock&, std::int64_t i, float* to) = plain::load_query;
    void (*start)(const PlainRow&) = plain::start;

    /// The last key that causal order leaves to a query, and the key that stands at distance 0 in a
    /// window: one and the same.
    std::int64_t (*causal_diagonal)(const QueryBlock&, std::int64_t i) = plain::diagonal;
    std::int64_t (*window_diagonal)(const QueryBlock&, std::int64_t i) = plain::diagonal;
    /// Causal order lets i see j; it and the window do; the keys that any row of the block may see.
    bool (*causal)(const QueryBlock&, std::int64_t i, std::int64_t j) = plain::causal;
    bool (*visible)(const QueryBlock&, std::int64_t i, std::int64_t j) = plain::visible;
    SegmentKeys (*needed)(const QueryBlock&) = plain::needed;

    /// S = cap(scale q.k) + bias, with the bias from a mask tensor and ALiBi.
    float (*dot)(const QueryBlock&, const float* query, const float* key) = plain::dot;
    Bias<float> (*mask)(const QueryBlock&, std::int64_t i, std::int64_t j) = plain::mask;
    float (*alibi)(const QueryBlock&, std::int64_t i, std::int64_t j) = plain::alibi;
    float (*score)(const QueryBlock&, float dot, float bias) = plain::score;

    /// A row takes in a tile: the largest score, the weights, acc and l rescaled and added to.
    void (*absorb)(const PlainRow&) = plain::absorb;
    float (*largest)(const PlainRow&) = plain::largest;
    float (*exp)(float) = plain::exp;
    float (*weight)(const PlainRow&, float score, float frame) = plain::weight;
    /// Whether dropout keeps a weight, and what it multiplies one by that it keeps.
    Keeps kept = is_kept;
    float (*kept_factor)(const QueryBlock&) = plain::kept_factor;
    void (*rescale)(const PlainRow&, float factor) = plain::rescale;
    void (*add_value)(const PlainRow&, float weight, const float* value) = plain::add_value;
    float (*total)(const PlainRow&, float factor, float sum) = plain::total;

    /// O = acc / l and LSE = m + log l, and storing both.
    void (*finish)(const PlainRow&) = plain::finish;
    float (*lse)(const PlainRow&) = plain::lse;
    void (*store)(const PlainRow&, float* output, float lse) = plain::store;

    bool operator==(const FlashSteps&) const = default;
};

}  // namespace attest::cpu
