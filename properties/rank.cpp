// The scores of one head are a product of a [Tq, D] and a [D, Tk] matrix: their rank is at most D.
// The laws read the whole weight matrix off the kernel, take logarithms and look at the singular
// values: by Weyl an error E of the matrix moves none by more than |E|.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/log_weights.hpp"
#include "properties/law/property.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

constexpr const char* nothing_resolved = "the weights are too small to be told from zero";

/// The case's heads, dimension and formats with `beyond` tokens more than the head dimension, no
/// mask and inputs of its own; the more tokens, the longer the case. Some kernels take multiples of
/// a tile alone.
Problem token_problem(const Trial& trial, std::int64_t beyond) {
    const Problem& p = trial.problem();
    const std::int64_t least = p.dim_qk + beyond + std::clamp<std::int64_t>(p.len_kv, 1, 10);
    Problem square;
    for (const std::int64_t multiple : {1, 8, 16, 64, 128}) {
        const std::int64_t tokens = (least + multiple - 1) / multiple * multiple;
        square = plain(p, tokens, tokens);
        square.scale.reset();
        if (trial.supports(square)) break;
    }
    return square;
}

TensorSet normal_inputs(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    TensorSet inputs = blank_inputs(problem);
    for (const Role role : {Role::q, Role::k}) {
        std::uint64_t index = 0;
        const std::uint64_t own = stream + (role == Role::k ? 1 : 0);
        inputs.put(role, tensor_of(problem, role,
                                   [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
                                       return trial.random_normal(own, index++);
                                   }));
    }
    return inputs;
}

CaseSpace space() {
    return {.allow = FeatureSet(Feature::gqa, Feature::dim_v, Feature::layout, Feature::lse,
                                Feature::splits, Feature::mixed_formats),
            .kinds = {ValueKind::normal},
            .cost = 16,
            .len_max = 32,
            .dim_max = 12,
            .batch_max = 2,
            .limited_because =
                "singular values of every head take the cube of its tokens, and of "
                "those it makes more than channels",
            .default_scale = true};
}

// S = sigma Q K^T has rank <= D. Taking its row means off multiplies it by I - 11^T/n, which cannot
// raise the rank; so the L_i, unknown without an LSE, drop out.
Verdict check_scores(const Trial& trial) {
    const Problem problem = token_problem(trial, 1);
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many tokens");
    const std::uint64_t stream = stream_of("rank.scores");
    const TensorSet inputs = normal_inputs(trial, problem, stream);
    const Weights weights = Weights::read(trial, problem, inputs, stream);
    if (weights.fault()) return *weights.fault();
    Tally tally(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h) {
            const Row row{b, h, 0};
            const std::string sentence =
                fmt::format("the scores around {} have a rank above {}, the head dimension",
                            name_of(problem, row), problem.dim_qk);
            compare_rank(tally, centred_scores(weights, b, h), problem.dim_qk, row, sentence);
            if (weights.first().has_lse())
                compare_rank(tally, full_scores(weights, b, h), problem.dim_qk, row, sentence);
        }
    return tally.verdict(nothing_resolved);
}

Property scores() {
    return {
        .id = "rank.scores",
        .statement = "The scores of a head, read off its weights, have rank at most head_dim.",
        .statement_short = "the scores of a head have rank at most its dimension",
        .why =
            "S = sigma Q K^T is a product through D channels. log P_ij = S_ij - L_i, so log P with "
            "its row means taken off is S times a projection: rank at most D, and so is log P + L "
            "where L is returned. Each weight is known within its bound; by Weyl the singular "
            "values beyond D cannot exceed the Frobenius norm of those errors.",
        .source = "Bhojanapalli et al. 2020 (low-rank bottleneck); Weyl 1912",
        .compares = Compares::bound,
        .cases = space(),
        .check = check_scores,
        .turned_red_by = {planted::scores_capped(0.5)},
    };
}

/// Small whole numbers: X [tokens, m], W_Q and W_K [m, D]; every product of theirs is exact in
/// every format, so that Q = X W_Q 2^-a and K = X W_K 2^-a are the projections themselves.
struct Projection {
    Eigen::MatrixXd tokens;
    std::vector<Eigen::MatrixXd> to_query, to_key;  ///< one a head
    int shift = 0;                                  ///< a
};

Eigen::MatrixXd whole_numbers(const Trial& trial, std::uint64_t stream, std::int64_t rows,
                              std::int64_t columns, std::int64_t most) {
    Eigen::MatrixXd matrix(rows, columns);
    std::uint64_t index = 0;
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
            matrix(i, j) = on_grid(trial, stream, index++, most, 1);
    return matrix;
}

