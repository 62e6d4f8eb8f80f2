#include <iterator>
#include <memory>
#include <string>

#include "reference/oracle/dropped.hpp"
#include "reference/oracle/nonfinite.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/prepared.hpp"
#include "reference/oracle/row_runner.hpp"
#include "reference/problem/errors.hpp"

namespace attest::oracle {

namespace {

std::unique_ptr<RowArithmetic> definition(Arithmetic arithmetic, const Prepared& clean) {
    if (arithmetic == Arithmetic::plain_double) return definition_in_double(clean);
    if (arithmetic == Arithmetic::exact) return definition_in_exact(clean);
    return definition_in_double_double(clean);
}

/// A ladder of arithmetics, each asked only for the rows the one before left open. A kernel that
/// computes in double is too near to the oracle's double: such problems start one rung higher.
void escalate(const Prepared& call, const Prepared& clean, const bound::KernelModel& model,
              const std::vector<RowSlot>& rows, bound::Expected& out) {
    std::vector<RowSlot> open = rows, still;
    std::vector<double> worst;
    const int first = model.ua < 0x1p-40 ? 1 : 0;
    for (int rung = first; rung < 3 && !open.empty(); ++rung) {
        RowRunner runner(call, clean, model,
                         rung == 0   ? lanes_in_double(clean)
                         : rung == 1 ? lanes_in_double_double(clean)
                                     : definition_in_exact(clean));
        runner.rows(open, out, worst);
        still.clear();
        for (std::size_t n = 0; n < open.size(); ++n)
            if (!(worst[n] <= settled)) still.push_back(open[n]);
        open.swap(still);
    }
}

}  // namespace

namespace {

bound::Expected attend_places(const Prepared& call, const Numerics& numerics,
                              const std::vector<RowSlot>& rows, Arithmetic arithmetic) {
    const Problem& p = call.problem;
    bound::Expected out;
    out.output_shape = {p.batch, p.heads_q, p.len_q, call.dim_v};
    out.output.resize(rows.size() * static_cast<std::size_t>(call.dim_v));
    out.lse.resize(rows.size());
    out.row_empty.resize(rows.size());

    // A copy only where something has to change: at 128k keys it is most of the work.
    Prepared stand_in;
    if (call.any_nonfinite || has_small_values(call)) {
        stand_in = call;
        if (call.any_nonfinite) clean_values(stand_in);
        scale_values(stand_in);
    }
    const Prepared& clean = stand_in.q.empty() ? call : stand_in;
    const bound::KernelModel model = model_of(call, numerics);
    if (arithmetic == Arithmetic::filtered) {
        escalate(call, clean, model, rows, out);
    } else {
        RowRunner runner(call, clean, model, definition(arithmetic, clean));
        std::vector<double> worst;
        runner.rows(rows, out, worst);
    }
    return out;
}

}  // namespace

bound::Expected attend_rows(const Problem& problem, const Dialect& dialect,
                            const Numerics& numerics, const TensorSet& inputs,
                            const std::vector<std::int64_t>& rows, Arithmetic arithmetic) {
    if (problem.dropout.p > 0)
        return attend_rows_dropped(problem, dialect, numerics, inputs, rows, arithmetic);
    return attend_rows_spread(problem, dialect, numerics, inputs, rows, arithmetic);
}

bound::Expected attend_rows_spread(const Problem& problem, const Dialect& dialect,
                                   const Numerics& numerics, const TensorSet& inputs,
                                   const std::vector<std::int64_t>& rows, Arithmetic arithmetic) {
    const Prepared call = prepare(problem, dialect, inputs, DropoutIn::values);
    const std::int64_t row_count = problem.batch * problem.heads_q * problem.len_q;
    std::vector<RowSlot> places;
    for (const std::int64_t row : rows) {
        if (row < 0 || row >= row_count)
            throw BadInput("row " + std::to_string(row) + ": not one of the problem's " +
                           std::to_string(row_count) + " rows");
        places.push_back({row, std::ssize(places)});
    }
    bound::Expected out = attend_places(call, numerics, places, arithmetic);
    out.rows = rows;
    return out;
}

bound::Expected attend(const Problem& problem, const Dialect& dialect, const Numerics& numerics,
                       const TensorSet& inputs, Arithmetic arithmetic) {
    if (problem.dropout.p > 0)
        return attend_dropped(problem, dialect, numerics, inputs, arithmetic);
    return attend_spread(problem, dialect, numerics, inputs, arithmetic);
}

bound::Expected attend_spread(const Problem& problem, const Dialect& dialect,
                              const Numerics& numerics, const TensorSet& inputs,
                              Arithmetic arithmetic) {
    const Prepared call = prepare(problem, dialect, inputs, DropoutIn::values);
    std::vector<RowSlot> places(
        static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q));
    for (std::size_t row = 0; row < places.size(); ++row)
        places[row] = {static_cast<std::int64_t>(row), static_cast<std::int64_t>(row)};
    return attend_places(call, numerics, places, arithmetic);
}

}  // namespace attest::oracle
