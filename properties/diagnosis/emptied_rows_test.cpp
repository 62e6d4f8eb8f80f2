// Rows that a defect takes every key from: what a kernel makes of 0 over 0 is no second defect.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/fitted.hpp"

namespace attest::diagnosis {
namespace {

TEST(EmptiedRows, MayBeNaN) {
    const std::vector<Deviation> list = window_origins();
    const Deviation own = *std::ranges::find(list, "window_left_inwards_16_32", &Deviation::id);
    const auto answer = [own](const Specification& s, const bound::Expected& truth) {
        auto e = predict(own, s, truth);
        if (!e) return truth;
        const auto dim = static_cast<std::size_t>(value_dim(s.problem));
        for (std::size_t row = 0; row < e->row_empty.size(); ++row) {
            if (e->row_empty[row] == 0 || truth.row_empty[row] != 0) continue;
            for (std::size_t c = 0; c < dim; ++c) e->output[row * dim + c].value = NAN;
            if (row < e->lse.size()) e->lse[row].value = NAN;
        }
        return *e;
    };
    const Diagnosis d = diagnosed_of(answer, "b1 hq2 hkv2 tq40 tk40 d4 window 3 1 f32");
    EXPECT_EQ(d.id, "window_left_inwards_16_32") << d.says;
}

}  // namespace
}  // namespace attest::diagnosis
