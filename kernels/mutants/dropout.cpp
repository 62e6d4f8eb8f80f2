// Planted bugs of dropout, forward and backward.

#include <cmath>
#include <vector>

#include "kernels/cpu/dropout.hpp"
#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

using cpu::WeightCell;
using Steps = cpu::FlashSteps;
using BackSteps = cpu::BackwardSteps<float>;
using DroppedPair = cpu::BackPair<float>;

kernel::Mutant dropout_bug(std::string_view id, std::string_view operation, std::string_view change,
                           kernel::LawIds must, std::string_view trigger = "dropout",
                           std::string_view diagnosis = {}) {
    return {.id = id,
            .bug_class = "B3",
            .operation = operation,
            .change = change,
            .trigger = trigger,
            .must = must,
            .diagnosis = diagnosis};
}
constexpr std::string_view forward = "flash forward", backward_pass = "backward";

WeightCell cell_of_pair(const DroppedPair& pair) {
    return cpu::cell_of(pair.row.segment, pair.row.head, pair.row.i, pair.j);
}

float factor_of_another_seed(const DroppedPair& pair) {
    attest_problem other = pair.row.call.problem;
    ++other.dropout_seed;
    return static_cast<float>(cpu::weight_factor(other, cell_of_pair(pair)));
}

float factor_of_cut_seed(const DroppedPair& pair) {
    attest_problem other = pair.row.call.problem;
    other.dropout_seed = static_cast<std::uint32_t>(other.dropout_seed);
    return static_cast<float>(cpu::weight_factor(other, cell_of_pair(pair)));
}

float factor_turned_over(const DroppedPair& pair) {
    const WeightCell at = cell_of_pair(pair);
    return static_cast<float>(
        cpu::weight_factor(pair.row.call.problem, {at.batch, at.head, at.key, at.query}));
}

float factor_of_first_head(const DroppedPair& pair) {
    WeightCell at = cell_of_pair(pair);
    at.head -= at.head % pair.row.call.group;
    return static_cast<float>(cpu::weight_factor(pair.row.call.problem, at));
}

/// A dropped key as one that a bias hides.
float dropped_score(const cpu::QueryBlock& b, std::int64_t i, std::int64_t j) {
    const attest_problem& p = b.call.problem;
    const bool kept = p.dropout_p == 0 || cpu::is_kept(p, cpu::cell_of(b.segment, b.head, i, j));
    return kept ? cpu::plain::alibi(b, i, j) : cpu::minus_infinity;
}

void another_seed_each_call(cpu::Call& call) {
    static std::uint64_t calls = 0;
    call.problem.dropout_seed += ++calls;
}

/// Another generator, of 32 bits, that takes the cell in another order.
bool kept_by_another_generator(const attest_problem& p, const WeightCell& at) {
    std::uint64_t x = p.dropout_seed * 0x9e3779b97f4a7c15u;
    for (const std::int64_t next : {at.key, at.query, at.head, at.batch})
        for (x += static_cast<std::uint64_t>(next) + 1;
             const std::uint64_t odd : {0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u}) {
            x = (x ^ x >> 33) * odd;
            x ^= x >> 29;
        }
    return static_cast<double>(x >> 32) * 0x1p-32 >= p.dropout_p;
}

std::vector<PlantedBug> of_backward() {
    return {
        {dropout_bug("M122", backward_pass, "dP is not multiplied by the dropout mask",
                     {"dropout.gradients"}, "dropout", "dropout_missing_in_dp"),
         BackSteps{.dropped_dp = [](const DroppedPair& pair) { return pair.dp; }}},
        {dropout_bug("M123", backward_pass, "dV misses the factor 1/(1-p)", {"dropout.gradients"},
                     "dropout", "dropout_factor_missing_in_dv"),
         BackSteps{
             .value_weight =
                 [](const DroppedPair& pair) { return pair.factor == 0 ? 0 : pair.probability; }}},
        {dropout_bug("M300", backward_pass, "backward draws the mask of the next seed",
                     {"dropout.gradients"}, "dropout", "dropout_next_seed"),
         BackSteps{.factor = factor_of_another_seed}},
        {dropout_bug("M495", backward_pass, "backward cuts the seed to 32 bits",
                     {"dropout.gradients"}, "a seed of more than 32 bits"),
         BackSteps{.factor = factor_of_cut_seed}},
        {dropout_bug("M305", backward_pass, "backward takes the mask of the group's first head",
                     {"dropout.gradients"}, "grouped heads", "dropout_first_of_group"),
         BackSteps{.factor = factor_of_first_head}},
        {dropout_bug("M301", backward_pass, "dV adds dropped weights", {"dropout.gradients"},
                     "dropout", "dropout_missing_in_dv"),
         BackSteps{.value_weight = [](const DroppedPair& pair) { return pair.probability; }}},
        {dropout_bug("M302", backward_pass, "dS takes the weights after dropout",
                     {"dropout.gradients"}, "dropout", "dropout_in_ds"),
         BackSteps{.ds =
                       [](const DroppedPair& pair) {
                           return pair.probability * pair.factor * (pair.dp - pair.row.delta);
                       }}},
        {dropout_bug("M303", backward_pass, "dP misses the factor 1/(1-p)", {"dropout.gradients"},
                     "dropout", "dropout_factor_missing_in_dp"),
         BackSteps{
             .dropped_dp = [](const DroppedPair& pair) { return pair.factor == 0 ? 0 : pair.dp; }}},
        {dropout_bug("M304", backward_pass, "the mask of backward has query and key exchanged",
                     {"dropout.gradients"}, "dropout", "dropout_transposed"),
         BackSteps{.factor = factor_turned_over}},
    };
}

