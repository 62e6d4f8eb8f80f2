// Scores scaled by how many keys there are: the logarithm of a length that long-context kernels
// take, a scale made of the number of keys.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// The factor on the scores of a query with so many keys in its sequence, of which it stands at the
/// last of `seen`.
using LengthFactor = std::function<double(const Problem&, double keys, double seen)>;

// (f q).k = f (q.k), and a rotation of f q is f times that of q.
Deviation scaled_by_length(std::string id, std::string says, LengthFactor factor) {
    return {
        .id = std::move(id),
        .says = std::move(says),
        .respecify =
            [factor = std::move(factor)](const Specification& s) -> std::optional<Specification> {
            const Problem& p = s.problem;
            const Tensor& q = s.inputs[Role::q];
            bool differs = false;
            Specification out = s;
            out.inputs.put(
                Role::q,
                remake(ElementType::f64, q.shape(),
                       [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
                           const KeyExtent span = span_of(s, b, i);
                           const std::int64_t keys = span.end - span.begin;
                           const std::int64_t seen =
                               i + 1 + keys - length_of(p.mask.lens_q, p.len_q, b);
                           const double f =
                               keys > 0
                                   ? factor(p, static_cast<double>(keys),
                                            static_cast<double>(std::max<std::int64_t>(seen, 1)))
                                   : 1.0;
                           differs = differs || f != 1;
                           return f * q.at(b, h, i, c);
                       }));
            if (!differs) return std::nullopt;
            return out;
        }};
}

}  // namespace

std::vector<Deviation> length_scales() {
    std::vector<Deviation> list;
    for (const int n : {128, 256, 512, 1024, 2048, 4096, 8192}) {
        const double limit = n;
        list.push_back(scaled_by_length(
            fmt::format("scale_log_keys_{}", n),
            fmt::format("scores times log(n) / log({0}) of n keys, where there are more than {0}",
                        n),
            [limit](const Problem&, double keys, double) {
                return keys > limit ? std::log(keys) / std::log(limit) : 1.0;
            }));
        list.push_back(
            scaled_by_length(fmt::format("scale_log_axis_{}", n),
                             fmt::format("scores times log(Tk) / log({0}), where Tk > {0}", n),
                             [limit](const Problem& p, double, double) {
                                 const auto axis = static_cast<double>(p.len_kv);
                                 return axis > limit ? std::log(axis) / std::log(limit) : 1.0;
                             }));
        list.push_back(scaled_by_length(
            fmt::format("scale_log_position_{}", n),
            fmt::format("scores times log(n) / log({0}) of the n keys up to the query's position, "
                        "where there are more than {0}",
                        n),
            [limit](const Problem&, double, double seen) {
                return seen > limit ? std::log(seen) / std::log(limit) : 1.0;
            }));
        list.push_back(scaled_by_length(
            fmt::format("scale_log_all_{}", n),
            fmt::format("scores times log(n) / log({}) of n keys, also where there are fewer", n),
            [limit](const Problem&, double keys, double) {
                return std::log(keys) / std::log(limit);
            }));
    }
    list.push_back(scaled_by_length("scale_of_keys",
                                    "a scale of 1 / sqrt(n) of n keys instead of the one asked for",
                                    [](const Problem& p, double keys, double) {
                                        return 1 / std::sqrt(keys) / effective_scale(p);
                                    }));
    list.push_back(scaled_by_length("scale_root_of_keys", "scores times sqrt(D / n) of n keys",
                                    [](const Problem& p, double keys, double) {
                                        return std::sqrt(static_cast<double>(p.dim_qk) / keys);
                                    }));
    list.push_back(
        scaled_by_length("scale_times_log_keys", "scores times log(n) of n keys",
                         [](const Problem&, double keys, double) { return std::log(keys); }));
    return list;
}

}  // namespace attest::diagnosis
