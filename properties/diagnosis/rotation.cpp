#include "properties/diagnosis/rotation.hpp"

#include <cmath>
#include <utility>

#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::diagnosis {

std::pair<std::int64_t, std::int64_t> pair_of(const Rope& rope, std::int64_t dims, std::int64_t c) {
    if (rope.style == RopeStyle::interleaved) return {2 * c, 2 * c + 1};
    return {c, c + dims / 2};
}

namespace {

using OfPair =
    std::function<void(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t pair,
                       std::pair<std::int64_t, std::int64_t> channels, double frequency)>;

void for_each_pair(const Problem& problem, const Shape& shape, const OfPair& visit) {
    const std::int64_t dims = problem.rope.dims != 0 ? problem.rope.dims : problem.dim_qk;
    for (std::int64_t b = 0; b < shape[0]; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
            for (std::int64_t i = 0; i < shape[2]; ++i)
                for (std::int64_t c = 0; c < dims / 2; ++c)
                    visit(b, h, i, c, pair_of(problem.rope, dims, c),
                          std::pow(problem.rope.base,
                                   -2.0 * static_cast<double>(c) / static_cast<double>(dims)));
}

}  // namespace

Tensor turned_by(const Specification& s, Role role, const Angles& by) {
    const Tensor& from = s.inputs[role];
    Tensor out(ElementType::f64, from.shape());
    for (std::int64_t n = 0; n < from.size(); ++n) out.set(n, from.get(n));
    for_each_pair(s.problem, from.shape(),
                  [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t pair,
                      std::pair<std::int64_t, std::int64_t> channels, double frequency) {
                      const auto [x, y] = channels;
                      const double angle = by(b, i, pair, frequency);
                      const double a = from.at(b, h, i, x), z = from.at(b, h, i, y);
                      out.put(b, h, i, x, a * std::cos(angle) - z * std::sin(angle));
                      out.put(b, h, i, y, a * std::sin(angle) + z * std::cos(angle));
                  });
    return out;
}

Tensor stretched(const Specification& s, Tensor turned, const Stretch& by) {
    const Shape shape = turned.shape();
    for_each_pair(s.problem, shape,
                  [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t,
                      std::pair<std::int64_t, std::int64_t> channels, double frequency) {
                      for (const std::int64_t c : {channels.first, channels.second})
                          turned.put(b, h, i, c, turned.at(b, h, i, c) * by(b, i, frequency));
                  });
    return turned;
}

Tensor turned(const Specification& s, Role role, const Positions& by) {
    return turned_by(s, role,
                     [&by](std::int64_t b, std::int64_t i, std::int64_t, double frequency) {
                         return by(b, i) * frequency;
                     });
}

double cached(const Specification& s, std::int64_t b, std::int64_t i) {
    return static_cast<double>(before_row(s, row_of(s, b, i)));
}

bool has_rope(const Specification& s) {
    return s.problem.rope.style != RopeStyle::none;
}

double position_of_query(const Specification& s, std::int64_t b, std::int64_t i) {
    const MaskPlace p = row_of(s, b, i);
    return static_cast<double>(s.problem.rope.offset + p.row + before_row(s, p));
}

double position_of(const Specification& s, Role role, std::int64_t b, std::int64_t i) {
    return role == Role::q
               ? position_of_query(s, b, i)
               : static_cast<double>(s.problem.rope.offset + oracle::key_position(s.problem, i));
}

void turn_by_positions(Specification& s, const PlacedAngle& by) {
    for (const Role role : {Role::q, Role::k}) {
        if (role == Role::k && s.problem.cache.keys_rotated) continue;
        s.inputs.put(role, turned_by(s, role,
                                     [&](std::int64_t b, std::int64_t i, std::int64_t pair,
                                         double frequency) {
                                         return by(pair, position_of(s, role, b, i), frequency);
                                     }));
    }
}

}  // namespace attest::diagnosis
