// What RoPE turned, turned back: the last step of the backward pass.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "properties/diagnosis/backward_model.hpp"
#include "properties/diagnosis/rotation.hpp"
#include "reference/oracle/rotation.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::diagnosis {

namespace {

/// The channels in the order in which RoPE of style half has its partners: those of the first half
/// of `dims` first, then the partners `apart` from them, then the rest.
std::vector<std::size_t> channel_order(std::size_t dim, std::size_t pairs, std::size_t apart) {
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < pairs; ++c) order.push_back(c);
    for (std::size_t c = 0; c < pairs; ++c) order.push_back(c + apart);
    for (std::size_t c = pairs; c < dim; ++c)
        if (c < apart || c >= apart + pairs) order.push_back(c);
    return order;
}

std::vector<std::size_t> turned_channels(const Problem& p, const ModelSteps& steps) {
    const auto dim = static_cast<std::size_t>(p.dim_qk),
               dims = static_cast<std::size_t>(p.rope.dims == 0 ? p.dim_qk : p.rope.dims);
    if (steps.turns_across) return channel_order(dim, dims / 2, dim / 2);
    std::vector<std::size_t> order(dim);
    std::iota(order.begin(), order.end(), std::size_t{0});
    return order;
}

/// Turns back by cosines and sines that are rounded, each known to the angle's error.
class RoundedTable {
public:
    RoundedTable(const Problem& p, const std::vector<double>& frequency, double angle_error,
                 Precision format)
        : rope_(p.rope),
          dims_(p.rope.dims == 0 ? p.dim_qk : p.rope.dims),
          frequency_(frequency),
          angle_error_(angle_error),
          format_(format) {}

    /// Adds what is not known to `error`.
    void turn_back(std::vector<double>& x, std::vector<double>& error, std::int64_t by) const {
        for (std::int64_t c = 0; c < dims_ / 2; ++c) {
            const auto channels = pair_of(rope_, dims_, c);
            const auto r = static_cast<std::size_t>(channels.first),
                       s = static_cast<std::size_t>(channels.second);
            const double angle = static_cast<double>(by) * frequency_[r],
                         off = angle_error_ * std::abs(angle);
            const Near cosine = rounded_to({std::cos(angle), off}, format_),
                       sine = rounded_to({std::sin(angle), off}, format_);
            const double u = x[r], v = x[s],
                         unknown = (cosine.error + sine.error) * std::max(std::abs(u), std::abs(v));
            x[r] = u * cosine.value + v * sine.value;
            x[s] = v * cosine.value - u * sine.value;
            error[r] += unknown;
            error[s] += unknown;
        }
    }

private:
    const Rope& rope_;
    std::int64_t dims_;
    const std::vector<double>& frequency_;
    double angle_error_;
    Precision format_;
};

}  // namespace

// Out of RoPE's frame, with what the turned inputs and the turning cost (GradientBook::add).
void turn_back(const BackwardCall& call, const ModelSteps& steps, Predicted& out) {
    const Problem& p = call.problem();
    Problem turned = p;
    if (steps.turns_as) steps.turns_as(turned);
    const oracle::Rotation<double> rotation(turned);
    const std::vector<double> frequency = rotation.channel_frequency();
    const bound::KernelModel& m = call.model;
    // 2.02 and 1.01: the products of two errors, as in GradientBook::add.
    const double unit = 2.02 * (9 * m.ua + std::max(m.up, m.ugs)),
                 // As in score_error().
        angle = 1.01 * (2 * m.rope_log_base + 7) * m.ua,
                 furthest = 2 * static_cast<double>(std::abs(p.rope.offset) + p.len_q + p.len_kv);
    const std::size_t d = static_cast<std::size_t>(p.dim_qk);
    const std::vector<std::size_t> channel = turned_channels(turned, steps);
    std::optional<RoundedTable> table;
    if (steps.turn_table) table.emplace(turned, frequency, angle, *steps.turn_table);
    const auto row = [&](std::vector<Near>& all, std::int64_t at, std::int64_t position) {
        std::vector<double> x(d), size(d), error(d);
        Near* from = all.data() + static_cast<std::size_t>(at) * d;
        for (std::size_t c = 0; c < d; ++c) {
            x[c] = from[channel[c]].value;
            size[c] = most(from[channel[c]]);
            error[c] = from[channel[c]].error;
        }
        rotation.spread(size.data());
        rotation.spread(error.data());
        const std::int64_t to = turned.rope.offset + position;
        if (table)
            table->turn_back(x, error, to);
        else if (steps.turns_back != 0)
            rotation.turn_back(x.data(), steps.turns_back * to);
        for (std::size_t c = 0; c < d; ++c)
            from[channel[c]] = {
                x[c], 2 * error[c] + 2 * size[c] * (unit + angle * frequency[c] * furthest)};
    };
    for (std::int64_t at = 0; at < p.batch * p.heads_q * p.len_q; ++at)
        row(out[Role::d_q], at,
            oracle::keys_of(turned, call.call.dialect, at / (p.heads_q * p.len_q), at % p.len_q)
                .position);
    if (p.cache.present && p.cache.keys_rotated) return;
    for (std::int64_t at = 0; at < p.batch * p.heads_kv * p.len_kv; ++at)
        row(out[Role::d_k], at, oracle::key_position(turned, at % p.len_kv));
}

}  // namespace attest::diagnosis
