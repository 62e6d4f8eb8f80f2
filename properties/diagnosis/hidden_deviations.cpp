// What a kernel does where a query sees no key: a finite score for what is hidden gives a mean.

#include <cstdint>

#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// A large finite score instead of -inf: where every key of a query is hidden, all of them weigh the
// same; where one is visible, the others vanish beside it as they should.
std::optional<bound::Expected> mean_in_empty_rows(const Specification& s,
                                                  const bound::Expected& truth,
                                                  const Rules& rules) {
    const std::optional<Specification> flat = uniform(s, rules);
    if (!flat) return std::nullopt;
    const bound::Expected mean =
        oracle::attend(flat->problem, flat->dialect, flat->numerics, flat->inputs);
    bound::Expected out = truth;
    bool any = false;
    const std::size_t dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < truth.row_empty.size(); ++row) {
        const std::int64_t i = static_cast<std::int64_t>(row) % s.problem.len_q;
        const std::int64_t b =
            static_cast<std::int64_t>(row) / (s.problem.heads_q * s.problem.len_q);
        const bool query = i < length_of(s.problem.mask.lens_q, s.problem.len_q, b);
        if (truth.row_empty[row] == 0 || !query) continue;
        any = true;
        // Its log-sum-exp is the unknown score and the log of the number of keys.
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
        for (std::size_t c = 0; c < dim; ++c)
            out.output[row * dim + c] = mean.output[row * dim + c];
    }
    if (!any) return std::nullopt;
    return out;
}

}  // namespace

std::vector<Deviation> hidden_deviations() {
    Deviation mean =
        formula_deviation("hidden_finite",
                          "the plain mean of all values where a query sees no key: a finite score "
                          "stands for -inf",
                          [](const Specification& s, const bound::Expected& truth) {
                              Rules rules;
                              rules.documents = rules.mask_tensor = false;
                              return mean_in_empty_rows(s, truth, rules);
                          });
    Deviation own_mean = formula_deviation(
        "hidden_finite_own",
        "the plain mean of its own document's values where a query sees no key: a finite score "
        "stands for -inf",
        [](const Specification& s, const bound::Expected& truth) {
            Rules rules;
            rules.mask_tensor = false;
            return mean_in_empty_rows(s, truth, rules);
        });
    mean.declares = [](const Specification&) -> std::string {
        return "no such rows; by design? declare dialect: empty_row mean";
    };
    Deviation of_tensor = formula_deviation(
        "tensor_finite",
        "the mean of the values that nothing but the mask tensor hides where a query sees no key: "
        "a finite score stands for its -inf",
        [](const Specification& s, const bound::Expected& truth) -> std::optional<bound::Expected> {
            if (s.problem.mask.tensor.kind == MaskKind::none) return std::nullopt;
            Rules rules = rules_of(s);
            rules.mask_tensor = false;
            return mean_in_empty_rows(s, truth, rules);
        });
    of_tensor.declares = own_mean.declares = mean.declares;
    return {mean, own_mean, of_tensor};
}

}  // namespace attest::diagnosis
