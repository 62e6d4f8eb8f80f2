#include "reference/oracle/prepared.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "reference/oracle/lanes.hpp"
#include "reference/oracle/visibility.hpp"
#include "reference/problem/errors.hpp"

namespace attest::oracle {

namespace {

std::string text_of(const Shape& shape) {
    std::string text = "[";
    for (std::size_t a = 0; a < shape.size(); ++a)
        text += (a > 0 ? ", " : "") + std::to_string(shape[a]);
    return text + "]";
}

struct Doubles {
    std::vector<double> values;
    bool finite = true;
};

Doubles read(const TensorSet& inputs, Role role, const Shape& shape) {
    const std::string who{name(role)};
    if (!inputs.has(role))
        throw BadInput("inputs: no tensor " + who,
                       {"the problem needs one of shape " + text_of(shape)});
    const Tensor& tensor = inputs[role];
    if (tensor.shape() != shape)
        throw BadInput("inputs: tensor " + who + " has shape " + text_of(tensor.shape()),
                       {"the problem needs " + text_of(shape)});
    Doubles out;
    out.values.reserve(static_cast<std::size_t>(tensor.size()));
    // Looked at while it is in the cache.
    std::array<double, 1024> part;
    for (std::int64_t first = 0; first < tensor.size(); first += std::ssize(part)) {
        const std::int64_t count = std::min<std::int64_t>(std::ssize(part), tensor.size() - first);
        tensor.widen(first, std::span(part).first(static_cast<std::size_t>(count)));
        out.finite = out.finite && extent(part.data(), count).finite;
        out.values.insert(out.values.end(), part.begin(), part.begin() + count);
    }
    return out;
}

bool finite(const std::vector<double>& values) {
    return extent(values.data(), static_cast<std::int64_t>(values.size())).finite;
}

/// k or v, [batch, heads_kv, len_kv, dim]. What lies past a sequence's keys is nobody's to read,
/// and comes out as 0.
Doubles read_keys(const Problem& p, const TensorSet& inputs, Role role, std::int64_t dim) {
    Doubles out = read(inputs, role, shape_of(p, role).value());
    if (p.mask.lens_kv.empty()) return out;
    double* row = out.values.data();
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_kv; ++h)
            for (std::int64_t j = 0; j < p.len_kv; ++j, row += dim)
                if (j >= keys_valid(p, b)) std::fill(row, row + dim, 0.0);
    out.finite = finite(out.values);
    return out;
}

}  // namespace

const double* Prepared::query(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return q.data() + ((b * problem.heads_q + h) * problem.len_q + i) * problem.dim_qk;
}

const double* Prepared::key(std::int64_t b, std::int64_t h_kv, std::int64_t j) const {
    return k.data() + ((b * problem.heads_kv + h_kv) * problem.len_kv + j) * problem.dim_qk;
}

const double* Prepared::value(std::int64_t b, std::int64_t h_kv, std::int64_t j) const {
    return v.data() + ((b * problem.heads_kv + h_kv) * problem.len_kv + j) * dim_v;
}

std::size_t Prepared::mask_index(std::int64_t b, std::int64_t h, std::int64_t i,
                                 std::int64_t j) const {
    const auto clamp = [&](std::int64_t index, std::size_t axis) {
        return mask_shape[axis] == 1 ? 0 : index;
    };
    const std::int64_t row =
        (clamp(b, 0) * mask_shape[1] + clamp(h, 1)) * mask_shape[2] + clamp(i, 2);
    return static_cast<std::size_t>(row * mask_shape[3] + clamp(j, 3));
}

