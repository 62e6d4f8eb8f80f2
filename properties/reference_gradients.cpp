// The gradients against the truth, element by element, each within its own derived bound.

#include <vector>

#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/property.hpp"

namespace attest::law {

namespace {

Judgement check_gradients(const Trial& trial) {
    return GradientRun(trial, trial.problem(), trial.inputs()).compare();
}

}  // namespace

std::vector<Property> reference_gradients() {
    return {{
        .id = "reference.gradients",
        .statement = "Every element of every gradient is within its own derived bound.",
        .statement_short = "every gradient is within its derived bound",
        .why =
            "dV = P'dO, dS = P (dO V' - D), D = dO.O, dQ = sigma dS K, dK = sigma dS'Q are "
            "computed with a certified error. A kernel that recomputes P from its stored LSE and "
            "takes D from its stored O, with sums, exponentials and roundings as declared, can "
            "differ by no more than the bound, in whatever order it works, atomics included. What "
            "nothing reaches is exactly 0: hidden keys, empty rows, rows past a length.",
        .source = "Dao et al. 2022, appendix B.2; reference/bound/README.md, Gradients",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .needs = {.backward = true},
        .cases = gradient_cases(),
        .check = always<check_gradients>,
        .turned_red_by = {planted::key_gradients_unscaled(), planted::deltas_of_next_row()},
    }};
}

}  // namespace attest::law
