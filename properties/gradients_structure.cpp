// The gradients against the rounding that a kernel declares of its backward.

#include <vector>

#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/property.hpp"
#include "reference/bound/gradient_structure_bound.hpp"

namespace attest::law {

namespace {

Judgement check_structure(const Trial& trial) {
    const GradientRun run(trial, trial.problem(), trial.inputs());
    return trial.compare_gradient_structure(run.inputs(), run.gradients());
}

Plan plan_structure(const Given& given) {
    if (!bound::gradient_structure_declared(given.problem(), given.numerics()))
        return not_applicable("the kernel declares no structure of its gradients for this problem");
    return Judge(check_structure);
}

// Turned q and k may be rounded or not, and dropout's factor may come before P is rounded or after.
CaseSpace structured_gradients() {
    CaseSpace space = gradient_cases();
    space.allow = space.allow.without(Feature::rope);
    space.formats = {Precision::f16, Precision::bf16};
    return space;
}

}  // namespace

std::vector<Property> gradients_structure() {
    return {{
        .id = "gradients.structure",
        .statement = "Where rounding of P and dS is declared, the gradients are what they compute.",
        .statement_short = "gradients are what the declared rounding computes",
        .why =
            "P = exp(S - L) and dS = P (dP - D) are made of the O and LSE that this kernel's own "
            "forward gave, so that neither tile nor order of sums decides how they are rounded: "
            "the rounding is replayed, and only numbers that straddle a rounding boundary are paid "
            "for. A disagreement says that the kernel does something else than it declares: its "
            "class is structure.",
        .source = "reference/bound/README.md, Declared structure of gradients",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .needs = {.lse = true, .backward = true, .structure = true},
        .cases = structured_gradients(),
        .check = plan_structure,
        .turned_red_by = {{.id = "gradient_rounding_declared_and_not_done",
                           .declares = [](Numerics& n) { n.gradient_structure = true; }}},
        .knows_more = true,
    }};
}

}  // namespace attest::law
