#include <algorithm>
#include <cmath>

#include "properties/search/shrinker.hpp"
#include "reference/problem/feature.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::search {

namespace {

// The sweep is a fixed list, so that it ends at the same case wherever it began: up to this many
// scores every shape of up to two sequences, two key/value heads and groups of three.
constexpr std::int64_t scores_swept = 16;

/// Tensors of at most this many numbers are written out: what a person reads at a glance.
constexpr std::size_t numbers_read = 16;

Problem with_shape(Problem p, std::int64_t batch, std::int64_t heads_kv, std::int64_t group,
                   std::int64_t len_q, std::int64_t len_kv) {
    p.batch = batch;
    p.heads_kv = heads_kv;
    p.heads_q = heads_kv * group;
    p.len_q = len_q;
    p.len_kv = len_kv;
    return p;
}

/// Dimensions that are tried: 1 and 2 (RoPE's least), and the problem's own.
std::vector<std::int64_t> dims_of(const Problem& p) {
    std::vector<std::int64_t> dims = {1, 2};
    std::erase_if(dims, [&](std::int64_t dim) { return dim >= p.dim_qk; });
    dims.push_back(p.dim_qk);
    return dims;
}

/// What hides keys can stand for each other: a fault of empty rows shows under any of it. Where the
/// problem has one of them, the smallest shapes are tried with each, so that it does not matter
/// which.
std::vector<Problem> with_plain_masks(const Problem& problem) {
    using enum Feature;
    const FeatureSet hiding(causal, window, mask_bool, mask_additive, lens_kv);
    std::vector<Problem> all = {problem};
    constexpr std::int64_t scores_tried = 2;
    if ((features_of(problem) & hiding) == FeatureSet{} || score_count(problem) > scores_tried)
        return all;
    Problem bare = problem;
    bare.mask = {};
    bare.mask.documents_q = problem.mask.documents_q;
    bare.mask.documents_kv = problem.mask.documents_kv;
    bare.mask.lens_q = problem.mask.lens_q;
    const auto add = [&](auto edit) {
        all.push_back(bare);
        edit(all.back().mask);
    };
    add([](Mask& m) { m.causal = true; });
    add([](Mask& m) { m.tensor.kind = MaskKind::boolean; });
    add([](Mask& m) { m.tensor.kind = MaskKind::additive; });
    add([](Mask& m) { m.window = {0, -1}; });
    add([](Mask& m) { m.window = {-1, 0}; });
    add([&](Mask& m) {
        m.lens_kv.assign(static_cast<std::size_t>(problem.batch), problem.len_kv - 1);
    });
    return all;
}

/// Where the problem has lengths a sequence: one of them one short of full. Where it has documents:
/// two of them, one of them empty or of length one. Their own values would tie a sweep to its
/// start.
std::vector<Problem> with_plain_lengths(const Problem& problem) {
    using Lens = std::vector<std::int64_t>;
    std::vector<Problem> all = {problem};
    const auto vary = [&all](Lens Mask::*lens, const std::vector<Lens>& choices) {
        std::vector<Problem> varied;
        for (const Problem& p : all)
            for (const Lens& choice : choices) {
                varied.push_back(p);
                varied.back().mask.*lens = choice;
            }
        all = std::move(varied);
    };
    const auto one_short = [&](std::int64_t full) {
        std::vector<Lens> choices;
        for (std::size_t i = 0; i < static_cast<std::size_t>(problem.batch); ++i) {
            choices.emplace_back(static_cast<std::size_t>(problem.batch), full);
            choices.back()[i] = full - 1;
        }
        return choices;
    };
    const auto two = [](std::int64_t total) {
        return std::vector<Lens>{{0, total}, {1, total - 1}, {total, 0}};
    };
    const Mask& mask = problem.mask;
    if (!mask.lens_q.empty()) vary(&Mask::lens_q, one_short(problem.len_q));
    if (!mask.lens_kv.empty()) vary(&Mask::lens_kv, one_short(problem.len_kv));
    if (mask.documents_q.empty()) return all;
    vary(&Mask::documents_q, two(problem.len_q));
    vary(&Mask::documents_kv, two(problem.len_kv));
    return all;
}

/// Where weights are dropped: half of them, by each of the first seeds, as a cell alone is kept or
/// not.
std::vector<Problem> with_plain_seeds(const Problem& problem) {
    std::vector<Problem> all = {problem};
    for (std::uint64_t seed = 0; problem.dropout.p > 0 && seed < plain_dropout_seeds; ++seed) {
        all.push_back(problem);
        all.back().dropout = {0.5, seed};
    }
    return all;
}

}  // namespace

