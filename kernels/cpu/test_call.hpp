#pragma once
// For the kernels' tests: a small problem with its values, run through the C interface, and what it
// should give, computed here in long double with a bound of its own. Nothing of reference/ is used.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/element.hpp"
#include "kernels/interface/attest_kernel.h"

namespace attest::cpu {

/// How a tensor [a, b, c, d] lies in memory: which axes from the outermost to the innermost, and
/// how many elements of NaN follow each innermost row.
struct Lay {
    int order[4] = {0, 1, 2, 3};
    std::int64_t pad = 0;
};

struct TestCase {
    attest_problem problem{};
    std::vector<double> q, k, v;  ///< dense, logical order, members of their formats
    std::vector<double> mask;     ///< dense [mask_shape]; booleans are 0 and 1
    std::int64_t mask_shape[4] = {1, 1, 1, 1};
    std::vector<std::int32_t> lens_q, lens_kv, cu_q, cu_kv;
    std::vector<double> slopes, sinks;
    Lay lay_q, lay_k, lay_v, lay_o;
    unsigned page_seed = 1;  ///< which physical pages are used
    unsigned char workspace_fill = 0xa5;
};

struct TestAnswer {
    int code = 0;
    std::string error;
    std::vector<double> o, lse;                  ///< dense
    bool gaps_intact = true;                     ///< nothing was written between the rows of o
    bool operator==(const TestAnswer& other) const;  ///< to the bit
};

/// One element: what it should be and how far a kernel of the declared numerics may be off,
/// output rounding included.
struct Want {
    double value = 0, bound = 0;
};
struct Wanted {
    std::vector<Want> o, lse;
};

/// A problem with sane defaults: one sequence, f32, scale 1/sqrt(dim).
attest_problem problem_of(std::int64_t heads_q, std::int64_t heads_kv, std::int64_t len_q,
                          std::int64_t len_kv, std::int64_t dim, std::int32_t format = ATTEST_F32);

/// Fills q, k, v with normal numbers of the problem's formats, `logits` widens the scores.
TestCase draw(const attest_problem& problem, unsigned seed, double logits = 1);

/// A problem of random shape and features, all of them possible.
TestCase draw_any(unsigned seed);

bool supported(const attest_kernel_api& api, const attest_problem& problem);
TestAnswer run(const attest_kernel_api& api, const TestCase& test);

/// `rounds_weights`: the kernel rounds P to the format of the queries.
Wanted want(const TestCase& test, bool rounds_weights);

/// The first element outside its bound, as a sentence; empty if there is none.
std::string complaint(const TestAnswer& answer, const Wanted& wanted);

double rounded_to(double value, std::int32_t format);

}  // namespace attest::cpu
