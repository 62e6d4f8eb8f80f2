// Hygiene: a server calls a kernel from many threads. Scratch in static memory, or a workspace made
// once, is right as long as one call follows another.

#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/property.hpp"

namespace attest::law {

namespace {

/// Two calls share a moment in each; what they share in memory they need not touch in it.
constexpr int calls_beside = 12;

Judgement other_threads_do_not_show(const Trial& trial) {
    const Run first(trial);
    Relation relation;
    relation.rows = defined_rows(first);
    relation.promise = same_bits_if(trial.numerics().deterministic);
    relation.sentence = [&](const RowMatch& match) {
        return name_of(first.problem(), match.first) +
               " gets another answer while a second thread calls the kernel";
    };
    Judgement sum;
    for (int n = 0; n < calls_beside && !sum.violated(); ++n)
        sum = merge(std::move(sum), compare_runs(first, first.beside(), relation));
    return sum;
}

/// Sums of two calls in one place.
void values_of_both(Question& asked) {
    Tensor& values = asked.inputs[Role::v];
    for (std::int64_t at = 0; at < values.size(); ++at) values.set(at, values.get(at) / 2 + 1);
}

Property concurrent() {
    Property law{
        .id = "hygiene.concurrent",
        .statement =
            "Where claimed, forward gives the same answer while a second thread calls it in the "
            "same "
            "shape.",
        .statement_short = "where claimed: a second thread does not show",
        .why =
            "The claim itself. A second thread of the process calls the kernel without pause on "
            "tensors of its own, of the same shapes, in which q, k and v are zero: what two "
            "calls write to one place shows in the answer of the first, to the bit where "
            "determinism is claimed, else within the sum of the bounds.",
        .source = "the manifest's numerics.concurrent",
        .compares = Compares::bits,
        .tells = Tells::memory,
        .cases = {.allow = attention,
                  .cost = 2 * calls_beside,
                  .len_max = 256,
                  .limited_because = "it makes 24 calls of each case"},
        .cases_enough = 24,
        .check = always<other_threads_do_not_show>,
        .turned_red_by = {{.id = "values_of_both", .is_disturbed = values_of_both}},
    };
    law.needs.concurrent = true;
    return law;
}

}  // namespace

std::vector<Property> hygiene_of_threads() {
    return {concurrent()};
}

}  // namespace attest::law
