// A kernel that is wrong by itself and wrong otherwise behind other calls.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/actor_test.hpp"

namespace attest::diagnosis {
namespace {

/// It scales by 1/D and keeps what it reckoned from D in a table: another D is given the first
/// one's.
class KeepsATable : public Actor {
public:
    KeepsATable()
        : Actor([this](const Specification& s, const bound::Expected& truth) {
              if (scale_ == 0) scale_ = 1 / static_cast<double>(s.problem.dim_qk);
              Specification own = s;
              own.problem.scale = scale_;
              return s.problem.scale ? truth
                                     : oracle::attend(own.problem, s.dialect, s.numerics, s.inputs);
          }) {
        Numerics numerics;
        numerics.weights = NumberFormat::f32;
        numerics.deterministic = true;
        declare(numerics);
    }
    void restart() override { scale_ = 0; }

private:
    double scale_ = 0;
};

TEST(EachAlone, WhatAKernelThatRemembersComputesIsFoundCallByCall) {
    KeepsATable kernel;
    search::Counterexample c;
    c.law = "reference.output";
    c.smallest = c.found.tried = parse_case("b1 hq1 hkv1 tq3 tk5 d3 f32");
    // What ran before in the process.
    const Case before = parse_case("b1 hq1 hkv1 tq3 tk5 d7 f32");
    kernel.forward(before.problem, make_inputs(before));
    const Diagnosis d = diagnose(kernel, c, {});
    EXPECT_EQ(d.id, "scale_inverse_dim") << d.says;
}

}  // namespace
}  // namespace attest::diagnosis
