// Hygiene: the thousandth call is as right as the first. Servers call a kernel for weeks; what
// counts its calls, fills a ring, a pool or a cache of plans, or lets a counter run over, is right
// for as long as a short test lasts.

#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/property.hpp"

namespace attest::law {

namespace {

/// Past what a signed counter of 16 bits holds.
constexpr std::int64_t calls = (std::int64_t{1} << 15) + 16;

bool is_small(const Problem& p) {
    constexpr std::int64_t scores_max = 16, dim_max = 16;
    return has_rows(p) && score_count(p) <= scores_max && p.dim_qk <= dim_max &&
           value_dim(p) <= dim_max;
}

/// Equal bits need no second look. Where they differ, the next call is compared as the kernel's
/// claim says: what begins with some call is in that one too.
Judgement later_calls_are_right(const Trial& trial) {
    const Run first(trial);
    Relation relation;
    relation.rows = defined_rows(first);
    relation.promise = same_bits_if(trial.numerics().deterministic);
    Judgement sum = compare_runs(first, first, relation);
    for (std::int64_t n = 1; n < calls && !sum.violated(); ++n) {
        const TensorSet answer = trial.run(first.problem(), first.inputs());
        if (answer == first.outputs()) continue;
        relation.sentence = [&](const RowMatch& match) {
            return name_of(first.problem(), match.first) + " gets another answer after " +
                   std::to_string(n) + " equal calls";
        };
        const Run later(trial, first.problem(), first.inputs());
        sum = merge(std::move(sum), compare_runs(first, later, relation));
    }
    return sum;
}

/// Odd calls of a process that has answered some.
void tired_after_some_calls(Question& asked, std::span<const Question> before) {
    constexpr std::size_t fresh_for = 1000;
    if (before.size() < fresh_for) return;
    Tensor& values = asked.inputs[Role::v];
    for (std::int64_t at = 0; at < values.size(); ++at) values.set(at, 2 * values.get(at) + 1);
}

Property many_calls() {
    return {
        .id = "hygiene.many_calls",
        .statement = "The same call gives the same answer 32784 times in one process.",
        .statement_short = "call 32 784 is answered as the first one",
        .why =
            "A call is a function of its inputs, so how many came before does not matter: to "
            "the bit where determinism is claimed, else within the sum of the bounds. The "
            "count is past what a signed counter of 16 bits holds.",
        .source = "KernelBench issue reports: kernels that are right while they are watched",
        .compares = Compares::bits,
        .tells = Tells::memory,
        .cases = {.allow = attention,
                  .cost = 256,  // of the calls that other laws make of a case, not of all here
                  .scores_max = 16,
                  .len_max = 4,
                  .dim_max = 16,
                  .limited_because = "it makes 32784 calls of each case",
                  .admits = is_small},
        .cases_enough = 1,
        .check = always<later_calls_are_right>,
        .turned_red_by = {{.id = "tired_after_some_calls", .remembers = tired_after_some_calls}},
    };
}

}  // namespace

std::vector<Property> hygiene_of_calls() {
    return {many_calls()};
}

}  // namespace attest::law
