#include "properties/law/dropout_cases.hpp"
#include "properties/law/case_sets.hpp"

#include <memory>
#include <utility>

#include "properties/law/compare.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/law/gradient_cases.hpp"

namespace attest::law {

namespace {

/// Products of the reference: some milliseconds.
constexpr std::int64_t calls_max = 16, products_max = std::int64_t{1} << 22;

bool is_readable(const Problem& p) {
    return has_rows(p) && reading_calls(p) <= calls_max &&
           score_count(p) * group_size(p) * p.len_q * value_dim(p) <= products_max;
}

CaseSpace limited(CaseSpace space) {
    space.allow = space.allow.with(Feature::dropout);
    space.require = FeatureSet(Feature::dropout);
    // What is added up in f16 times 64 stays finite.
    space.kinds = {ValueKind::normal,  ValueKind::ties, ValueKind::small_int, ValueKind::logit50,
                   ValueKind::uniform, ValueKind::flat, ValueKind::ascending};
    space.scores_max = 4096;
    space.len_max = 384;
    space.dim_max = 64;
    space.batch_max = 5;
    space.limited_because = "a mask is read off call by call";
    space.admits = is_readable;
    return space;
}

}  // namespace

CaseSpace dropout_cases(std::int64_t cost) {
    return limited({.allow = FeatureSet::all(), .cost = cost});
}

CaseSpace dropout_gradient_cases() {
    return limited(gradient_cases(16));
}

namespace planted {

namespace {

/// Another mask than that of the question: `change` says whose.
PlantedDeviation keeps(std::string id, std::function<void(Question&)> change) {
    return {.id = std::move(id), .asks = [change = std::move(change)](Question& q) {
                if (q.problem.dropout.p > 0) change(q);
            }};
}

void draw_again(Question& q, const Problem& by) {
    q.inputs.put(Role::dropout_keep, drawn_keep(by));
}

/// Every index of one axis has the mask of the one that is it mod `period`.
PlantedDeviation one_mask(std::string id, std::size_t axis, std::int64_t period = 1) {
    return keeps(std::move(id), [axis, period](Question& q) {
        Tensor& keep = q.inputs[Role::dropout_keep];
        for (std::int64_t at = 0; at < keep.size(); ++at) {
            Shape from = index_of(keep.shape(), at);
            from[axis] %= period;
            keep.set_bits(at, keep.bits(keep.flat(from[0], from[1], from[2], from[3])));
        }
    });
}

/// Backward of another question.
PlantedDeviation differentiates(std::string id, std::function<void(Question&)> change) {
    return {.id = std::move(id),
            .differentiates = [change = std::move(change)](Question asked, std::int64_t,
                                                           const auto& truth) {
                change(asked);
                return truth(asked);
            }};
}

}  // namespace

PlantedDeviation dropped_at_zero() {
    return {.id = "dropped_at_zero", .asks = [](Question& q) {
                if (q.problem.dropout.p > 0 || q.problem.dropout.seed == 0) return;
                q.problem.dropout.p = 0.125;
                draw_again(q, q.problem);
            }};
}

PlantedDeviation dropped_by_one_minus_p() {
    return keeps("dropped_by_one_minus_p", [](Question& q) {
        Problem other = q.problem;
        other.dropout.p = 1 - other.dropout.p;
        draw_again(q, other);
    });
}

PlantedDeviation dropout_factor_missing() {
    return keeps("dropout_factor_missing", [](Question& q) {
        Tensor& v = q.inputs[Role::v];
        for (std::int64_t at = 0; at < v.size(); ++at)
            v.set(at, v.get(at) * (1 - q.problem.dropout.p));
    });
}

PlantedDeviation one_mask_for_all_heads() {
    return one_mask("one_mask_for_all_heads", 1);
}

PlantedDeviation one_mask_for_all_sequences() {
    return one_mask("one_mask_for_all_sequences", 0);
}

PlantedDeviation one_mask_for_all_rows() {
    return one_mask("one_mask_for_all_rows", 2);
}

PlantedDeviation one_mask_for_128_keys() {
    return one_mask("one_mask_for_128_keys", 3, 128);
}

PlantedDeviation one_mask_for_sums() {
    return keeps("one_mask_for_sums", [](Question& q) {
        Tensor& keep = q.inputs[Role::dropout_keep];
        for (std::int64_t at = 0; at < keep.size(); ++at) {
            Shape from = index_of(keep.shape(), at);
            if (from[0] == 0 || from[1] + 1 == keep.shape()[1]) continue;
            --from[0], ++from[1];
            keep.set_bits(at, keep.bits(keep.flat(from[0], from[1], from[2], from[3])));
        }
    });
}

PlantedDeviation one_mask_for_all_seeds() {
    return keeps("one_mask_for_all_seeds", [](Question& q) {
        Problem other = q.problem;
        other.dropout.seed = 42;
        draw_again(q, other);
    });
}

PlantedDeviation masks_by_the_call() {
    return {.id = "masks_by_the_call",
            .remembers = [](Question& q, std::span<const Question> before) {
                if (q.problem.dropout.p > 0) draw_again(q, reseeded(q.problem, before.size()));
            }};
}

PlantedDeviation masks_by_the_queries() {
    return keeps("masks_by_the_queries", [](Question& q) {
        const Tensor& queries = q.inputs[Role::q];
        for (std::int64_t at = 0; at < queries.size(); ++at)
            if (queries.get(at) != 0) return draw_again(q, reseeded(q.problem, 1000));
    });
}

PlantedDeviation backward_mask_of_another_seed() {
    return differentiates("backward_mask_of_another_seed",
                          [](Question& q) { draw_again(q, reseeded(q.problem, 1)); });
}

PlantedDeviation backward_mask_of_last_forward() {
    const auto last = std::make_shared<Dropout>();
    PlantedDeviation stale = differentiates("backward_mask_of_last_forward", [last](Question& q) {
        Problem other = q.problem;
        other.dropout.seed = last->seed;
        draw_again(q, other);
    });
    stale.asks = [last](Question& q) { *last = q.problem.dropout; };
    return stale;
}

PlantedDeviation backward_without_dropout() {
    return differentiates("backward_without_dropout", [](Question& q) {
        q.problem.dropout = {};
        q.inputs.erase(Role::dropout_keep);
    });
}

}  // namespace planted

}  // namespace attest::law
