// Planted bugs in where things lie and what is computed at all; the equivalent ones.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

kernel::Mutant far_bug(std::string_view id, std::string_view change, std::string_view trigger) {
    return {.id = id,
            .bug_class = "I3",
            .operation = "flash forward",
            .change = change,
            .trigger = trigger,
            .source = "https://github.com/Dao-AILab/flash-attention/issues/2611",
            .must = {"hygiene.large_index"}};
}

/// A row of q, k or v, read where its offset, in elements or bytes, says as an Offset.
template <typename Offset, bool in_bytes>
void load_at(const cpu::Operand& operand, const std::byte* from, std::int64_t count, float* to) {
    const std::int64_t unit = in_bytes ? 1 : operand.element_bytes;
    const auto offset = static_cast<Offset>((from - operand.data) / unit);
    cpu::plain::load(operand, operand.data + std::int64_t{offset} * unit, count, to);
}

}  // namespace

std::vector<PlantedBug> addressing() {
    return {
        {{.id = "M073",
          .bug_class = "I2",
          .operation = "flash forward",
          .change = "keys are addressed as if heads lay contiguous: stride_h = T D",
          .trigger = "layouts other than contiguous heads",
          .must = {"hygiene.layout"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 call.k.stride[1] = call.problem.len_kv * call.problem.dim_qk;
                             }}},
        {{.id = "M074",
          .bug_class = "I2",
          .operation = "flash forward",
          .change = "values are addressed with the strides of the keys",
          .trigger = "values that lie otherwise than the keys",
          .must = {"hygiene.layout", "heads.cross"}},
         cpu::FlashSteps{.call = [](cpu::Call& call) { call.v.stride = call.k.stride; }}},
        {{.id = "M079",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "the key head is h / Hkv",
          .trigger = "group size other than Hkv",
          .source = "https://github.com/PSAL-POSTECH/ONNXim/pull/34",
          .must = {"reference.output", "heads.grouped", "rank.heads", "equivariance.heads",
                   "heads.isolation"},
          .diagnosis = "heads_divided_by_kv"},
         cpu::FlashSteps{.kv_head =
                             [](const cpu::Call& call, std::int64_t head) {
                                 const std::int64_t heads_kv = call.problem.heads_kv;
                                 return std::min(head / heads_kv, heads_kv - 1);
                             }}},
        {{.id = "M080",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "the group is padded to a power of two",
          .trigger = "group of 3, 5, 6 or 7 and several key heads",
          .source = "https://github.com/ggml-org/llama.cpp/issues/19115",
          .must = {"reference.output", "heads.grouped"},
          .diagnosis = "heads_group_padded"},
         cpu::FlashSteps{.kv_head =
                             [](const cpu::Call& call, std::int64_t head) {
                                 const auto padded =
                                     std::bit_ceil(static_cast<std::uint64_t>(call.group));
                                 return head / static_cast<std::int64_t>(padded);
                             }}},
        {{.id = "M081",
          .bug_class = "I5",
          .operation = "flash forward",
          .change = "the dot product drops the last D mod 8 channels",
          .trigger = "D not a multiple of 8",
          .must = {"reference.output", "variance.scaled", "equivariance.features",
                   "hygiene.degenerate"}},
         cpu::FlashSteps{.dot =
                             [](const cpu::QueryBlock& b, const float* query, const float* key) {
                                 float dot = 0;
                                 for (std::int64_t c = 0; c < b.call.problem.dim_qk / 8 * 8; ++c)
                                     dot += query[c] * key[c];
                                 return dot;
                             }}},
        {{.id = "M090",
          .bug_class = "I8",
          .operation = "flash forward",
          .change = "the last block stores one row past Tq",
          .trigger = "Tq not a multiple of the block",
          .must = {"hygiene.bounds"}},
         cpu::FlashSteps{.store =
                             [](const cpu::PlainRow& row, float* output, float lse) {
                                 cpu::plain::store(row, output, lse);
                                 const cpu::QueryBlock& b = row.block;
                                 const attest_problem& p = b.call.problem;
                                 if (b.rows == cpu::plain_rows || row.i + 1 != p.len_q) return;
                                 cpu::store_row(b.call.o.at(b.segment.batch, b.head, p.len_q),
                                                b.call.o.format, b.call.o.stride[3], p.dim_v,
                                                output);
                             }}},
        {{.id = "M092",
          .bug_class = "I9",
          .operation = "flash forward",
          .change = "the LSE is stored as [T, H] while [H, T] is declared",
          .trigger = "Tq > 1 and Hq > 1",
          .must = {"reference.lse"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 const attest_problem& p = call.problem;
                                 call.lse.stride = {p.len_q * p.heads_q, 1, p.heads_q, 0};
                             }}},
        {{.id = "M145",
          .bug_class = "C8",
          .operation = "flash forward",
          .change = "Q is scaled in place",
          .trigger = "any",
          .must = {"hygiene.inputs_intact"}},
         cpu::FlashSteps{.load_query =
                             [](const cpu::QueryBlock& b, std::int64_t i, float* query) {
                                 cpu::plain::load_query(b, i, query);
                                 const attest_problem& p = b.call.problem;
                                 for (std::int64_t c = 0; c < p.dim_qk; ++c)
                                     query[c] *= static_cast<float>(p.scale);
                                 cpu::store_row(b.call.q.at(b.segment.batch, b.head, i),
                                                b.call.q.format, b.call.q.stride[3], p.dim_qk,
                                                query);
                             },
                         .score =
                             [](const cpu::QueryBlock& b, float dot, float bias) {
                                 return cpu::soft_capped(dot, b.call.problem.softcap) + bias;
                             }}},
        {{.id = "M148",
          .bug_class = "C4",
          .operation = "flash forward",
          .change = "an odd count of blocks leaves the last one out",
          .trigger = "three blocks of queries",
          .must = {"hygiene.outputs_written", "equivariance.queries"}},
         cpu::FlashSteps{.segment =
                             [](const cpu::Call&, cpu::Segment& s) {
                                 const std::int64_t blocks =
                                     (s.queries + cpu::plain_rows - 1) / cpu::plain_rows;
                                 if (blocks > 1 && blocks % 2 != 0)
                                     s.queries = (blocks - 1) * cpu::plain_rows;
                             }}},
        {{.id = "M175",
          .bug_class = "I9",
          .operation = "flash forward",
          .change = "the LSE is stored as if it lay contiguous",
          .trigger = "an LSE in another order of axes, or padded",
          .must = {"hygiene.layout"}},
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 const attest_problem& p = call.problem;
                                 call.lse.stride = {p.heads_q * p.len_q, p.len_q, 1, 0};
                             }}},
        {{.id = "M176",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "query heads past the eighth of a group read the next key head",
          .trigger = "group above 8 and several key heads",
          .must = {"reference.output", "heads.grouped"}},
         cpu::FlashSteps{.kv_head =
                             [](const cpu::Call& call, std::int64_t head) {
                                 const std::int64_t own = head / call.group;
                                 return head % call.group >= 8 ? (own + 1) % call.problem.heads_kv
                                                               : own;
                             }}},
        {{.id = "C06",
          .bug_class = "N4",
          .operation = "flash forward",
          .change = "inputs are rounded to bf16 whatever was asked",
          .trigger = "f32 or f16",
          .must = {"reference.output", "probability.single_key", "probability.ratio",
                   "rank.scores"}},
         cpu::FlashSteps{.load =
                             [](const cpu::Operand& operand, const std::byte* from,
                                std::int64_t count, float* to) {
                                 cpu::plain::load(operand, from, count, to);
                                 for (std::int64_t c = 0; c < count; ++c)
                                     to[c] = rounded(to[c], cpu::Format::bf16);
                             }}},
        {{.id = "C09",
          .bug_class = "O2",
          .operation = "flash forward",
          .change = "returns NaN everywhere",
          .trigger = "any",
          .must = {"reference.output", "probability.nonnegative", "dropout.off"}},
         cpu::FlashSteps{.store =
                             [](const cpu::PlainRow& row, float* output, float lse) {
                                 std::fill_n(output, row.block.call.problem.dim_v,
                                             std::numeric_limits<float>::quiet_NaN());
                                 cpu::plain::store(row, output, lse);
                             }}},
        {far_bug("M409", "offsets are int32 elements", "rows past 2^31 elements"),
         cpu::FlashSteps{.load = load_at<std::int32_t, false>}},
        {far_bug("M410", "offsets are uint32 elements", "rows past 2^32 elements"),
         cpu::FlashSteps{.load = load_at<std::uint32_t, false>}},
        {far_bug("M411", "offsets are uint32 bytes", "rows past 2^32 bytes"),
         cpu::FlashSteps{.load = load_at<std::uint32_t, true>}},
        {far_bug("M412", "the strides of the output are int32", "a stride of 2^31 elements"),
         cpu::FlashSteps{.call =
                             [](cpu::Call& call) {
                                 for (std::int64_t& stride : call.o.stride)
                                     stride = static_cast<std::int32_t>(stride);
                             }}},
        {{.id = "E03",
          .bug_class = "N1",
          .operation = "flash forward",
          .change = "l starts at 1 with m = -inf",
          .trigger = "none: the first rescale, exp(-inf) = 0, wipes it",
          .equivalent = true},
         cpu::FlashSteps{.start =
                             [](const cpu::PlainRow& row) {
                                 cpu::plain::start(row);
                                 row.sum = 1;
                             }}},
        {{.id = "E05",
          .bug_class = "M10",
          .operation = "flash forward",
          .change = "tiles of keys hidden throughout are visited",
          .trigger = "none: only work",
          .equivalent = true},
         cpu::FlashSteps{.needed =
                             [](const cpu::QueryBlock& b) {
                                 return cpu::SegmentKeys{0, b.segment.keys};
                             }}},
        {{.id = "E07",
          .bug_class = "I4",
          .operation = "flash forward",
          .change = "the key head is h mod Hkv where Hkv = 1",
          .trigger = "none: it is 0 either way",
          .equivalent = true},
         cpu::FlashSteps{.kv_head =
                             [](const cpu::Call& call, std::int64_t head) {
                                 return call.problem.heads_kv == 1 ? head % call.problem.heads_kv
                                                                   : head / call.group;
                             }}},
    };
}

}  // namespace attest::museum
