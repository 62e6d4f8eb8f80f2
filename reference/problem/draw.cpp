#include "reference/problem/draw.hpp"

#include <algorithm>
#include <cmath>

#include "reference/problem/counter.hpp"

namespace attest {
namespace {

/// Standard deviation of the scores at the default scale; 1 for every other kind. In f16 at most
/// 4000: the largest f16 is then 16 deviations off, which a product of two normals exceeds with
/// probability K0's tail, 2e-8, and a longer sum more rarely still.
double logit_size(ValueKind kind, bool half) {
    switch (kind) {
        case ValueKind::logit50:
            return 50;
        case ValueKind::logit1e3:
            return 1e3;
        case ValueKind::logit1e4:
            return half ? 4e3 : 1e4;
        case ValueKind::one_hot:
            return 4;
        default:
            return 1;
    }
}

void scale(std::span<double> row, double factor) {
    for (double& x : row) x *= factor;
}

/// Of the binades of Q and K below 1, 0.7: were half of them above, their products would saturate
/// every softmax.
constexpr double mostly_small = 0.7;

bool is_ramp(ValueKind kind) {
    return kind == ValueKind::ascending || kind == ValueKind::descending;
}

}  // namespace

std::uint64_t row_key(std::int64_t b, std::int64_t h, std::int64_t t) noexcept {
    const auto u = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    return counter_bits(u(b), u(h), u(t));
}

Distribution::Distribution(const Problem& problem, const Values& values)
    : kind_(values.kind),
      seed_(values.seed),
      format_q_(problem.format_q),
      format_kv_(problem.format_kv),
      group_(group_size(problem)),
      logit_size_(logit_size(kind_, format_q_ == Precision::f16 || format_kv_ == Precision::f16)) {}

double Distribution::parameter(std::uint64_t number) const noexcept {
    return counter_uniform(seed_, static_cast<std::uint64_t>(Stream::parameters), number);
}

std::int64_t Distribution::parameter_in(std::uint64_t number, std::int64_t low,
                                        std::int64_t high) const noexcept {
    const auto span = static_cast<double>(high - low + 1);
    return low + static_cast<std::int64_t>(parameter(number) * span);
}

double Distribution::variation(Role role, std::uint64_t index) const noexcept {
    const auto stream = static_cast<std::uint64_t>(Stream::variation) << 8;
    return counter_uniform(seed_, stream + static_cast<std::uint64_t>(role), index);
}

/// Independent elements: normal, or what the kind has instead.
void Distribution::fill(Role role, std::uint64_t key, std::span<double> out) const {
    const auto stream = static_cast<std::uint64_t>(role);
    if (kind_ != ValueKind::small_int && kind_ != ValueKind::uniform)
        return counter_normals(seed_, stream, key, out);
    for (std::size_t c = 0; c < out.size(); ++c) {
        const double x = counter_uniform(seed_, stream, key + c);
        out[c] = kind_ == ValueKind::uniform ? x : std::floor(x * 7) - 3;
    }
}

void Distribution::row(Role role, std::int64_t b, std::int64_t h, std::int64_t t,
                       std::span<double> out) const {
    if (role == Role::k && kind_ == ValueKind::one_hot) {
        // Key t is query t xor x, stretched: it stands out for that query alone. The xor is a
        // permutation that needs no length.
        const std::int64_t x =
            parameter_in(1, 0, 31) & ((std::int64_t{1} << parameter_in(2, 0, 5)) - 1);
        fill(Role::q, row_key(b, h * group_, t ^ x), out);
        scale(out, 4 * std::sqrt(logit_size_));
        return;
    }
    // Ties: the keys repeat the first one to four. Constant V: every row is row 0.
    if (role == Role::k && kind_ == ValueKind::ties) t %= parameter_in(1, 1, 4);
    if (role == Role::v && kind_ == ValueKind::const_v) t = 0;
    const std::uint64_t key = row_key(b, h, t);
    fill(role, key, out);
    if (role == Role::q) shape_q(key, out);
    if (role == Role::k) shape_k(key, t, out);
    if (role == Role::v) shape_v(key, t, out);
}

/// Spreads magnitudes over binades: times 2^e, e uniform about `middle` of the range.
void Distribution::widen(Role role, std::uint64_t key, double middle, int binades,
                         std::span<double> out) const {
    for (std::size_t c = 0; c < out.size(); ++c) {
        const double e = std::floor((variation(role, key + c) - middle) * binades);
        out[c] = std::ldexp(out[c], static_cast<int>(e));
    }
}

/// A power of two that brings normal numbers about and below the format's subnormal threshold: V
/// from 2^6 above it to the last subnormal; Q and K from farther above, and only on every other
/// seed each, for their products underflow too.
double Distribution::tiny_factor(Role role, Precision format) const {
    const FormatTraits f = traits(format);
    const int least = f.exponent_min - f.significand_bits + 2;
    const int most = role == Role::v ? f.exponent_min + 6 : f.exponent_min * 3 / 4;
    const auto number = 8 * static_cast<std::uint64_t>(role);
    if (role != Role::v && parameter(number) < 0.5) return 1.0;
    return std::ldexp(1.0, static_cast<int>(parameter_in(number + 1, least, most)));
}

void Distribution::shape_q(std::uint64_t key, std::span<double> q) const {
    const int binades = format_q_ == Precision::f16 ? 6 : 12;
    switch (kind_) {
        case ValueKind::logit50:
        case ValueKind::logit1e3:
        case ValueKind::logit1e4:
        case ValueKind::one_hot:
            scale(q, std::sqrt(logit_size_));
            break;
        case ValueKind::cancel_v:
            scale(q, 0x1p-7);
            break;  // nearly equal weights
        case ValueKind::tiny:
            scale(q, tiny_factor(Role::q, format_q_));
            break;
        case ValueKind::wide:
            widen(Role::q, key, mostly_small, binades, q);
            break;
        case ValueKind::ascending:
        case ValueKind::descending:
            q[0] = std::fabs(q[0]) + 0.5;
            break;
        case ValueKind::negative_logits:
            for (double& x : q) x = std::fabs(x) + 0.5;
            break;
        case ValueKind::qk_cancel:
            // Equal pairs in q against opposite pairs in k: terms of 1e4 that sum to almost 0.
            for (std::size_t c = 0; c + 1 < q.size(); c += 2)
                q[c] = q[c + 1] = 100 * (1 + variation(Role::q, key + c));
            break;
        case ValueKind::flat:
            scale(q, std::ldexp(1.0, -static_cast<int>(parameter_in(1, 1, 12))));
            break;
        default:
            break;
    }
}

void Distribution::shape_k(std::uint64_t key, std::int64_t t, std::span<double> k) const {
    const int binades = format_kv_ == Precision::f16 ? 6 : 12;
    switch (kind_) {
        case ValueKind::logit50:
        case ValueKind::logit1e3:
        case ValueKind::logit1e4:
            scale(k, std::sqrt(logit_size_));
            break;
        case ValueKind::tiny:
            scale(k, tiny_factor(Role::k, format_kv_));
            break;
        case ValueKind::wide:
            widen(Role::k, key, mostly_small, binades, k);
            break;
        case ValueKind::negative_logits: {
            const double size = std::ldexp(1.0, static_cast<int>(parameter_in(1, 4, 7)));
            for (double& x : k) x = -size * (std::fabs(x) + 0.5);
            break;
        }
        case ValueKind::qk_cancel:
            for (std::size_t c = 0; c + 1 < k.size(); c += 2)
                // What 0.01 leaves, at most 2 before the scale, keeps the scores apart.
                k[c + 1] = -k[c] + (c == 0 ? 0.01 * variation(Role::k, key) : 0.0);
            break;
        case ValueKind::ascending:
        case ValueKind::descending:
            break;
        default:
            break;
    }
    if (!is_ramp(kind_)) return;
    // Channel 0 climbs by the same step from key to key, whatever the length; at the last it stays,
    // which keeps f16 finite.
    const double step = std::ldexp(1.0, static_cast<int>(parameter_in(1, -4, 2)));
    const double height = std::min(step * static_cast<double>(t), 32768.0);
    k[0] = kind_ == ValueKind::ascending ? height : -height;
}

void Distribution::shape_v(std::uint64_t key, std::int64_t t, std::span<double> v) const {
    switch (kind_) {
        case ValueKind::cancel_v: {
            // Signs alternate from key to key; what does not cancel is a few ulps of each value.
            const double residue = std::max(1e-4, 8 * traits(format_kv_).unit_roundoff);
            for (double& x : v) x = (t % 2 != 0 ? -1e4 : 1e4) * (1 + residue * x);
            break;
        }
        case ValueKind::tiny:
            scale(v, tiny_factor(Role::v, format_kv_));
            break;
        case ValueKind::wide:
            widen(Role::v, key, 0.5, format_kv_ == Precision::f16 ? 12 : 24, v);
            break;
        case ValueKind::flat:
            for (double& x : v) x += 1;
            break;
        default:
            break;
    }
}

double filled(Fill fill, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c,
              bool last) {
    switch (fill) {
        case Fill::ones:
            return 1.0;
        case Fill::index:
            return static_cast<double>(1 + (t + 3 * c + 5 * (h + b)) % 8);
        case Fill::alternating:
            return (t + c) % 2 == 0 ? 1.0 : -1.0;
        case Fill::steep:
            return static_cast<double>(128 * std::min<std::int64_t>(t, 256));
        case Fill::sparse:
            return (t + 3 * c + 5 * (h + b)) % 8 == 0 ? 1.0 : 0.0;
        case Fill::one_hot:
            return last && b + h + c == 0 ? 1.0 : 0.0;
        default:
            return 0.0;
    }
}

}  // namespace attest