Prepared prepare(const Problem& problem, const Dialect& dialect, const TensorSet& inputs,
                 DropoutIn dropout) {
    require_valid(problem);
    if (problem.dropout.p > 0 && dropout == DropoutIn::call)
        throw BadInput("dropout " + std::to_string(problem.dropout.p) + ": not defined here",
                       {"which weights are dropped is the kernel's own choice; ask for dropout 0"});
    Prepared call;
    call.problem = problem;
    call.dialect = dialect;
    call.dim_v = value_dim(problem);
    call.group = group_size(problem);
    call.scale = effective_scale(problem);
    const Problem& p = problem;
    bool all_finite = true;
    const auto take = [&](Doubles from, std::vector<double>& to) {
        all_finite = all_finite && from.finite;
        to = std::move(from.values);
    };
    take(read(inputs, Role::q, {p.batch, p.heads_q, p.len_q, p.dim_qk}), call.q);
    take(read_keys(p, inputs, Role::k, p.dim_qk), call.k);
    take(read_keys(p, inputs, Role::v, call.dim_v), call.v);
    if (p.mask.tensor.kind != MaskKind::none) {
        call.mask_shape = shape_of(p, Role::mask).value();
        call.mask = read(inputs, Role::mask, call.mask_shape).values;
        all_finite = all_finite && std::all_of(call.mask.begin(), call.mask.end(),
                                               [](double x) { return x < infinite; });
    }
    if (p.sink) take(read(inputs, Role::sinks, shape_of(p, Role::sinks).value()), call.sinks);
    if (p.alibi)
        take(read(inputs, Role::alibi_slopes, shape_of(p, Role::alibi_slopes).value()),
             call.slopes);
    call.any_nonfinite = !all_finite;
    return call;
}

namespace {

/// The power of two that brings a head's largest value near 1; 0 where it is not small, or nothing.
int small_exponent(const Prepared& call, std::size_t head) {
    const std::int64_t each = call.problem.len_kv * call.dim_v;
    const double most =
        extent(call.v.data() + static_cast<std::int64_t>(head) * each, each).largest;
    return most > 0 && most < 0x1p-400 ? -std::ilogb(most) : 0;
}

std::size_t head_count(const Prepared& call) {
    return static_cast<std::size_t>(call.problem.batch * call.problem.heads_kv);
}

}  // namespace

bound::KernelModel model_of(const Prepared& call, const Numerics& numerics) {
    bound::KernelModel model = bound::resolve(call.problem, numerics);
    if (model.centred_values || model.uv > 0)
        model.value_max = extent(call.v.data(), std::ssize(call.v)).largest;
    return model;
}

void scale_values(Prepared& call) {
    const std::size_t each = static_cast<std::size_t>(call.problem.len_kv * call.dim_v);
    call.value_exponent.assign(head_count(call), 0);
    for (std::size_t head = 0; head < call.value_exponent.size(); ++head) {
        const int exponent = small_exponent(call, head);
        if (exponent == 0) continue;
        for (std::size_t x = head * each; x < (head + 1) * each; ++x)
            call.v[x] = std::ldexp(call.v[x], exponent);
        call.value_exponent[head] = exponent;
    }
}

bool has_small_values(const Prepared& call) {
    if (call.problem.format_kv != Precision::f64) return false;  // no other format has them
    for (std::size_t head = 0; head < head_count(call); ++head)
        if (small_exponent(call, head) != 0) return true;
    return false;
}

void visible_keys(const Prepared& call, std::int64_t b, std::int64_t h, std::int64_t i,
                  std::vector<std::int64_t>& keys) {
    const KeyRange range = keys_of(call.problem, call.dialect, b, i);
    const MaskKind kind = call.problem.mask.tensor.kind;
    if (kind == MaskKind::none) {
        const std::int64_t count = std::max<std::int64_t>(0, range.last - range.first);
        // As many different keys, in order, between the same two: the same keys.
        if (count > 0 && std::ssize(keys) == count && keys.front() == range.first &&
            keys.back() == range.last - 1)
            return;
        keys.resize(static_cast<std::size_t>(count));
        std::iota(keys.begin(), keys.end(), range.first);
        return;
    }
    keys.clear();
    for (std::int64_t j = range.first; j < range.last; ++j) {
        const double m = call.mask_at(b, h, i, j);
        if (kind == MaskKind::boolean ? m == 0 : m == -infinite) continue;
        keys.push_back(j);
    }
}

}  // namespace attest::oracle
