#include "properties/diagnosis/rotation.hpp"

#include <cmath>
#include <utility>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

// Channel pair c of a rotation, as axis indices.
std::pair<std::int64_t, std::int64_t> pair_of(const Rope& rope, std::int64_t dims, std::int64_t c) {
    if (rope.style == RopeStyle::interleaved) return {2 * c, 2 * c + 1};
    return {c, c + dims / 2};
}

}  // namespace

Tensor turned_by(const Specification& s, Role role, const Angles& by) {
    const Problem& problem = s.problem;
    const Tensor& from = s.inputs[role];
    Tensor out(ElementType::f64, from.shape());
    for (std::int64_t n = 0; n < from.size(); ++n) out.set(n, from.get(n));
    const std::int64_t dims = problem.rope.dims != 0 ? problem.rope.dims : problem.dim_qk;
    const Shape& shape = from.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
            for (std::int64_t i = 0; i < shape[2]; ++i)
                for (std::int64_t c = 0; c < dims / 2; ++c) {
                    const double angle =
                        by(b, i, c,
                           std::pow(problem.rope.base,
                                    -2.0 * static_cast<double>(c) / static_cast<double>(dims)));
                    const auto [x, y] = pair_of(problem.rope, dims, c);
                    const double a = from.at(b, h, i, x), z = from.at(b, h, i, y);
                    out.put(b, h, i, x, a * std::cos(angle) - z * std::sin(angle));
                    out.put(b, h, i, y, a * std::sin(angle) + z * std::cos(angle));
                }
    return out;
}

Tensor turned(const Specification& s, Role role, const Positions& by) {
    return turned_by(s, role,
                     [&by](std::int64_t b, std::int64_t i, std::int64_t, double frequency) {
                         return by(b, i) * frequency;
                     });
}

double cached(const Specification& s, std::int64_t b) {
    return static_cast<double>(length_of(s.problem.mask.lens_kv, s.problem.len_kv, b) -
                               length_of(s.problem.mask.lens_q, s.problem.len_q, b));
}

bool has_rope(const Specification& s) {
    return s.problem.rope.style != RopeStyle::none;
}

}  // namespace attest::diagnosis
