#include "properties/diagnosis/plain_calls.hpp"

#include "properties/search/capability.hpp"

namespace attest::diagnosis {

Case plain(const search::Kernel& kernel, const Case& smallest, std::int64_t keys,
           std::int64_t dim) {
    Case c;
    Problem& p = c.problem;
    p.batch = p.heads_q = p.heads_kv = p.len_q = 1;
    p.len_kv = keys;
    p.dim_qk = dim;
    p.format_q = smallest.problem.format_q;
    p.format_kv = smallest.problem.format_kv;
    p.format_o = smallest.problem.format_o;
    p.want_lse = true;
    const Problem taken = search::fitted(p, kernel.manifest());
    if (taken.len_q == p.len_q && taken.len_kv == keys && taken.dim_qk == dim) p = taken;
    c.values = {ValueKind::normal, 1, {}};
    return c;
}

std::optional<Evidence> of_equal_weights(search::Kernel& kernel, const Case& smallest,
                                         Precision format) {
    Case c = plain(kernel, smallest, equal_keys, 64);
    c.values.tensors[Role::q] = {Fill::zeros, {}};
    return evidence_of(kernel, c, [format](const Problem&, TensorSet& inputs) {
        Tensor& v = inputs[Role::v];
        for (std::int64_t n = 0; n < v.size(); ++n) v.set(n, round_to(v.get(n), format));
    });
}

bool wrong_on_members(search::Kernel& kernel, const Case& smallest, Precision format) {
    Case one = plain(kernel, smallest, 1, 1);
    one.problem.scale = 1.0;
    one.problem.dim_v = 16;
    one.values.tensors[Role::q] = {Fill::ones, {}};
    one.values.tensors[Role::k] = {Fill::ones, {}};
    const std::optional<Evidence> e =
        evidence_of(kernel, one, [format](const Problem&, TensorSet& inputs) {
            Tensor& v = inputs[Role::v];
            for (std::int64_t n = 0; n < v.size(); ++n) v.set(n, round_to(v.get(n), format));
        });
    return e && e->wrong();
}

}  // namespace attest::diagnosis
