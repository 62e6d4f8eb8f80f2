// The gradients of calls that differ in what must not matter: shifted scores, what is hidden, where
// tensors lie, what else is in the batch, which gradients are wanted, and what came in between.

#include <array>
#include <limits>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_pairs.hpp"
#include "properties/law/hidden.hpp"
#include "properties/law/paired_cases.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

bool has_bias(const Problem& p) {
    return has_rows(p) && p.mask.tensor.kind == MaskKind::additive;
}
bool batched(const Problem& p) {
    return has_rows(p) && p.batch >= 2 && p.mask.documents_q.empty();
}

constexpr const char* source = "kernels/interface/README.md, Backward";

CaseSpace cases_that(bool (*admits)(const Problem&), std::int64_t cost = 8) {
    CaseSpace space = gradient_cases(cost);
    space.admits = admits;
    return space;
}

CaseSpace hiding_cases(std::int64_t cost) {
    using enum Feature;
    CaseSpace space = cases_that(has_rows, cost);
    space.require_any = any_of({causal, window, lens_q, lens_kv, mask_bool, mask_additive});
    return space;
}

// Every score of a row by the same number: weights, dP and D stay, and so does every gradient. The
// biases become 0 and the shift, both members of every format; scores near -3e4 are further out
// than any that recomputation may take for hidden.
Judgement check_shift(const Trial& trial) {
    constexpr std::array shifts = {120.0, -120.0, -30720.0};
    const Problem& p = trial.problem();
    const auto shifted = [&](double by) {
        TensorSet inputs = trial.inputs();
        Tensor& mask = inputs[Role::mask];
        for (std::int64_t at = 0; at < mask.size(); ++at)
            if (std::isfinite(mask.get(at))) mask.set(at, by);
        return GradientRun(trial, p, std::move(inputs));
    };
    const double by = shifts[static_cast<std::size_t>(
        trial.random_below(stream_of("gradients.shift"), 0, shifts.size()))];
    return same_gradients(shifted(0), shifted(by), false, "when every score of a row is shifted");
}

/// What a row past its length holds in queries, dO and dLSE, and in dLSE one whose LSE is -inf.
void poison_rows(TensorSet& inputs, const Problem& p, const Visibility& visibility, double poison) {
    for (const Role role : {Role::q, Role::d_o})
        for (const Row& row : all_rows(p))
            for (std::int64_t c = 0; !visibility.is_query(row) && c < inputs[role].shape()[3]; ++c)
                inputs[role].put(row.batch, row.head, row.query, c, poison);
    for (const Row& row : all_rows(p))
        if (inputs.has(Role::d_lse) &&
            (!visibility.is_query(row) || (visibility.empty(row) && !p.sink)))
            inputs[Role::d_lse].put(row.batch, row.head, row.query, 0, poison);
}

/// Keys hidden from one query of each sequence become NaN, infinite or huge: rows that see them are
/// on their own, every other row and every other key has the gradients that the reference knows.
Judgement check_poison(const Trial& trial) {
    const Problem& p = trial.problem();
    const std::uint64_t stream = stream_of("gradients.poison");
    const Visibility visibility(p, trial.dialect(), trial.inputs());
    KeySet hidden(p);
    for (std::int64_t b = 0; b < p.batch; ++b) {
        const auto anchor = trial.random_below(stream, static_cast<std::uint64_t>(b), p.len_q);
        for (std::int64_t h = 0; h < p.heads_kv; ++h)
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                bool seen = false;
                for (std::int64_t g = 0; g < group_size(p); ++g)
                    seen = seen || visibility.sees({b, h * group_size(p) + g, anchor}, j);
                if (!seen) hidden.add(b, h, j);
            }
    }
    constexpr std::array fillings = {Filling::nonfinite_keys, Filling::nonfinite_values,
                                     Filling::huge};
    // A kernel that leaves non-finite numbers unspecified may multiply a weight of zero by them.
    const bool propagates = trial.dialect().nonfinite == Nonfinite::propagate;
    const std::size_t drawn = static_cast<std::size_t>(trial.random_below(stream + 1, 0, 3));
    TensorSet inputs =
        overwritten(trial, p, trial.inputs(), hidden, propagates ? fillings[drawn] : Filling::huge);
    poison_rows(inputs, p, visibility, propagates ? std::numeric_limits<double>::quiet_NaN() : 1e4);
    return GradientRun(trial, p, std::move(inputs)).compare();
}

