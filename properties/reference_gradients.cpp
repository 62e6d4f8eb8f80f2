// The gradients against the truth, element by element, each within its own derived bound.

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// The scores of a case that are all in the sums; beyond, dO and dLSE are 0 but in some rows. What
/// a row of zeros adds is exactly 0, so every element of every gradient is compared at any length:
/// dQ of the chosen rows and of those that must have none, dK and dV of all keys.
constexpr std::int64_t scores_most = 1 << 20;

TensorSet with_few_rows(const Trial& trial) {
    const Problem& p = trial.problem();
    TensorSet inputs = trial.inputs();
    const std::int64_t rows = p.batch * p.heads_q * p.len_q;
    if (rows * p.len_kv <= scores_most) return inputs;
    const std::int64_t kept = std::max<std::int64_t>(scores_most / 8 / p.len_kv, 4);
    const std::uint64_t stream = stream_of("reference.gradients");
    std::set<std::int64_t> chosen{0, rows - 1};
    for (std::int64_t n = 0; n < kept; ++n)
        chosen.insert(trial.random_below(stream, static_cast<std::uint64_t>(n), rows));
    for (const Role role : {Role::d_o, Role::d_lse})
        for (std::int64_t row = 0; inputs.has(role) && row < rows; ++row)
            for (std::int64_t dim = inputs[role].shape()[3], c = 0;
                 c < dim && !chosen.contains(row); ++c)
                inputs[role].set(row * dim + c, 0);
    return inputs;
}

Judgement check_gradients(const Trial& trial) {
    return GradientRun(trial, trial.problem(), with_few_rows(trial)).compare();
}

CaseSpace any_length() {
    CaseSpace space = gradient_cases();
    space.any_length = true;
    space.several_tiles = true;
    return space;
}

}  // namespace

std::vector<Property> reference_gradients() {
    return {{
        .id = "reference.gradients",
        .statement = "Every element of every gradient is within its own derived bound.",
        .statement_short = "every gradient is within its derived bound",
        .why =
            "dV = P'dO, dS = P (dO V' - D), D = dO.O - dLSE, dQ = sigma dS K, dK = sigma dS'Q are "
            "computed with a certified error. A kernel that recomputes P from its stored LSE and "
            "takes D from its stored O, with sums, exponentials and roundings as declared, can "
            "differ by no more than the bound, in whatever order it works, atomics included. What "
            "nothing reaches is exactly 0: hidden keys, empty rows, rows past a length.",
        .source = "Dao et al. 2022, appendix B.2; reference/bound/README.md, Gradients",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .needs = {.backward = true},
        .cases = any_length(),
        .check = always<check_gradients>,
        .turned_red_by = {planted::key_gradients_unscaled(), planted::deltas_of_next_row(),
                          planted::lse_gradient_ignored()},
    }};
}

}  // namespace attest::law
