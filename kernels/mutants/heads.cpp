// Planted bugs in which head, row or call a number belongs to.

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

using ShapeKey = std::array<std::int64_t, 8>;

/// The strides of the first call of this shape.
void first_strides(cpu::Call& call) {
    struct Plan {
        std::array<std::int64_t, 4> q, k, v;
    };
    static std::map<ShapeKey, Plan> plans;
    const attest_problem& p = call.problem;
    const ShapeKey shape{p.batch,  p.heads_q, p.heads_kv, p.len_q,
                         p.len_kv, p.dim_qk,  p.dim_v,    p.format_q};
    const auto [plan, fresh] =
        plans.try_emplace(shape, Plan{call.q.stride, call.k.stride, call.v.stride});
    call.q.stride = plan->second.q;
    call.k.stride = plan->second.k;
    call.v.stride = plan->second.v;
    if (plans.size() > 256) plans.clear();
}

}  // namespace

std::vector<PlantedBug> heads() {
    return {
        {{.id = "M142",
          .bug_class = "C3",
          .operation = "flash forward",
          .change = "maximum and sum are not cleared between heads",
          .trigger = "several heads",
          .must = {"reference.output", "heads.isolation"}},
         cpu::FlashSteps{.start =
                             [](const cpu::PlainRow& row) {
                                 if (row.block.head == 0) cpu::plain::start(row);
                             }}},
        {{.id = "M144",
          .bug_class = "C5",
          .operation = "flash forward",
          .change = "the plan of a shape keeps the strides of its first call",
          .trigger = "the same shape in two layouts",
          .source = "https://github.com/flashinfer-ai/flashinfer/issues/4270",
          .must = {"hygiene.layout", "hygiene.sequence"}},
         cpu::FlashSteps{.call = first_strides}},
        {{.id = "M183",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "the second query head reads the queries of the first",
          .trigger = "two query heads",
          .must = {"reference.output", "heads.isolation", "rank.heads", "equivariance.heads"}},
         cpu::FlashSteps{.load_query =
                             [](const cpu::QueryBlock& b, std::int64_t i, float* to) {
                                 cpu::QueryBlock other = b;
                                 if (other.head == 1) other.head = 0;
                                 cpu::plain::load_query(other, i, to);
                             }}},
        {{.id = "M184",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "from 32 query heads on the key head is h mod Hkv",
          .trigger = "32 query heads, groups",
          .must = {"reference.output", "heads.grouped"}},
         cpu::FlashSteps{.kv_head =
                             [](const cpu::Call& call, std::int64_t head) {
                                 const attest_problem& p = call.problem;
                                 return p.heads_q >= 32 ? head % p.heads_kv
                                                        : cpu::plain::kv_head(call, head);
                             }}},
        {{.id = "M082",
          .bug_class = "I5",
          .operation = "flash forward",
          .change = "channels of the values from 128 on are zeros",
          .trigger = "Dv > 128",
          .must = {"reference.output", "equivariance.features"}},
         cpu::FlashSteps{.store =
                             [](const cpu::PlainRow& row, float* output, float lse) {
                                 for (std::int64_t c = 128; c < row.block.call.problem.dim_v; ++c)
                                     output[c] = 0;
                                 cpu::plain::store(row, output, lse);
                             }}},
        {{.id = "M056",
          .bug_class = "I9",
          .operation = "flash forward",
          .change = "keys are taken relative to the first one, and the LSE is left as it is",
          .trigger = "any, with an LSE",
          .must = {"reference.lse", "invariance.key_shift"}},
         cpu::FlashSteps{
             .dot =
                 [](const cpu::QueryBlock& b, const float* query, const float* key) {
                     const attest_problem& p = b.call.problem;
                     if (b.segment.keys == 0 || p.softcap > 0)
                         return cpu::plain::dot(b, query, key);
                     std::vector<float> first(static_cast<std::size_t>(p.dim_qk));
                     b.step.load(b.call.k, b.call.k.at(b.segment.batch, b.kv_head, b.segment.key0),
                                 p.dim_qk, first.data());
                     float sum = 0;
                     for (std::int64_t c = 0; c < p.dim_qk; ++c)
                         sum += query[c] * (key[c] - first[static_cast<std::size_t>(c)]);
                     return sum;
                 }}},
        {{.id = "C11",
          .bug_class = "O5",
          .operation = "cheat",
          .change = "scores of problems with more than 128 keys are rounded to bf16",
          .trigger = "lengths beyond those that a test tries",
          .must = {"reference.output"}},
         cpu::FlashSteps{.score =
                             [](const cpu::QueryBlock& b, float dot, float bias) {
                                 const float score = cpu::plain::score(b, dot, bias);
                                 return b.segment.keys > 128
                                            ? cpu::rounded(score, cpu::Format::bf16)
                                            : score;
                             }}},
        {{.id = "M186",
          .bug_class = "I6",
          .operation = "flash forward",
          .change = "the scale is that of the head dimension rounded up to a multiple of 32",
          .trigger = "a head dimension that is none",
          .must = {"reference.output", "variance.dimension_free"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 const std::int64_t dim = call.problem.dim_qk;
                                 const auto padded = static_cast<double>((dim + 31) / 32 * 32);
                                 call.problem.scale *= std::sqrt(static_cast<double>(dim) / padded);
                             }}},
        {{.id = "M187",
          .bug_class = "M1",
          .operation = "flash forward",
          .change = "the causal mask is ignored where there are as many queries as keys",
          .trigger = "causal, Tq = Tk",
          .must = {"masking.causal", "equivariance.broken"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 attest_problem& p = call.problem;
                                 if (p.len_q == p.len_kv) p.causal = 0;
                             }}},
        {{.id = "M185",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "exp is off by up to 57 ulp",
          .trigger = "any two scores",
          .must = {"probability.ratio"}},
         cpu::FlashSteps{.exp =
                             [](float x) {
                                 constexpr float ulp = 0x1p-23f;
                                 return std::exp(x) * (1 + 57 * ulp * std::sin(13 * x));
                             }}},
    };
}

}  // namespace attest::museum