/// Exactly zero: what nobody sees, and what sees nothing.
Judgement check_empty(const Trial& trial) {
    const GradientRun call = run_of(trial);
    const Problem& p = call.problem();
    const Visibility visibility(p, trial.dialect(), call.inputs());
    const bool rows_defined = trial.dialect().empty_row == EmptyRow::zeros;
    Tally tally(p);
    const auto is_zero = [&](Role role, std::int64_t b, std::int64_t h, std::int64_t t) {
        if (!call.has(role)) return;
        for (std::int64_t c = 0; c < call[role].shape()[3]; ++c) {
            const double x = call[role].at(b, h, t, c);
            const ElementPlace place{role, {b, h, t, c}};
            tally.fact(x == 0, 0, x, place, [&] {
                return "the " + element_name(p, place) + " is not zero, though nothing reaches it";
            });
        }
    };
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(p.batch * p.heads_kv * p.len_kv));
    for (const Row& row : all_rows(p)) {
        const bool queried = visibility.is_query(row);
        const bool open = queried && visibility.empty(row) && !rows_defined;
        if (!queried || (visibility.empty(row) && rows_defined))
            is_zero(Role::d_q, row.batch, row.head, row.query);
        for (std::int64_t j = 0; queried && j < p.len_kv; ++j)
            if (open || visibility.sees(row, j))
                seen[static_cast<std::size_t>(
                    (row.batch * p.heads_kv + row.head / group_size(p)) * p.len_kv + j)] = 1;
    }
    for (std::int64_t at = 0; at < std::ssize(seen); ++at) {
        if (seen[static_cast<std::size_t>(at)] != 0) continue;
        const std::int64_t bh = at / p.len_kv, j = at % p.len_kv;
        for (const Role role : {Role::d_k, Role::d_v})
            is_zero(role, bh / p.heads_kv, bh % p.heads_kv, j);
    }
    return tally.judgement("every key is seen and every row sees one");
}

/// All layouts of a problem by turns, each tensor's another.
Problem laid_out(const Given& given, std::uint64_t use) {
    constexpr std::array orders = {AxisOrder::bhtd, AxisOrder::bthd, AxisOrder::tbhd,
                                   AxisOrder::bhdt};
    const std::uint64_t stream = stream_of("gradients.layout") + use;
    Problem p = given.problem();
    std::uint64_t n = 0;
    for (Layout* layout : {&p.layout_q, &p.layout_k, &p.layout_v, &p.layout_o}) {
        *layout = {orders[static_cast<std::size_t>(given.random_below(stream, n, 4))],
                   given.random_below(stream + 1, n, 4), given.random_below(stream + 2, n, 3)};
        ++n;
    }
    p.layout_q.row_pad += p.layout_q == Layout{} ? 1 : 0;
    return p;
}

Plan layout_plan(const Given& given) {
    Problem other = laid_out(given, 0);
    if (!given.supports(other)) return not_applicable("the kernel takes no other layout");
    return [other](const Trial& trial) -> Judgement {
        // Half the time dO is one number, handed over as one element, and so is dLSE.
        TensorSet inputs = trial.inputs();
        const bool expanded = trial.random_below(stream_of("gradients.layout") + 3, 0, 2) == 0;
        for (const Role role : {Role::d_o, Role::d_lse})
            for (std::int64_t at = 0; expanded && inputs.has(role) && at < inputs[role].size();
                 ++at)
                inputs[role].set(at, 1);
        Problem plain = trial.problem();
        plain.layout_q = plain.layout_k = plain.layout_v = plain.layout_o = {};
        return same_gradients(GradientRun(trial, plain, inputs), GradientRun(trial, other, inputs),
                              false, "in another memory layout");
    };
}

Plan batch_plan(const Given& given) {
    const Problem& p = given.problem();
    const std::int64_t chosen = given.random_below(stream_of("gradients.batch"), 0, p.batch);
    PairedCase alone = with_sequences(p, given.inputs(), {chosen});
    for (const Role role : {Role::d_o, Role::d_lse})
        if (given.inputs().has(role))
            alone.inputs[role] = gather(given.inputs()[role], 0, {chosen});
    if (!given.supports(alone.problem))
        return not_applicable("the kernel takes no single sequence");
    return [alone, chosen](const Trial& trial) -> Judgement {
        const GradientRun whole = run_of(trial);
        const GradientRun single(trial, alone.problem, alone.inputs);
        const auto match = [&](Role role, std::int64_t flat) -> std::optional<std::int64_t> {
            if (is_summed(role)) return std::nullopt;
            const std::int64_t part = whole[role].size() / trial.problem().batch;
            if (flat / part != chosen) return std::nullopt;
            return flat % part;
        };
        const bool bits = repeats_gradients(trial.numerics()) && trial.numerics().batch_invariant;
        return same_gradients(whole, single, bits, "when its sequence is alone", match);
    };
}

