// Outputs and gradients under the mask that was read, and calls that must agree about it.

#include <string>
#include <vector>

#include "properties/law/dropout_cases.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

constexpr const char* source = "kernels/interface/README.md, Dropout";

/// The rounding of a weight before its sum is the sum's too, and that after the factor is not: how
/// far both may be apart is not derived.
bool has_bound(const Given& given) {
    const Numerics& n = given.numerics();
    return n.sum_weights == SumWeights::unrounded || n.weights == NumberFormat::f64;
}
constexpr const char* no_bound =
    "sums of rounded weights have no derived bound beside dropout's factor";

Judgement check_off(const Trial& trial) {
    const Problem& p = trial.problem();
    trial.observed();  // what dropped a moment ago must not drop now
    Problem off = p, plain = p;
    off.dropout.p = 0;
    plain.dropout = {};
    const Run first(trial, plain, trial.inputs()), second(trial, off, trial.inputs());
    Judgement same =
        compare_runs(first, second,
                     {.rows = defined_rows(first),
                      .promise = same_bits_if(trial.numerics().deterministic),
                      .sentence = [](const RowMatch&) {
                          return std::string("with a rate of 0 a seed changes the answer");
                      }});
    if (same.violated()) return same;
    return merge(std::move(same), trial.compare(plain, trial.inputs(), second.outputs()));
}

Judgement check_replay(const Trial& trial) {
    const Problem& p = trial.problem();
    const KeptMask first = read_mask(trial, p, trial.inputs());
    if (first.contradiction) return *first.contradiction;
    trial.run(reseeded(p, 1), trial.inputs());
    const KeptMask second = read_mask(trial, p, trial.inputs());
    Tally tally(p);
    for (std::int64_t at = 0; at < first.keep.size() && !tally.violated(); ++at) {
        if (!first.sees(at)) continue;
        const Shape place = index_of(first.keep.shape(), at);
        tally.fact(first.kept(at) == second.kept(at), first.kept(at) ? 1 : 0,
                   second.kept(at) ? 1 : 0, {Role::o, {place[0], place[1], place[2]}}, [&] {
                       return "the same seed " + std::string(second.kept(at) ? "keeps" : "drops") +
                              " key " + std::to_string(place[3]) + " when it is asked again";
                   });
    }
    if (tally.violated() || !trial.numerics().deterministic)
        return tally.judgement("no weight is visible");
    const Run call(trial, p, trial.inputs()), again(trial, p, trial.inputs());
    Judgement bits = compare_runs(
        call, again, {.rows = defined_rows(call), .promise = SameBits{}, .sentence = {}});
    return merge(tally.judgement("no weight is visible"), bits);
}

Plan output_plan(const Given& given) {
    if (!has_bound(given)) return not_applicable(no_bound);
    return [](const Trial& trial) -> Judgement {
        const Problem& p = trial.problem();
        const KeptMask mask = read_mask(trial, p, trial.inputs());
        if (mask.contradiction) return *mask.contradiction;
        const TensorSet answer = trial.run(p, trial.inputs());
        if (const auto lie = contradicts(p, mask, answer)) return *lie;
        TensorSet known = trial.inputs();
        known.put(Role::dropout_keep, mask.keep);
        return trial.compare(p, known, answer);
    };
}

Plan gradient_plan(const Given& given) {
    if (!has_bound(given)) return not_applicable(no_bound);
    return [](const Trial& trial) -> Judgement {
        const KeptMask mask = read_mask(trial, trial.problem(), trial.inputs());
        if (mask.contradiction) return *mask.contradiction;
        TensorSet known = trial.inputs();
        known.put(Role::dropout_keep, mask.keep);
        // Where a mask drops all, zeros are due within less than the reference knows in f64, and
        // nothing is compared; another mask may keep something. The cells that were read count.
        const GradientRun run(trial, trial.problem(), std::move(known));
        Judgement sum = merge(holds(mask.cells), run.compare());
        if (sum.violated()) return sum;
        // As training with checkpoints does before it comes to the first backward.
        trial.run(reseeded(trial.problem(), 1), trial.inputs());
        return merge(std::move(sum),
                     trial.compare_gradients(run.problem(), run.inputs(), run.again()));
    };
}

}  // namespace

std::vector<Property> dropout_of_calls() {
    using namespace planted;
    return {
        {.id = "reference.dropout",
         .statement = "Output and LSE are those of attention under the mask that was read.",
         .statement_short = "output under the mask is within its bound",
         .why = "The mask depends on the seed and the cell alone, so what equal scores and one-hot "
                "values show holds for every input. O = sum P M v / (1-p), of which M v are values "
                "of a row's own; the LSE is that of all weights. The bound is that of attention, "
                "with three roundings more, times 1/(1-p).",
         .source = source,
         .compares = Compares::bound,
         .tells = Tells::truth,
         .cases = dropout_cases(),
         .check = output_plan,
         .turned_red_by = {dropout_factor_missing(), masks_by_the_queries()}},
        {.id = "dropout.gradients",
         .statement =
             "Gradients are those under the mask that forward used, whatever other forward "
             "came in between.",
         .statement_short = "backward drops what forward dropped",
         .why = "dP = M dO.v / (1-p), D = dO.O, dS = P (dP - D), dV = sum P M dO / (1-p): each the "
                "gradient without dropout over values of a row's own, times 1/(1-p), and so is its "
                "bound. Nobody hands backward a mask: it has to draw the same, of the seed it is "
                "asked with.",
         .source = source,
         .compares = Compares::bound,
         .tells = Tells::truth,
         .needs = {.backward = true},
         .cases = dropout_gradient_cases(),
         .check = gradient_plan,
         .turned_red_by = {backward_mask_of_another_seed(), backward_mask_of_last_forward(),
                           backward_without_dropout()}},
        {.id = "dropout.off",
         .statement = "A rate of 0 drops nothing, whatever the seed and the calls before.",
         .statement_short = "without a rate nothing is dropped",
         .why = "Every weight is kept and multiplied by 1. Evaluation follows training in one "
                "process: what was dropped before must not show. Where bits repeat they are those "
                "of a call without a seed.",
         .source = source,
         .compares = Compares::bits,
         .cases = dropout_cases(4),
         .check = always<check_off>,
         .turned_red_by = {dropped_at_zero()}},
        {.id = "dropout.replay",
         .statement = "One seed has one mask, whatever was called in between.",
         .statement_short = "one seed, one mask",
         .why = "Backward and recomputation draw the mask again. It is a function of seed, "
                "sequence, head, query and key: of no state, no memory and no number of calls.",
         .source = source,
         .compares = Compares::bits,
         .cases = dropout_cases(),
         .check = always<check_replay>,
         .turned_red_by = {masks_by_the_call()}},
    };
}

}  // namespace attest::law
