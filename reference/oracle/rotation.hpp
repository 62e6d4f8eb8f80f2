#pragma once
// RoPE in any arithmetic: channel pair c of `dims` turns by position * base^(-2c/dims).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/oracle/real.hpp"
#include "reference/problem/problem.hpp"

namespace attest::oracle {

template <typename Real>
class Rotation {
public:
    explicit Rotation(const Problem& problem)
        : style_(problem.rope.style),
          dim_(problem.dim_qk),
          dims_(problem.rope.dims == 0 ? problem.dim_qk : problem.rope.dims) {
        if (style_ == RopeStyle::none) return;
        const Real log_base = Arithmetics<Real>::log(Real(problem.rope.base));
        for (std::int64_t c = 0; c < dims_ / 2; ++c) {
            const Real exponent =
                Real(static_cast<double>(-2 * c)) / Real(static_cast<double>(dims_)) * log_base;
            frequency_.push_back(Arithmetics<Real>::exp(exponent));
        }
    }

    /// from, to: [dim_qk]. size: |x_c|, or at the first channel of a pair its length and 0 at the
    /// second. turn: size times the angle. Both are what the bounds call a_j and t_j made of.
    void turn(const double* from, std::int64_t position, Real* to, double* size,
              double* turned) const {
        for (std::int64_t c = 0; c < dim_; ++c) {
            to[c] = Real(from[c]);
            size[c] = std::abs(from[c]);
            turned[c] = 0;
        }
        const Angle* angles = at(position);
        for (std::int64_t c = 0; c < dims_ / 2; ++c) {
            const auto [x, y] = pair(c);
            const auto& [angle, sine, cosine] = angles[c];
            to[x] = Real(from[x]) * cosine - Real(from[y]) * sine;
            to[y] = Real(from[x]) * sine + Real(from[y]) * cosine;
            size[x] = std::hypot(from[x], from[y]);
            size[y] = 0;
            turned[x] = size[x] * angle;
            turned[y] = 0;
        }
    }

    /// The other way, in place: what a gradient needs.
    void turn_back(Real* x, std::int64_t position) const {
        const Angle* angles = at(position);
        for (std::int64_t c = 0; c < dims_ / 2; ++c) {
            const auto [r, s] = pair(c);
            const auto& [angle, sine, cosine] = angles[c];
            const Real u = x[r], v = x[s];
            x[r] = u * cosine + v * sine;
            x[s] = v * cosine - u * sine;
        }
    }

    /// Gives both channels of a pair the larger of their two numbers.
    void spread(double* size) const {
        for (std::int64_t c = 0; c < dims_ / 2; ++c) {
            const auto [r, s] = pair(c);
            size[r] = size[s] = std::max(size[r], size[s]);
        }
    }

    /// The frequency of each channel's pair, 0 where it does not turn.
    std::vector<double> channel_frequency() const {
        std::vector<double> out(static_cast<std::size_t>(dim_), 0.0);
        if (style_ == RopeStyle::none) return out;
        for (std::int64_t c = 0; c < dims_ / 2; ++c) {
            const auto [r, s] = pair(c);
            const double f = Arithmetics<Real>::nearest(frequency_[static_cast<std::size_t>(c)]);
            out[static_cast<std::size_t>(r)] = out[static_cast<std::size_t>(s)] = f;
        }
        return out;
    }

private:
    struct Channels {
        std::int64_t first, second;
    };
    Channels pair(std::int64_t c) const {
        if (style_ == RopeStyle::interleaved) return {2 * c, 2 * c + 1};
        return {c, c + dims_ / 2};
    }

    struct Angle {
        double size = 0;  ///< |angle|
        Real sine{0.0}, cosine{0.0};
    };

    /// What every pair turns by at a position. Every head and every sequence asks for the same few:
    /// they are kept, up to `kept_most` pairs.
    const Angle* at(std::int64_t position) const {
        constexpr std::size_t kept_most = std::size_t{1} << 18;
        const auto found = kept_.find(position);
        if (found != kept_.end()) return found->second.data();
        std::vector<Angle> angles(static_cast<std::size_t>(dims_ / 2));
        for (std::size_t c = 0; c < angles.size(); ++c) {
            const Real angle = Real(static_cast<double>(position)) * frequency_[c];
            const auto [sine, cosine] = Arithmetics<Real>::sine_cosine(angle);
            angles[c] = {std::abs(Arithmetics<Real>::nearest(angle)), sine, cosine};
        }
        if ((kept_.size() + 1) * angles.size() > kept_most)
            return (last_ = std::move(angles)).data();
        return (kept_[position] = std::move(angles)).data();
    }

    RopeStyle style_;
    std::int64_t dim_, dims_;
    std::vector<Real> frequency_;
    mutable std::unordered_map<std::int64_t, std::vector<Angle>> kept_;
    mutable std::vector<Angle> last_;
};

}  // namespace attest::oracle
