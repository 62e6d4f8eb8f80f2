// Hygiene: what a caller relies on without a word. Same inputs, same answer; the inputs stay, the
// outputs are written, nothing else is touched; no call remembers another; every argument counts.
//
// Memory is watched by the worker: tensors lie between guard pages, flush against the one behind in
// even calls and the one before in odd calls, slack and outputs are poisoned, inputs are read-only.
// What it sees ends a law by itself (Stopped), so the laws here make the calls.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/neighbours.hpp"
#include "properties/law/property.hpp"
#include "properties/law/repeats.hpp"

namespace attest::law {

namespace {

bool batchable(const Problem& p) {
    return has_rows(p) && p.mask.documents_q.empty();
}

void first_answer_of_its_shape(Question& asked, std::span<const Question> before) {
    for (const Question& earlier : before)
        if (earlier.problem == asked.problem) return void(asked = earlier);
}

void published_slopes(Question& q) {
    if (!q.problem.alibi) return;
    Tensor& slopes = q.inputs[Role::alibi_slopes];
    const auto heads = static_cast<double>(slopes.size());
    for (std::int64_t h = 0; h < slopes.size(); ++h)
        slopes.set(h, std::exp2(-8 * static_cast<double>(h + 1) / heads));
}

/// What the laws here have in common: any problem, of the usual size.
Property hygiene_law(std::string id, std::string statement, std::string statement_short,
                     std::string why, std::string source, Compares compares,
                     Plan (*check)(const Given&), PlantedDeviation turned_red_by) {
    return {
        .id = std::move(id),
        .statement = std::move(statement),
        .statement_short = std::move(statement_short),
        .why = std::move(why),
        .source = std::move(source),
        .compares = compares,
        .cases = {.allow = attention, .cost = 2, .admits = has_rows},
        .check = check,
        .turned_red_by = {std::move(turned_red_by)},
    };
}

Property deterministic() {
    Property law =
        hygiene_law("hygiene.deterministic", "Where claimed, equal calls give equal bits.",
                    "where claimed: equal calls, equal bits",
                    "The claim itself. The three calls differ in where the tensors lie, flush "
                    "against the one or the other guard page, and in the poison around them: "
                    "neither is an input.",
                    "the manifest's numerics.deterministic", Compares::bits, always<repeats_bits>,
                    planted::answers_by_the_call());
    law.needs.deterministic = true;
    law.cases.cost = 1;
    return law;
}

Property batch_invariant() {
    Property law = hygiene_law(
        "hygiene.batch_invariant",
        "Where claimed, a sequence's bits do not depend on the others in its batch.",
        "where claimed: a sequence's bits ignore its batch",
        "The claim itself: alone, and in a batch four times as large, the sequence has the same "
        "tensors under the same axis lengths. A reduction chosen by the batch size shows.",
        "He 2025, Defeating nondeterminism in LLM inference", Compares::bits, batch_does_not_show,
        planted::first_sequence_doubled());
    law.needs.deterministic = law.needs.batch_invariant = true;
    law.cases.admits = batchable;
    law.cases.allow = attention.without(Feature::documents);
    return law;
}

Property layout() {
    Property law = hygiene_law(
        "hygiene.layout",
        "Tensors in another order of axes, padded or unaligned, give the same answer.",
        "any strides give the same answer",
        "Strides say where an element lies, not what it is. Another layout may take another vector "
        "path, so the runs agree within the sum of their bounds.",
        "kernels/interface/attest_kernel.h: strides may be anything", Compares::bound,
        layout_does_not_show, planted::padded_rows_negated());
    law.cases.require = FeatureSet(Feature::layout);
    law.cases.cost = 4;
    return law;
}

Property inputs_intact() {
    return hygiene_law(
        "hygiene.inputs_intact", "A call changes none of its inputs.",
        "inputs are the same after the call",
        "Inputs lie in read-only pages of the kernel's process, and the host compares its own copy "
        "afterwards: a write is a fault there or a difference here. A second call with the same "
        "inputs gets the same answer.",
        "kernels/interface/attest_kernel.h: inputs are read-only", Compares::property,
        always<memory_does_not_show>, planted::answers_by_the_call());
}

Property outputs_written() {
    return hygiene_law(
        "hygiene.outputs_written", "A call writes every element of its outputs.",
        "every output element is written",
        "Outputs hold a pattern of NaN before the call, another one in the next, and are searched "
        "for it afterwards: no computation yields it by accident in both. An element that is NaN "
        "where the reference has a number was not computed.",
        "kernels/interface/attest_kernel.h: outputs are poisoned", Compares::property,
        always<outputs_are_numbers>, planted::answers_not_a_number());
}

Property bounds() {
    Property law = hygiene_law(
        "hygiene.bounds", "A call reads and writes inside its tensors alone.",
        "no access outside any tensor",
        "Each tensor ends at an unmapped page in one call and begins after one in the next, so an "
        "access past either end faults; gaps and slack hold poison, which a stray write overwrites "
        "and a stray read carries into the answer.",
        "Electric Fence, Perens 1987", Compares::property, always<memory_does_not_show>,
        planted::answers_by_the_call());
    law.tells = Tells::death;
    return law;
}

Property schedule() {
    Property law = hygiene_law(
        "hygiene.schedule", "No order in which threads may run changes a bit of the answer.",
        "every order of threads gives the same bits",
        "CUDA promises no order between threads but at barriers, warp collectives and atomics, and "
        "what is the same in every order needs no other promise. The calls go through round robin, "
        "reverse, random and greedy schedules, and through copies that land at once, at their wait "
        "or in between.",
        "CUDA C++ Programming Guide, independent thread scheduling", Compares::bits,
        always<schedule_does_not_show>, planted::answers_by_the_call());
    law.needs.simulated = law.needs.deterministic = true;
    return law;
}

Property diagnostics() {
    Property law = hygiene_law(
        "hygiene.diagnostics",
        "The runtime that simulates a kernel's threads finds nothing wrong with what they do.",
        "no race, no undefined read, no divergent barrier",
        "A race, a read of what nothing wrote or of a copy still in flight, an access outside an "
        "array, a barrier or collective that some of its threads never reach: each is undefined in "
        "CUDA, also where the numbers of this run come out right.",
        "CUDA C++ Programming Guide, memory model and synchronisation functions",
        Compares::property, always<runtime_reports_nothing>,
        PlantedDeviation{.id = "reported_by_the_runtime", .fails = "a race on shared memory"});
    law.needs.simulated = true;
    return law;
}

Property stale_state() {
    Property law = hygiene_law(
        "hygiene.stale_state",
        "New contents in the same shapes get their own answer, and the first contents then the "
        "first answer again.",
        "f(x), f(y), f(x): no answer is kept from an earlier call",
        "An answer is a function of the call's inputs. Where the references of x and y are apart, "
        "rounded to the output format, so must the outputs be; and f(x) is repeated to the bit by "
        "a deterministic kernel, within its bounds by another.",
        "KernelBench issue reports: kernels that return a cached answer", Compares::bits,
        always<no_stale_state>,
        PlantedDeviation{.id = "first_answer_of_a_shape_kept",
                         .remembers = first_answer_of_its_shape});
    law.tells = Tells::memory;
    law.after_other_calls = true;
    return law;
}

Property sequence() {
    Property law = hygiene_law(
        "hygiene.sequence",
        "Calls of other strides, lengths, dimensions and formats in between disturb nothing and "
        "are answered as themselves.",
        "f(x) after f(y) = f(x); f(y) after f(x) = f(y)",
        "A plan, a tuning or a workspace kept from one call must not be taken for another call's. "
        "Each call in between is judged by its own bound, each repetition of the first one by bits "
        "(deterministic) or bounds.",
        "flashinfer issue 4270: plan reused for other strides", Compares::bound,
        always<no_stale_plan>, planted::keys_of_an_earlier_call());
    law.after_other_calls = true;
    law.cases.cost = 8;
    return law;
}

Property arguments() {
    Property law = hygiene_law(
        "hygiene.arguments_matter",
        "Each argument changes the result where it should: mask, window, scale, soft cap, sink, "
        "positions.",
        "no argument is silently ignored",
        "The case is run with one argument taken away or changed. Where the references of the two "
        "are apart, rounded to the output format, the outputs differ by at least the distance of "
        "their intervals; a kernel that ignores the argument shows no difference.",
        "KernelBench and framework trackers: arguments taken and ignored", Compares::property,
        always<arguments_matter>, planted::soft_cap_ignored());
    law.turned_red_by.push_back({.id = "slopes_of_the_published_series", .asks = published_slopes});
    law.cases.kinds = {ValueKind::normal,    ValueKind::uniform,  ValueKind::small_int,
                       ValueKind::logit50,   ValueKind::cancel_v, ValueKind::ascending,
                       ValueKind::descending};
    law.cases.cost = 8;
    for (const Feature argument :
         {Feature::scale, Feature::causal, Feature::window, Feature::lens_kv, Feature::documents,
          Feature::mask_bool, Feature::mask_additive, Feature::softcap, Feature::sink,
          Feature::alibi, Feature::rope})
        law.cases.require_any.emplace_back(argument);
    return law;
}

Property degenerate() {
    Property law = hygiene_law(
        "hygiene.degenerate", "Empty axes and axes of one element are answered like any other.",
        "no keys, no queries, no batch, one key, one channel",
        "The definition holds for every extent: over no key a row is empty, over one key O = v. An "
        "empty output needs only a return.",
        "the definition; reference/problem/README.md, empty row", Compares::bound,
        degenerate_shapes_work, planted::one_key_counts_twice());
    law.cases.cost = 16;
    return law;
}

Property nonfinite() {
    Property law = hygiene_law(
        "hygiene.nonfinite",
        "NaN and infinities in visible inputs reach the rows that see them and no other.",
        "NaN and Inf reach the rows that see them, no others",
        "IEEE 754: an operation on NaN gives NaN, and every visible key is an operand of S_ij, of "
        "the maximum and of both sums; w * inf and w * NaN are not finite for any weight w. Rows "
        "that see none of it repeat their arithmetic to the bit (deterministic).",
        "IEEE 754-2019, section 6; the dialect's nonfinite: propagate", Compares::property,
        nonfinite_propagates, planted::nan_read_as_zero());
    // Even scores, and some so far apart that most weights are 0: 0 * NaN is NaN.
    law.cases.kinds = {ValueKind::uniform, ValueKind::flat, ValueKind::small_int,
                       ValueKind::logit1e3};
    law.cases.allow = attention.without(Feature::alibi)
                          .without(Feature::sink)
                          .without(Feature::mask_additive)
                          .without(Feature::scale);
    law.cases.cost = 4;
    return law;
}

}  // namespace

std::vector<Property> hygiene() {
    return {deterministic(), batch_invariant(), layout(),      inputs_intact(), outputs_written(),
            bounds(),        schedule(),        diagnostics(), stale_state(),   sequence(),
            arguments(),     degenerate(),      nonfinite()};
}

}  // namespace attest::law