std::vector<Problem> smaller_shapes(const Problem& problem) {
    std::vector<Problem> shapes;
    const std::int64_t scores_max = std::min(score_count(problem), scores_swept);
    for (std::int64_t scores = 1; scores <= scores_max; ++scores)
        for (const std::int64_t batch : {1, 2})
            for (const std::int64_t heads_kv : {1, 2})
                for (const std::int64_t group : {1, 2, 3}) {
                    const std::int64_t rows = batch * heads_kv * group;
                    if (scores % rows != 0) continue;
                    const std::int64_t area = scores / rows;
                    for (std::int64_t len_q = 1; len_q <= area; ++len_q)
                        if (area % len_q == 0)
                            shapes.push_back(
                                with_shape(problem, batch, heads_kv, group, len_q, area / len_q));
                }
    std::vector<Problem> all;
    for (const Problem& shape : shapes)
        for (const std::int64_t dim : dims_of(problem)) {
            Problem p = shape;
            p.dim_qk = dim;
            if (p.dim_v != 0) p.dim_v = std::min(p.dim_v, dim);
            for (const Problem& masked : with_plain_masks(p))
                for (const Problem& fitting : with_plain_lengths(masked))
                    for (Problem& variant : with_plain_seeds(fitting)) {
                        repair(variant);
                        all.push_back(std::move(variant));
                    }
        }
    std::vector<std::pair<SizeKey, std::size_t>> order;
    for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(size_key({all[i], {}}), i);
    std::sort(order.begin(), order.end());
    std::vector<Problem> sorted;
    for (const auto& [key, i] : order)
        if (sorted.empty() || !(sorted.back() == all[i])) sorted.push_back(std::move(all[i]));
    return sorted;
}

std::vector<Case> written_out(const Case& c) {
    const TensorSet inputs = make_inputs(c);
    Case base = c;
    std::vector<Role> roles = {Role::q, Role::k, Role::v};
    // Beside filled tensors dO and dLSE are one number, unless the case says otherwise.
    for (const Role role : {Role::d_o, Role::d_lse})
        if (inputs.has(role) && (c.values.tensors.empty() || c.values.tensors.contains(role)))
            roles.push_back(role);
    for (const Role role : roles) {
        TensorValues written{Fill::explicit_values, inputs[role].to_doubles()};
        if (written.values.size() > numbers_read) return {};
        base.values.tensors[role] = std::move(written);
    }
    base.values.kind = ValueKind::normal;
    base.values.seed = 0;
    std::vector<Case> all;
    const auto add = [&](Role role, auto edit) {
        Case next = base;
        for (double& x : next.values.tensors[role].values) x = edit(x);
        if (!(next == c)) all.push_back(std::move(next));
    };
    for (const Role role : {Role::d_o, Role::d_lse}) {
        if (!base.values.tensors.contains(role)) continue;
        all.push_back(base);
        all.back().values.tensors.erase(role);
    }
    for (const Role role : roles) {
        add(role, [](double) { return 0.0; });
        add(role, [](double x) { return std::nearbyint(x); });
    }
    for (const Role role : roles) {
        const std::vector<double>& numbers = base.values.tensors[role].values;
        for (std::size_t i = 0; i < numbers.size(); ++i)
            for (const double simpler : {0.0, 1.0, std::nearbyint(numbers[i] / 2)}) {
                Case next = base;
                next.values.tensors[role].values[i] = simpler;
                if (numbers[i] != simpler) all.push_back(std::move(next));
            }
    }
    return all;
}

}  // namespace attest::search