Projection project(const Trial& trial, const Problem& problem, std::uint64_t stream,
                   std::int64_t model_dim) {
    Projection p;
    p.tokens = whole_numbers(trial, stream, problem.len_q, model_dim, 2);
    for (std::int64_t h = 0; h < problem.heads_q; ++h)
        p.to_query.push_back(whole_numbers(trial, stream + 1 + static_cast<std::uint64_t>(2 * h),
                                           model_dim, problem.dim_qk, 1));
    for (std::int64_t g = 0; g < problem.heads_kv; ++g)
        p.to_key.push_back(whole_numbers(trial, stream + 2 + static_cast<std::uint64_t>(2 * g),
                                         model_dim, problem.dim_qk, 1));
    // Var(q_c) = m * 2 * 2/3; with 2^-a on either side the scores have a variance of about one.
    p.shift =
        static_cast<int>(std::lround(std::log2(4.0 * static_cast<double>(model_dim) / 3) / 2));
    return p;
}

// With S C = X A (C X)^T, C the projection that takes row means off, and X, C X of full column
// rank, A = X^+ (S C) (C X)^+^T. An error E of S C moves A by at most |X^+| |(C X)^+| |E|. What
// comes out must be sigma W_Q W_K^T 2^-2a, a matrix of rank at most D.
Verdict check_bilinear(const Trial& trial) {
    const std::int64_t model_dim = trial.problem().dim_qk + 2;
    const Problem problem = token_problem(trial, 5);
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many tokens");
    const std::uint64_t stream = stream_of("rank.bilinear");
    const Projection p = project(trial, problem, stream + 2, model_dim);
    TensorSet inputs = blank_inputs(problem);
    const auto rule = [&](const std::vector<Eigen::MatrixXd>& heads) {
        std::vector<Eigen::MatrixXd> products;
        for (const Eigen::MatrixXd& w : heads)
            products.push_back(std::ldexp(1.0, -p.shift) * product(p.tokens, w));
        return [products](std::int64_t, std::int64_t h, std::int64_t t, std::int64_t c) {
            return products[static_cast<std::size_t>(h)](t, c);
        };
    };
    inputs.put(Role::q, tensor_of(problem, Role::q, rule(p.to_query)));
    inputs.put(Role::k, tensor_of(problem, Role::k, rule(p.to_key)));
    const Weights weights = Weights::read(trial, problem, inputs, stream);
    if (weights.fault()) return *weights.fault();

    Eigen::MatrixXd centred = p.tokens;
    centred.rowwise() -= centred.colwise().mean().eval();
    const Eigen::VectorXd spectrum = singular_values(p.tokens), inner = singular_values(centred);
    const double least = spectrum[model_dim - 1], least_centred = inner[model_dim - 1];
    // Any threshold would do: the bound below grows with the inverses. Tokens that span the model
    // dimension as badly as this would show nothing.
    if (!(least > 0x1p-20) || !(least_centred > 0x1p-20))
        return not_applicable("the tokens drawn do not span the model dimension");
    const Eigen::MatrixXd unity = Eigen::MatrixXd::Identity(problem.len_q, problem.len_q);
    const Eigen::MatrixXd left = least_squares(p.tokens, unity);
    const Eigen::MatrixXd right = least_squares(centred, unity);
    const double unit = std::ldexp(effective_scale(problem), -2 * p.shift);
    Tally tally(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h) {
            const LogMatrix scores = centred_scores(weights, b, h);
            if (!std::isfinite(scores.perturbation)) continue;
            const Eigen::MatrixXd recovered =
                product(product(left, scores.centre), right.transpose());
            const Eigen::MatrixXd exact =
                product(unit * p.to_query[static_cast<std::size_t>(h)],
                        p.to_key[static_cast<std::size_t>(h / group_size(problem))].transpose());
            // Least squares and products in double: n^2 roundings of 2^-53 each, 32 of them for the
            // constants of the orthogonal decompositions (Higham 2002, theorem 20.3), times the
            // condition that the spectra say.
            const double condition = spectrum[0] / least * (inner[0] / least_centred);
            const double own = static_cast<double>(problem.len_q * problem.len_q) * 0x1p-48 *
                               condition * scores.centre.norm() / (least * least_centred);
            const double bound = evaluation * scores.perturbation / (least * least_centred) + own;
            for (std::int64_t a = 0; a < model_dim; ++a)
                for (std::int64_t c = 0; c < model_dim; ++c)
                    tally.same(Interval::around(exact(a, c), own),
                               Interval::around(recovered(a, c), bound), output_at({b, h, 0}, 0),
                               [&] {
                                   return fmt::format(
                                       "the bilinear form around {} is not W_Q W_K^T at ({}, {})",
                                       name_of(problem, {b, h, 0}), a, c);
                               });
            compare_rank(tally, {recovered, bound}, problem.dim_qk, {b, h, 0},
                         "the bilinear form has a rank above the head dimension");
        }
    return tally.verdict(nothing_resolved);
}

