// Rotations of rounded or limited numbers: positions, frequencies, cosines and sines in a narrow
// format, tables of angles that end, an offset that queries or keys do not have.

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

/// The angle that a kernel turns by, at a position and a frequency.
using AngleOf = std::function<double(double position, double frequency)>;

// Keys that are rotated already are not rotated by the kernel.
Deviation angles_by(std::string id, std::string says, AngleOf angle) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify =
                [angle = std::move(angle)](const Specification& s) -> std::optional<Specification> {
                if (!has_rope(s)) return std::nullopt;
                bool differs = false;
                Specification out = s;
                turn_by_positions(out, [&](std::int64_t, double position, double frequency) {
                    const double by = angle(position, frequency) - position * frequency;
                    differs = differs || by != 0;
                    return by;
                });
                if (!differs) return std::nullopt;
                return out;
            }};
}

/// Queries alone turned further by so many positions.
using QueryTurn = double (*)(const Specification&, std::int64_t b, std::int64_t i);

Deviation queries_turned(std::string id, std::string says, QueryTurn by) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [by](const Specification& s) -> std::optional<Specification> {
                if (!has_rope(s)) return std::nullopt;
                bool differs = false;
                Specification out = s;
                out.inputs.put(Role::q, turned(s, Role::q, [&](std::int64_t b, std::int64_t i) {
                                   const double turn = by(s, b, i);
                                   differs = differs || turn != 0;
                                   return turn;
                               }));
                if (!differs) return std::nullopt;
                return out;
            }};
}

// cos and sin rounded are cos + i sin times something near 1: turned back and then forth, a pair is
// multiplied by that.
Tensor of_rounded_table(const Specification& s, Role role, const Positions& position,
                        Precision format) {
    const auto error = [&](std::int64_t b, std::int64_t i, double frequency, bool sine) {
        const double angle = position(b, i) * frequency;
        const double c = round_to(std::cos(angle), format), x = round_to(std::sin(angle), format);
        return sine ? x * std::cos(angle) - c * std::sin(angle)
                    : c * std::cos(angle) + x * std::sin(angle);
    };
    const auto by = [&](std::int64_t b, std::int64_t i, std::int64_t, double frequency) {
        return std::atan2(error(b, i, frequency, true), error(b, i, frequency, false));
    };
    const auto size = [&](std::int64_t b, std::int64_t i, double frequency) {
        return std::hypot(error(b, i, frequency, true), error(b, i, frequency, false));
    };
    return stretched(s, turned_by(s, role, by), size);
}

Deviation table_rounded(Precision format) {
    return {.id = "rope_table_" + std::string(name(format)),
            .says = "cosines and sines of a rotation rounded to " + words_of(format),
            .respecify = [format](const Specification& s) -> std::optional<Specification> {
                if (!has_rope(s)) return std::nullopt;
                Specification out = s;
                out.inputs.put(Role::q, of_rounded_table(
                                            s, Role::q,
                                            [&s](std::int64_t b, std::int64_t i) {
                                                return position_of_query(s, b, i);
                                            },
                                            format));
                if (!s.problem.cache.keys_rotated)
                    out.inputs.put(Role::k,
                                   of_rounded_table(
                                       s, Role::k,
                                       [&s](std::int64_t, std::int64_t j) {
                                           return static_cast<double>(s.problem.rope.offset + j);
                                       },
                                       format));
                return out;
            }};
}

void add_rounded(std::vector<Deviation>& list, Precision format) {
    const std::string id = std::string(name(format)), words = words_of(format);
    list.push_back(angles_by("rope_positions_" + id, "positions of a rotation rounded to " + words,
                             [format](double position, double frequency) {
                                 return round_to(position, format) * frequency;
                             }));
    list.push_back(angles_by("rope_frequencies_" + id,
                             "frequencies of a rotation rounded to " + words,
                             [format](double position, double frequency) {
                                 return position * round_to(frequency, format);
                             }));
    list.push_back(angles_by("rope_positions_and_frequencies_" + id,
                             "positions and frequencies of a rotation rounded to " + words,
                             [format](double position, double frequency) {
                                 return round_to(position, format) * round_to(frequency, format);
                             }));
    list.push_back(table_rounded(format));
}

/// Positions of a rotation rounded down to multiples: one turn for so many neighbours.
void add_rounded_down(std::vector<Deviation>& list, double step) {
    const auto down = [step](double position) { return std::floor(position / step) * step; };
    const std::string id = fmt::format("rope_positions_down_{:g}", step);
    const std::string words =
        fmt::format(" rotated by positions rounded down to multiples of {:g}", step);
    list.push_back(angles_by(id, "queries and keys" + words,
                             [down](double p, double frequency) { return down(p) * frequency; }));
    const auto one_side = [&](const char* side, Role role) {
        list.push_back(
            {.id = id + "_" + side,
             .says = side + words,
             .respecify = [down, role](const Specification& s) -> std::optional<Specification> {
                 if (!has_rope(s) || (role == Role::k && s.problem.cache.keys_rotated))
                     return std::nullopt;
                 bool differs = false;
                 Specification out = s;
                 out.inputs.put(role, turned(s, role, [&](std::int64_t b, std::int64_t i) {
                                    const double p = position_of(s, role, b, i);
                                    differs = differs || down(p) != p;
                                    return down(p) - p;
                                }));
                 return differs ? std::optional(std::move(out)) : std::nullopt;
             }});
    };
    one_side("keys", Role::k);
    one_side("queries", Role::q);
}

