// The scores of one head are a product of a [Tq, D] and a [D, Tk] matrix: their rank is at most D.
// In other words, D + 1 queries are linearly dependent, and whatever relation holds among them
// holds among their scores. The laws draw queries whose relations are known, read the weights off
// the kernel and put their logarithms, log P_ij = S_ij - L_i, into the relations: no matrix is
// decomposed but that of the queries, so that any head dimension is within reach.

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/probe.hpp"
#include "properties/law/property.hpp"
#include "properties/law/relations.hpp"
#include "properties/law/statistics.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

/// Relations looked at: more queries than the head dimension.
constexpr std::int64_t relations = 4;
/// Few keys, so that the weights are known well.
constexpr std::int64_t few_keys = 6;

/// The case's heads, dimension and formats with so many queries over few keys, no mask and inputs
/// of its own. Some kernels take multiples of a tile alone, or as many queries as keys.
Problem token_problem(const Given& given, const Problem& heads, std::int64_t queries) {
    Problem p;
    for (const bool square : {false, true})
        for (const std::int64_t multiple : {1, 8, 16, 64, 128}) {
            const auto whole = [&](std::int64_t n) {
                return (n + multiple - 1) / multiple * multiple;
            };
            p = plain(heads, whole(queries), whole(square ? queries : few_keys));
            p.scale.reset();
            p = canonical(p);
            if (given.supports(p)) return p;
        }
    return p;
}

