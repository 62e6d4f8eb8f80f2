#include "properties/law/scores.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "reference/problem/case.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::law {
namespace {

RC_GTEST_PROP(Scores, HoldTheScoreInLongDouble, ()) {
    Case c;
    Problem& p = c.problem;
    p.heads_q = 4;
    p.heads_kv = 2;
    p.len_q = 2;
    p.len_kv = 3;
    p.dim_qk = *rc::gen::inRange(1, 70);
    p.format_q = p.format_kv = *rc::gen::element(Precision::f64, Precision::f32, Precision::bf16);
    p.softcap = *rc::gen::element(0.0, 0.5, 30.0);
    c.values.kind = *rc::gen::element(ValueKind::normal, ValueKind::logit1e3, ValueKind::wide);
    c.values.seed = *rc::gen::arbitrary<std::uint64_t>();
    const TensorSet inputs = make_inputs(c);
    const Scores scores(p, inputs);
    for (std::int64_t h = 0; h < p.heads_q; ++h)
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            long double sum = 0;
            for (std::int64_t d = 0; d < p.dim_qk; ++d)
                sum += static_cast<long double>(inputs[Role::q].at(0, h, 1, d)) *
                       inputs[Role::k].at(0, h / 2, j, d);
            const Row row{0, h, 1};
            const Interval dot = scores.dot(row, j), score = scores.score(row, j);
            RC_ASSERT(dot.lo <= sum && sum <= dot.hi);
            long double s = sum * static_cast<long double>(effective_scale(p));
            if (p.softcap > 0) s = p.softcap * std::tanh(s / p.softcap);
            RC_ASSERT(score.lo <= s && s <= score.hi);
        }
}

}  // namespace
}  // namespace attest::law