Property bilinear() {
    return {
        .id = "rank.bilinear",
        .statement = "Scores of projected tokens are X A X^T with A = W_Q W_K^T, of rank <= D.",
        .statement_short = "scores of projected tokens are X W_Q W_K^T X^T",
        .why =
            "With Q = X W_Q and K = X W_K the scores are sigma X (W_Q W_K^T) X^T. Tokens and "
            "projections are small whole numbers, so Q and K are exact in every format, and the "
            "matrix judged is that of these Q and K. Multiplying by the pseudo-inverses of X gives "
            "A back, its error at most their norms times that of the scores.",
        .source = "Vaswani et al. 2017, section 3.2.2; Elhage et al. 2021 (QK circuit)",
        .compares = Compares::bound,
        .cases = space(),
        .check = check_bilinear,
        .turned_red_by = {planted::scale_is(1)},
    };
}

// A negative control: heads have queries and keys of their own, so the scores of two heads side by
// side have a rank above D for generic inputs. The law computes their singular value D + 1 from the
// inputs; what the kernel shows must be as large, by Weyl within the error of the matrix.
Verdict check_heads(const Trial& trial) {
    Problem problem = token_problem(trial, 2);
    if (problem.heads_q < 2) problem.heads_q = problem.heads_kv = 2;
    problem = canonical(problem);
    if (!trial.supports(problem)) return not_applicable("the kernel does not take two heads");
    const std::uint64_t stream = stream_of("rank.heads");
    const TensorSet inputs = normal_inputs(trial, problem, stream);
    const Weights weights = Weights::read(trial, problem, inputs, stream);
    if (weights.fault()) return *weights.fault();
    const Scores exact(problem, inputs);
    const std::int64_t tokens = problem.len_q, dim = problem.dim_qk;
    Tally tally(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h + 1 < problem.heads_q; ++h) {
            const LogMatrix first = centred_scores(weights, b, h);
            const LogMatrix second = centred_scores(weights, b, h + 1);
            const double shaken = std::hypot(first.perturbation, second.perturbation);
            if (!std::isfinite(shaken)) continue;
            Eigen::MatrixXd shown(tokens, 2 * tokens), truth(tokens, 2 * tokens);
            shown << first.centre, second.centre;
            for (std::int64_t i = 0; i < tokens; ++i)
                for (std::int64_t j = 0; j < 2 * tokens; ++j)
                    truth(i, j) = exact.score({b, h + j / tokens, i}, j % tokens).mid();
            for (const std::int64_t from : {std::int64_t{0}, tokens}) {
                auto half = truth.middleCols(from, tokens);
                half.colwise() -= half.rowwise().mean().eval();
            }
            // A score of the law is off by (dim + 2) 2^-53 sum |q_c k_c| (scores.cpp), its mean by
            // `tokens` more roundings. For normal inputs those sums are about sqrt(dim) of the
            // scores in the Frobenius norm: dim is allowed for, and eight of all that.
            const double own = static_cast<double>(8 * (dim + tokens)) * 0x1p-53 *
                                   static_cast<double>(dim) * truth.norm() +
                               svd_error(truth);
            const double expected = singular_values(truth)[dim];
            const double bound = evaluation * shaken + svd_error(shown);
            if (!(expected > 2 * (bound + own))) continue;
            tally.same(
                Interval::around(expected, own),
                Interval::around(singular_values(shown)[dim], bound), output_at({b, h, 0}, 0), [&] {
                    return fmt::format(
                        "the scores of heads {} and {} together have another rank than their "
                        "queries and keys give",
                        h, h + 1);
                });
        }
    return tally.verdict(nothing_resolved);
}

Property heads() {
    return {
        .id = "rank.heads",
        .statement = "The scores of two heads side by side have a rank above head_dim.",
        .statement_short = "two heads together exceed the rank of one",
        .why =
            "A negative control. Heads have queries and keys of their own, so for generic inputs "
            "[S_1 S_2] has rank 2D. Its singular value D + 1 is computed from the inputs; by Weyl "
            "the kernel's matrix must show it within the error of its elements. A kernel that "
            "reads one head for another shows a smaller one.",
        .source = "Vaswani et al. 2017, section 3.2.2; Weyl 1912",
        .compares = Compares::bound,
        .cases = space(),
        .check = check_heads,
        .turned_red_by = {planted::one_query_head_for_all()},
    };
}

}  // namespace

std::vector<Property> rank() {
    return {scores(), bilinear(), heads()};
}

}  // namespace attest::law
