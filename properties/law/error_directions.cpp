#include "properties/law/error_directions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

constexpr double score_max = 50;         // one element weighs no more than this in the test
constexpr double direction_rate = 3e-8;  // of |Z| > 6.0, a direction: 2 exp(-6^2 / 2)
constexpr std::int64_t heads_wanted = 100;

Judgement suspected(const TestedDirection& d, double threshold, std::int64_t elements) {
    Violation v;
    v.problem = fmt::format(fmt::runtime(d.words), d.sum.drift());
    v.tensor = d.tensor;
    v.index = {0, 0, 0, 0};
    v.element_name = "errors of the whole case";
    v.observed = d.sum.samples().value();
    v.bound = threshold;
    v.bound_kind = BoundKind::statistic;
    v.violation_class = ViolationClass::suspect;
    v.ratio = std::abs(v.observed) / threshold;
    return violated(std::move(v), elements);
}

}  // namespace

void DirectionSum::add(double error, double direction) {
    const bool counts = std::abs(error) <= score_max;
    const double limited = counts ? error : error < 0 ? -score_max : score_max;
    sample_ += limited * direction;
    along_ += (std::isfinite(error) ? error : limited) * direction;
    square_ += direction * direction;
}

void DirectionSum::end_sample() {
    samples_.add(sample_);
    sample_ = 0;
}

Judgement judge_directions(std::span<const TestedDirection> directions, std::string statistic,
                           std::int64_t elements) {
    const double threshold = SelfNormalised::threshold(direction_rate);
    const TestedDirection* most = nullptr;
    double largest = -1;
    bool any_off = false;
    for (const TestedDirection& d : directions) {
        const double z = std::abs(d.sum.samples().value());
        const bool off = !(z <= threshold) && !(std::abs(d.sum.drift()) <= d.admitted);
        if (any_off && !off) continue;
        if (off == any_off && z <= largest) continue;
        most = &d;
        largest = z;
        any_off = off;
    }
    Judgement verdict = any_off ? suspected(*most, threshold, elements) : holds(elements);
    verdict.statistic = most->sum.samples().statistic(std::move(statistic), direction_rate);
    // Any of the directions may fail the case.
    verdict.statistic->false_positive_rate =
        static_cast<double>(directions.size()) * direction_rate;
    return verdict;
}

const char* leaning_by_design(const Numerics& numerics) noexcept {
    if (numerics.matrix_unit) return truncated_sums;
    if (has_coarse_steps(numerics)) return coarse_steps;
    if (coarse_exp(numerics)) return "a coarse exp errs alike at like scores, and not by chance";
    return nullptr;
}

Problem many_heads(const Problem& problem, std::int64_t queries) {
    Problem many = plain(problem, queries, std::max<std::int64_t>(16, problem.len_kv));
    many.heads_q = many.heads_kv;
    many.batch = (heads_wanted + many.heads_kv - 1) / many.heads_kv;
    return many;
}

}  // namespace attest::law