std::vector<PlantedBug> of_forward() {
    return {
        {dropout_bug("M310", forward, "kept weights are not scaled",
                     {"reference.dropout", "dropout.mean"}, "dropout", "kept_unscaled"),
         Steps{.kept_factor = [](const cpu::QueryBlock&) { return 1.0f; }}},
        {dropout_bug("M311", forward, "one mask for every head", {"dropout.independent"}, "heads",
                     "dropout_one_for_heads"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       return cpu::is_kept(p, {at.batch, 0, at.query, at.key});
                   }}},
        {dropout_bug("M312", forward, "the seed is ignored", {"dropout.independent"}, "dropout",
                     "dropout_seed_1"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       attest_problem other = p;
                       other.dropout_seed = 42;
                       return cpu::is_kept(other, at);
                   }}},
        {dropout_bug("M313", forward, "one mask for every sequence", {"dropout.independent"},
                     "batch", "dropout_one_for_sequences"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       return cpu::is_kept(p, {0, at.head, at.query, at.key});
                   }}},
        {dropout_bug("M314", forward, "keeps with probability p", {"dropout.rate"}, "dropout",
                     "dropout_keeps_p"),
         Steps{.kept = [](const attest_problem& p,
                          const WeightCell& at) { return !cpu::is_kept(p, at); }}},
        {dropout_bug("M315", forward, "the rate is cut off to 8 bits", {"dropout.rate"},
                     "a small rate", "dropout_rate_8_bits"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       attest_problem other = p;
                       other.dropout_p = std::floor(p.dropout_p * 256) / 256;
                       return cpu::is_kept(other, at);
                   }}},
        {dropout_bug("M316", forward, "weights are dropped before the softmax",
                     {"reference.dropout"}, "dropout", "dropped_before_softmax_scaled"),
         Steps{.alibi = dropped_score}},
        {dropout_bug("M317", forward, "the LSE is that of the kept, scaled weights on average",
                     {"reference.dropout"}, "dropout", "lse_less_dropped"),
         Steps{.lse =
                   [](const cpu::PlainRow& row) {
                       return cpu::plain::lse(row) +
                              std::log(static_cast<float>(1 - row.block.call.problem.dropout_p));
                   }}},
        {dropout_bug("M319", forward, "the mask is drawn by the key's place in its tile",
                     {"dropout.independent"}, "more than one tile", "dropout_key_in_16"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       return cpu::is_kept(p,
                                           {at.batch, at.head, at.query, at.key % cpu::plain_tile});
                   }}},
        {dropout_bug("M320", forward, "the mask is drawn by the query's place in its block",
                     {"dropout.independent"}, "more than one block", "dropout_query_in_8"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       return cpu::is_kept(p,
                                           {at.batch, at.head, at.query % cpu::plain_rows, at.key});
                   }}},
        {dropout_bug("M324", forward, "the seed is cut to 8 bits", {"dropout.independent"},
                     "seeds 256 apart", "dropout_seed_256"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       attest_problem other = p;
                       other.dropout_seed &= 0xff;
                       return cpu::is_kept(other, at);
                   }}},
        {dropout_bug("M325", forward, "the mask is drawn by the sum of query and key",
                     {"dropout.independent"}, "dropout", "dropout_by_query_and_key"),
         Steps{.kept =
                   [](const attest_problem& p, const WeightCell& at) {
                       return cpu::is_kept(p, {at.batch, at.head, at.query + at.key, 0});
                   }}},
        {dropout_bug("M321", forward, "the factor is rounded to bfloat16", {"reference.dropout"},
                     "dropout", "kept_factor_bf16"),
         Steps{.kept_factor =
                   [](const cpu::QueryBlock& block) {
                       return cpu::rounded(cpu::plain::kept_factor(block), cpu::Format::bf16);
                   }}},
        {dropout_bug("M322", forward, "the mask depends on how many calls there were",
                     {"dropout.replay"}, "a second call"),
         Steps{.call = another_seed_each_call}},
        {dropout_bug("M323", forward, "dropout_keep tells the mask of another seed",
                     {"reference.dropout", "dropout.rate"}),
         Steps{.call = [](cpu::Call& call) { ++call.problem.dropout_seed; }}},
        {dropout_bug("M326", forward, "a seed drops an eighth where the rate is 0", {"dropout.off"},
                     "a rate of 0"),
         Steps{.call =
                   [](cpu::Call& call) {
                       attest_problem& p = call.problem;
                       if (p.dropout_p == 0 && p.dropout_seed != 0) p.dropout_p = 0.125;
                   }}},
        {{.id = "E06",
          .bug_class = "B3",
          .operation = forward,
          .change = "another random stream of the right rate",
          .trigger = "none: which weights are dropped is a choice",
          .equivalent = true},
         Steps{.kept = kept_by_another_generator}},
    };
}

}  // namespace

std::vector<PlantedBug> dropout() {
    std::vector<PlantedBug> all = of_backward();
    for (PlantedBug& bug : of_forward()) all.push_back(std::move(bug));
    return all;
}

}  // namespace attest::museum
