// The trials' part of gradients: forward and backward of the kernel, and of the truth.

#include <algorithm>

#include "properties/law/dropout_mask.hpp"
#include "properties/search/compare_gradients.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/oracle/gradient_structure.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

std::vector<Role> KernelTrial::gradients_of(const Problem& problem) const {
    std::vector<Role> had = kernel_.manifest().gradients;
    std::erase_if(had, [&](Role role) { return !shape_of(problem, role); });
    return had;
}

bound::ExpectedGradients KernelTrial::expected_gradients(const Problem& problem,
                                                         const TensorSet& inputs) const {
    return oracle::attend_gradients(problem, dialect(), numerics(), inputs);
}

TensorSet KernelTrial::backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) const {
    TensorSet outputs = outputs_of(problem, kernel_.backward(problem, inputs, wanted));
    for (const Role role : wanted)
        require(outputs.has(role), "a backward that ended well returns what was wanted");
    return outputs;
}

law::Judgement KernelTrial::compare_gradients(const Problem& problem, const TensorSet& inputs,
                                              const TensorSet& gradients) const {
    return compare_gradients_with({problem, dialect(), numerics(), inputs, gradients},
                                  expected_gradients(problem, inputs));
}

law::Judgement KernelTrial::compare_gradient_structure(const TensorSet& inputs,
                                                       const TensorSet& gradients) const {
    const auto expected =
        oracle::attend_gradient_structure(problem(), dialect(), numerics(), inputs);
    require(expected.has_value(), "only a declared structure is asked for");
    return compare_gradients_as_declared({problem(), dialect(), numerics(), inputs, gradients},
                                         *expected);
}

bound::ExpectedGradients TruthTrial::expected_gradients(const Problem& problem,
                                                        const TensorSet& inputs) const {
    bound::ExpectedGradients twice = given_.expected_gradients(problem, inputs);
    for (const Role role : gradient_roles)
        for (bound::ExpectedElement& e : twice[role]) e.bound *= 2;
    return twice;
}

TensorSet TruthTrial::backward(const Problem& problem, const TensorSet& inputs,
                               const std::vector<Role>& wanted) const {
    const bound::ExpectedGradients truth =
        given_.expected_gradients(problem, law::with_drawn_keep(problem, inputs));
    TensorSet outputs;
    for (const Role role : wanted) {
        Tensor tensor(type_of(problem, role), shape_of(problem, role).value());
        for (std::int64_t i = 0; i < tensor.size(); ++i)
            tensor.set(i, truth[role][static_cast<std::size_t>(i)].value);
        outputs.put(role, std::move(tensor));
    }
    return outputs;
}

law::Judgement TruthTrial::compare_gradients(const Problem& problem, const TensorSet& inputs,
                                             const TensorSet& gradients) const {
    return compare_gradients_with({problem, dialect(), numerics(), inputs, gradients},
                                  given_.expected_gradients(problem, inputs));
}

/// Of the gradients that have a structure, which elements are judged does not depend on the bound.
law::Judgement TruthTrial::compare_gradient_structure(const TensorSet& inputs,
                                                      const TensorSet& gradients) const {
    TensorSet structured;
    for (const Role role : {Role::d_q, Role::d_k, Role::d_v})
        if (gradients.has(role)) structured.put(role, gradients[role]);
    return compare_gradients(problem(), inputs, structured);
}

}  // namespace attest::search