// One cosine and sine a channel, in a table laid out for the other style: interleaved pairs read
// that of [frequencies, frequencies], pairs of halves that of every frequency twice in a row. The
// two channels of a pair turn by angles of their own; they are turned back before the reference
// turns them.
Tensor of_table_of_other_style(const Specification& s, Role role) {
    const Problem& p = s.problem;
    const std::int64_t dims = p.rope.dims != 0 ? p.rope.dims : p.dim_qk, half = dims / 2;
    const bool interleaved = p.rope.style == RopeStyle::interleaved;
    const auto angle = [&](std::int64_t channel, double position) {
        const std::int64_t number = interleaved ? channel % half : channel / 2;
        return position * std::pow(p.rope.base,
                                   -2.0 * static_cast<double>(number) / static_cast<double>(dims));
    };
    Specification other = s;
    const Tensor& from = s.inputs[role];
    Tensor turned(ElementType::f64, from.shape());
    for (std::int64_t n = 0; n < from.size(); ++n) turned.set(n, from.get(n));
    for (std::int64_t b = 0; b < from.shape()[0]; ++b)
        for (std::int64_t h = 0; h < from.shape()[1]; ++h)
            for (std::int64_t i = 0; i < from.shape()[2]; ++i)
                for (std::int64_t c = 0; c < half; ++c) {
                    const double position = position_of(s, role, b, i);
                    const auto [x, y] = pair_of(p.rope, dims, c);
                    const double a = from.at(b, h, i, x), z = from.at(b, h, i, y);
                    const double of_x = angle(x, position), of_y = angle(y, position);
                    turned.put(b, h, i, x, a * std::cos(of_x) - z * std::sin(of_x));
                    turned.put(b, h, i, y, z * std::cos(of_y) + a * std::sin(of_y));
                }
    other.inputs.put(role, std::move(turned));
    return turned_by(other, role,
                     [&](std::int64_t b, std::int64_t i, std::int64_t, double frequency) {
                         return -position_of(s, role, b, i) * frequency;
                     });
}

Deviation table_of_other_style() {
    return {.id = "rope_table_of_other_style",
            .says = "cosines and sines of a rotation laid out for pairs of the other style",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                const std::int64_t dims =
                    s.problem.rope.dims != 0 ? s.problem.rope.dims : s.problem.dim_qk;
                if (!has_rope(s) || dims < 4) return std::nullopt;
                Specification out = s;
                out.inputs.put(Role::q, of_table_of_other_style(s, Role::q));
                if (!s.problem.cache.keys_rotated)
                    out.inputs.put(Role::k, of_table_of_other_style(s, Role::k));
                return out;
            }};
}

}  // namespace

std::vector<Deviation> rotation_tables() {
    std::vector<Deviation> list{
        queries_turned("rope_queries_offset_twice", "queries rotated by the offset twice",
                       [](const Specification& s, std::int64_t, std::int64_t) {
                           return static_cast<double>(s.problem.rope.offset);
                       }),
        queries_turned("rope_queries_at_last", "every query rotated as if it were the last",
                       [](const Specification& s, std::int64_t b, std::int64_t i) {
                           return static_cast<double>(
                               length_of(s.problem.mask.lens_q, s.problem.len_q, b) - 1 - i);
                       }),
        queries_turned("rope_queries_at_first", "every query rotated as if it were the first",
                       [](const Specification&, std::int64_t, std::int64_t i) {
                           return -static_cast<double>(i);
                       }),
    };
    list.push_back(table_of_other_style());
    for (const Precision format : {Precision::bf16, Precision::f16}) add_rounded(list, format);
    for (double step = 2; step <= 64; step *= 2) add_rounded_down(list, step);
    for (double end = 128; end <= 65536; end *= 2) {
        list.push_back(angles_by(
            fmt::format("rope_positions_end_{:.0f}", end),
            fmt::format("positions of a rotation that end with {:.0f}", end - 1),
            [end](double p, double frequency) { return std::min(p, end - 1) * frequency; }));
        list.push_back(
            angles_by(fmt::format("rope_positions_modulo_{:.0f}", end),
                      fmt::format("positions of a rotation modulo {:.0f}", end),
                      [end](double p, double frequency) { return std::fmod(p, end) * frequency; }));
    }
    return list;
}

}  // namespace attest::diagnosis