/// Any subset of the gradients, each by itself and some of them: right, as they were among all. The
/// bits may be others: PyTorch takes another path where the mask wants no gradient.
Judgement check_wanted(const Trial& trial) {
    const GradientRun all = run_of(trial);
    Judgement sum = nothing_compared("there is no gradient");
    const std::vector<Role> had = trial.gradients_of(trial.problem());
    const auto wanted = [&](std::vector<Role> some, const char* when) {
        if (sum.violated()) return;
        sum = merge(std::move(sum),
                    same_again(all, trial.backward(all.problem(), all.inputs(), std::move(some)),
                               false, when));
    };
    for (const Role role : had) wanted({role}, "when no other gradient is wanted");
    const std::uint64_t chosen = trial.random_bits(stream_of("gradients.wanted"), 0);
    std::vector<Role> some;
    for (std::size_t n = 0; n < had.size(); ++n)
        if ((chosen >> n & 1) != 0) some.push_back(had[n]);
    if (some.size() > 1 && some.size() < had.size())
        wanted(std::move(some), "when some of the gradients are wanted");
    return sum;
}

/// Backward is a function of what it is handed: not of a forward in between, not of memory.
Judgement check_stale(const Trial& trial) {
    const GradientRun first = run_of(trial);
    const bool bits = trial.numerics().deterministic_backward;
    Judgement sum = same_again(first, first.again(), bits, "when the same call is made again");
    if (sum.violated()) return sum;
    const Problem& p = trial.problem();
    TensorSet other = trial.inputs();
    const std::uint64_t stream = stream_of("gradients.stale_state");
    for (const Role role : {Role::q, Role::k, Role::v})
        other[role] =
            grid_tensor(trial, p, role, stream + static_cast<std::uint64_t>(role), 100, 1.0 / 32);
    trial.run(p, other);
    return merge(std::move(sum),
                 same_again(first, first.again(), bits, "when another forward came in between"));
}

}  // namespace

std::vector<Property> gradients_of_calls() {
    using namespace planted;
    CaseSpace biased = cases_that(has_bias), strided = cases_that(has_rows);
    biased.require = FeatureSet(Feature::mask_additive);
    biased.allow = biased.allow.without(Feature::sink).without(Feature::softcap);
    strided.require = FeatureSet(Feature::layout);
    CaseSpace emptying = hiding_cases(4);
    emptying.more_queries = true;
    return {
        gradient_law(
            "gradients.shift", "A constant added to all scores of a row moves no gradient.",
            "shifted scores have the same gradients",
            "The softmax does not change when all scores of a row move together, so neither "
            "does any derivative: by 120, where exp overflows in f32, and by -30720, which is "
            "far below what some take for -inf.",
            source, std::move(biased), always<check_shift>, {large_biases_hide()}),
        gradient_law(
            "gradients.poison",
            "What is hidden may hold anything: gradients of what does not see it stay.",
            "NaN behind a mask reaches no gradient",
            "A hidden pair has weight 0 and is no operand: not of dP, not of dS, not of any "
            "sum. The same holds of rows past a length, in the queries, in dO and in the LSE's "
            "gradient; the LSE of an empty row is -inf and has none.",
            source, hiding_cases(8), always<check_poison>, {mask_ignored_in_backward()}),
        gradient_law(
            "gradients.empty",
            "Keys nobody sees, rows that see nothing and rows past a length have gradient 0.",
            "what nothing reaches has gradient 0",
            "Sums over nothing are zero, and to the bit: there is no term to round.", source,
            std::move(emptying), always<check_empty>, {hidden_gradients_tiny()}),
        gradient_law(
            "gradients.layout",
            "Gradients are the same in every memory layout, dO expanded or not.",
            "any strides give the same gradients",
            "Strides say where an element lies, not what it is. The gradient of a sum is one "
            "element with strides of 0; gradients lie as other tensors than their own.",
            source, std::move(strided), layout_plan, {padded_gradients_negated()}),
        gradient_law("gradients.batch",
                     "A sequence's gradients do not depend on the rest of its batch.",
                     "a sequence alone has the same gradients",
                     "Nothing is shared by the sequences of a batch but masks and sinks, whose "
                     "gradients are sums over them. Where the kernel claims batch invariance and "
                     "repeats its bits, the bits are the same.",
                     source, cases_that(batched), batch_plan, {gradients_of_first_sequence()}),
        gradient_law(
            "gradients.wanted",
            "Each gradient is within its bound by itself and among some as among all.",
            "any subset of the gradients may be wanted",
            "Which gradients are wanted is which tensors are given; what is not wanted has "
            "no place in memory. Another subset may be computed on another path: no bits are "
            "compared.",
            source, cases_that(has_rows), always<check_wanted>, {gradients_by_the_call()}),
        gradient_law(
            "gradients.stale_state",
            "Backward, called again or after another forward, gives the same gradients.",
            "backward depends on nothing but its inputs",
            "Training with checkpoints runs two forwards before the first backward. Backward "
            "is handed all that it needs; where the kernel repeats bits, bits are the same.",
            source, cases_that(has_rows), always<check_stale>, {gradients_by_the_call()}),
    };
}

}  // namespace attest::law
