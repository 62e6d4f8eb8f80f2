#include "reference/oracle/gradients.hpp"

#include <cmath>

#include "reference/oracle/dropped.hpp"
#include "reference/oracle/gradient_runs.hpp"
#include "reference/oracle/nonfinite.hpp"
#include "reference/oracle/own_error.hpp"
#include "reference/oracle/row_runner.hpp"
#include "reference/problem/errors.hpp"

namespace attest::oracle {

namespace {

/// As settled rows of the forward pass: no element's own error, beyond its rounding to double,
/// above 1/1000 of its bound.
bool is_settled(const std::vector<bound::ExpectedElement>& elements) {
    for (const bound::ExpectedElement& e : elements) {
        if (e.bound == infinite || e.bound == 0) continue;
        if (!(e.error - double_rounding(e.value) <= settled * e.bound)) return false;
    }
    return true;
}

bool is_settled(const bound::ExpectedGradients& g) {
    return is_settled(g.d_q) && is_settled(g.d_k) && is_settled(g.d_v) && is_settled(g.d_mask) &&
           is_settled(g.d_sinks) && is_settled(g.d_slopes);
}

}  // namespace

bound::ExpectedGradients attend_gradients(const Problem& problem, const Dialect& dialect,
                                          const Numerics& numerics, const TensorSet& inputs,
                                          Arithmetic arithmetic) {
    if (problem.cache.present && problem.cache.page_size > 0)
        throw BadInput("gradients: the cache is paged",
                       {"gradients of pages are not defined; ask with page size 0"});
    if (problem.dropout.p > 0)
        return gradients_dropped(problem, dialect, numerics, inputs, arithmetic);
    return gradients_spread(problem, dialect, numerics, inputs, arithmetic);
}

bound::ExpectedGradients gradients_spread(const Problem& problem, const Dialect& dialect,
                                          const Numerics& numerics, const TensorSet& inputs,
                                          Arithmetic arithmetic) {
    const Prepared call = prepare(problem, dialect, inputs, DropoutIn::values);
    const Shape shape{problem.batch, problem.heads_q, problem.len_q, call.dim_v};
    if (!inputs.has(Role::d_o) || inputs[Role::d_o].shape() != shape)
        throw BadInput("inputs: no tensor d_o of the output's shape",
                       {"draw the inputs of a problem with want_grad"});
    OutputGradients given{inputs[Role::d_o].to_doubles(), {}};
    if (inputs.has(Role::d_lse)) given.lse = inputs[Role::d_lse].to_doubles();
    Prepared clean = call;
    if (call.any_nonfinite) clean_values(clean);
    const bound::KernelModel model = bound::resolve(problem, numerics);
    if (arithmetic == Arithmetic::plain_double)
        return gradients_in_double(call, clean, model, given);
    if (arithmetic == Arithmetic::exact) return gradients_in_exact(call, clean, model, given);
    if (arithmetic == Arithmetic::filtered && model.ua > 0x1p-40) {
        bound::ExpectedGradients plain = gradients_in_double(call, clean, model, given);
        if (is_settled(plain)) return plain;
    }
    return gradients_in_double_double(call, clean, model, given);
}

}  // namespace attest::oracle