TensorSet normal_inputs(const Given& given, const Problem& problem, std::uint64_t stream) {
    TensorSet inputs = blank_inputs(problem);
    for (const Role role : {Role::q, Role::k}) {
        std::uint64_t index = 0;
        const std::uint64_t own = stream + (role == Role::k ? 1 : 0);
        inputs.put(role, tensor_of(problem, role, [&](auto, auto, auto, auto) {
                       return given.random_normal(own, index++);
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
            .dim_max = 128,
            .batch_max = 2,
            .limited_because =
                "singular values of every head take the cube of its tokens, and of "
                "those it makes more than channels",
            .default_scale = true};
}

/// A case of the law's own, of which the kernel shows the weights; and how they are judged.
template <typename JudgeWeights>
Plan of_weights(const Given& given, const Problem& problem, TensorSet inputs, std::uint64_t stream,
                const JudgeWeights& judge) {
    const auto probe = std::make_shared<const WeightProbe>(given, problem, inputs, stream);
    if (!probe->readable()) return not_applicable(unreadable_weights);
    return [probe, inputs, judge](const Trial& trial) -> Judgement {
        const Weights weights = probe->read(trial);
        Tally tally(weights.first().problem());
        judge(tally, weights, inputs);
        return tally.judgement("the numerics claim nothing for these scores");
    };
}

void judge_scores(Tally& tally, const Weights& weights, const TensorSet& inputs) {
    const Problem& problem = weights.first().problem();
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h) {
            const Eigen::MatrixXd u = relations_among(inputs, problem, b, h);
            for (Eigen::Index r = 0; r < std::min<Eigen::Index>(u.cols(), relations); ++r)
                compare_relation(tally, weights, inputs, u.col(r), b, h, [&] {
                    return fmt::format(
                        "the scores around {} have a rank above {}, the head dimension",
                        name_of(problem, {b, h, 0}), problem.dim_qk);
                });
        }
}

Plan check_scores(const Given& given) {
    const std::uint64_t stream = stream_of("rank.scores");
    const Problem problem =
        token_problem(given, given.problem(), given.problem().dim_qk + relations);
    if (!given.supports(problem)) return not_taken(problem);
    return of_weights(given, problem, normal_inputs(given, problem, stream), stream, judge_scores);
}

Property scores() {
    return {
        .id = "rank.scores",
        .statement = "The scores of a head, read off its weights, have rank at most head_dim.",
        .statement_short = "the scores of a head have rank at most its dimension",
        .why =
            "S = sigma Q K^T is a product through D channels: any D + 1 queries are linearly "
            "dependent, and u^T Q = 0 gives u^T S = 0. log P_ij = S_ij - L_i, so sum_i u_i log "
            "P_ij is the same for every key, and 0 with L added where it is returned. Relations u "
            "are found from the queries, what rounding leaves of u^T Q is allowed for, and each "
            "weight is known within its bound.",
        .source = "Bhojanapalli et al. 2020 (low-rank bottleneck)",
        .compares = Compares::bound,
        .cases = space(),
        .check = check_scores,
        .turned_red_by = {planted::scores_capped(0.5)},
    };
}

// Small whole numbers: tokens x of four numbers that are not zero, W_Q and W_K of -1, 0, 1. Every
// product of theirs is exact in every format, so that the rows of Q = X W_Q 2^-a and K = X W_K 2^-a
// are the projections themselves. Var(q_c) = 4 * 2 * 2/3; with 2^-a on either side, a = 1, the
// scores have a variance of about two.
class Projection {
public:
    Projection(const Given& given, const Problem& problem, std::uint64_t stream)
        : model_dim_(problem.dim_qk + 2) {
        for (std::int64_t t = 0; t < std::max(problem.len_q, problem.len_kv); ++t) {
            Eigen::VectorXd token = Eigen::VectorXd::Zero(model_dim_);
            for (std::int64_t part = 0; part < parts; ++part) {
                const auto at = static_cast<std::uint64_t>(t * parts + part);
                token[given.random_below(stream, at, model_dim_)] =
                    on_grid(given, stream + 1, at, 2, 1);
            }
            tokens_.push_back(std::move(token));
        }
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            to_query_.push_back(weights(given, problem, stream + 2 * of(h) + 2));
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            to_key_.push_back(weights(given, problem, stream + 2 * of(g) + 3));
    }

    TensorSet inputs(const Problem& problem) const {
        TensorSet inputs = blank_inputs(problem);
        for (const Role role : {Role::q, Role::k}) {
            const auto& heads = role == Role::q ? to_query_ : to_key_;
            inputs.put(role, tensor_of(problem, role, [&](auto, auto h, auto t, auto c) {
                           return tokens_[of(t)].dot(heads[of(h)].col(c)) / 2;
                       }));
        }
        return inputs;
    }
    /// x_i A (x_j - x_0)^T 2^-2a, A = W_Q W_K^T of these heads: exact.
    double form(std::int64_t head, std::int64_t head_kv, std::int64_t i, std::int64_t j) const {
        const Eigen::VectorXd across = tokens_[of(j)] - tokens_[0];
        double sum = 0;
        for (std::int64_t r = 0; r < model_dim_; ++r)
            for (std::int64_t s = 0; s < model_dim_ && tokens_[of(i)][r] != 0; ++s)
                if (across[s] != 0)
                    sum += tokens_[of(i)][r] * across[s] *
                           to_query_[of(head)].row(r).dot(to_key_[of(head_kv)].row(s));
        return sum / 4;
    }

private:
    static constexpr std::int64_t parts = 4;
    static std::size_t of(std::int64_t n) { return static_cast<std::size_t>(n); }
    Eigen::MatrixXd weights(const Given& given, const Problem& problem,
                            std::uint64_t stream) const {
        Eigen::MatrixXd matrix(model_dim_, problem.dim_qk);
        std::uint64_t index = 0;
        for (std::int64_t r = 0; r < model_dim_; ++r)
            for (std::int64_t c = 0; c < problem.dim_qk; ++c)
                matrix(r, c) = on_grid(given, stream, index++, 1, 1);
        return matrix;
    }

    std::int64_t model_dim_;
    std::vector<Eigen::VectorXd> tokens_;
    std::vector<Eigen::MatrixXd> to_query_, to_key_;  ///< [model_dim, dim_qk], one a head
};

Plan check_bilinear(const Given& given) {
    constexpr std::int64_t tokens = 16;
    const std::uint64_t stream = stream_of("rank.bilinear");
    const Problem problem = token_problem(given, given.problem(), tokens);
    if (!given.supports(problem)) return not_taken(problem);
    const Projection projection(given, problem, stream + 1);
    return of_weights(
        given, problem, projection.inputs(problem), stream,
        [projection](Tally& tally, const Weights& weights, const TensorSet&) {
            const Problem& p = weights.first().problem();
            const Interval scale = Interval::exactly(effective_scale(p));
            for (const Row& row : all_rows(p))
                for (std::int64_t j = 1; j < p.len_kv; ++j) {
                    const double form =
                        projection.form(row.head, row.head / group_size(p), row.query, j);
                    tally.same(scale * Interval::exactly(form),
                               log(weights.at(row, j)) - log(weights.at(row, 0)), output_at(row, 0),
                               [&] {
                                   return fmt::format(
                                       "keys 0 and {} do not score x W_Q W_K^T y apart for {}", j,
                                       name_of(p, row));
                               });
                }
        });
}

Property bilinear() {
    return {
        .id = "rank.bilinear",
        .statement = "Scores of projected tokens are X A X^T with A = W_Q W_K^T, of rank <= D.",
        .statement_short = "scores of projected tokens are X W_Q W_K^T X^T",
        .why =
            "With Q = X W_Q and K = X W_K the scores are sigma X (W_Q W_K^T) X^T, a bilinear form "
            "of the tokens that passes through D channels. Tokens and projections are small whole "
            "numbers, so that Q, K and the form are exact in every format; log P_ij - log P_i0 = "
            "S_ij - S_i0 is read off the weights, each known within its bound.",
        .source = "Vaswani et al. 2017, section 3.2.2; Elhage et al. 2021 (QK circuit)",
        .compares = Compares::bound,
        .cases = space(),
        .check = check_bilinear,
        .turned_red_by = {planted::scale_is(1)},
    };
}

// A negative control: another head has queries of its own, and what a relation of the first head's
// queries leaves of its scores is computed from them: not zero, for generic inputs.
void judge_heads(Tally& tally, const Weights& weights, const TensorSet& inputs) {
    const Problem& problem = weights.first().problem();
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h + 1 < problem.heads_q; ++h) {
            const Eigen::MatrixXd u = relations_among(inputs, problem, b, h);
            compare_relation(tally, weights, inputs, u.col(0), b, h + 1, [&] {
                return fmt::format(
                    "the scores of heads {} and {} together have another rank than their queries "
                    "and keys give",
                    h, h + 1);
            });
        }
}

Plan check_heads(const Given& given) {
    const std::uint64_t stream = stream_of("rank.heads");
    Problem heads = given.problem();
    if (heads.heads_q < 2) heads.heads_q = heads.heads_kv = 2;
    const Problem problem = token_problem(given, heads, heads.dim_qk + 1);
    if (!given.supports(problem)) return not_applicable("the kernel does not take two heads");
    return of_weights(given, problem, normal_inputs(given, problem, stream), stream, judge_heads);
}

Property heads() {
    return {
        .id = "rank.heads",
        .statement = "The scores of two heads side by side have a rank above head_dim.",
        .statement_short = "two heads together exceed the rank of one",
        .why =
            "A negative control. Heads have queries of their own, so for generic inputs [S_1 S_2] "
            "has rank 2D: a relation u among the queries of one head leaves u^T S_2 = sigma (u^T "
            "Q_2) K_2^T of the other's scores, computed from the inputs. A kernel that reads one "
            "head for another leaves nothing.",
        .source = "Vaswani et al. 2017, section 3.2.2",
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
