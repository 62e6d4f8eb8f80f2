#include "properties/diagnosis/picture.hpp"

#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

namespace {

// Q = 0: every visible key weighs the same, whatever the keys are.
Case with_zero_queries(Case c) {
    c.values.tensors[Role::q] = {Fill::zeros, {}};
    return c;
}

}  // namespace

std::optional<std::vector<std::vector<double>>> read_weights(search::Kernel& kernel,
                                                             const Case& tried, std::int64_t batch,
                                                             std::int64_t head) {
    const Problem& p = tried.problem;
    const std::int64_t width = value_dim(p), group = group_size(p);
    TensorSet inputs = make_inputs(tried);
    const Tensor zeros(inputs[Role::v].type(), inputs[Role::v].shape());
    std::vector weights(static_cast<std::size_t>(p.len_q),
                        std::vector<double>(static_cast<std::size_t>(p.len_kv)));
    for (std::int64_t first = 0; first < p.len_kv; first += width) {
        const std::int64_t columns = std::min(width, p.len_kv - first);
        Tensor v = zeros;
        for (std::int64_t c = 0; c < columns; ++c) v.put(batch, head / group, first + c, c, 1.0);
        inputs.put(Role::v, std::move(v));
        const worker::CallResult result = kernel.forward(p, inputs);
        if (result.outcome != worker::Outcome::ok || !result.outputs.has(Role::o))
            return std::nullopt;
        for (std::int64_t i = 0; i < p.len_q; ++i)
            for (std::int64_t c = 0; c < columns; ++c)
                weights[static_cast<std::size_t>(i)][static_cast<std::size_t>(first + c)] =
                    result.outputs[Role::o].at(batch, head, i, c);
    }
    return weights;
}

std::optional<Picture> picture_of(search::Kernel& kernel, const Case& tried) {
    if (tried.problem.len_q > picture_max || tried.problem.len_kv > picture_max)
        return std::nullopt;
    try {
        Case flat = with_zero_queries(tried);
        flat.problem = canonical(flat.problem);
        require_valid(flat.problem);
        std::string reason;
        if (!kernel.supports(flat.problem, &reason)) return std::nullopt;
        const auto weights = read_weights(kernel, flat, 0, 0);
        if (!weights) return std::nullopt;
        const TensorSet inputs = make_inputs(flat);
        Picture picture{print(flat.problem), {}, {}};
        oracle::RowDetails rows(flat.problem, kernel.manifest().dialect, inputs);
        for (std::int64_t i = 0; i < flat.problem.len_q; ++i) {
            const oracle::RowDetail row = rows.row(i);
            std::string may, reads;
            for (std::size_t j = 0; j < row.weights.size(); ++j) {
                may += row.weights[j] > 0 ? '1' : '0';
                reads += (*weights)[static_cast<std::size_t>(i)][j] != 0 ? '1' : '0';
            }
            picture.may.push_back(std::move(may));
            picture.reads.push_back(std::move(reads));
        }
        return picture;
    } catch (const BadInput&) {
        return std::nullopt;
    }
}

std::vector<Picture> pictures_of(search::Kernel& kernel, const Case& smallest) {
    std::vector<Picture> list;
    if (auto own = picture_of(kernel, smallest)) list.push_back(std::move(*own));
    const Problem& p = smallest.problem;
    if (!p.mask.documents_q.empty() || !p.mask.lens_q.empty() || !p.mask.lens_kv.empty())
        return list;
    struct Size {
        std::int64_t q, kv;
    };
    for (const Size size : {Size{6, 4}, Size{4, 6}, Size{6, 6}, Size{8, 8}}) {
        Case wide = smallest;
        wide.problem.len_q = size.q;
        wide.problem.len_kv = size.kv;
        wide.values.tensors.clear();
        if (wide.problem.cache.present) {
            if (size.q > size.kv) continue;
            wide.problem.cache.len = size.kv - size.q;
        }
        if (auto picture = picture_of(kernel, wide); picture && picture->differs()) {
            list.push_back(std::move(*picture));
            break;
        }
    }
    return list;
}

}  // namespace attest::diagnosis
