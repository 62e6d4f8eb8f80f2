#pragma once
// For the tests of the laws: a kernel in this process that answers with the truth, rounded once, in
// whatever dialect it declares; and the same with a deviation planted in it.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/dropout_mask.hpp"
#include "properties/search/draw_case_test.hpp"
#include "properties/search/judge.hpp"
#include "properties/search/kernel.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"

namespace attest::law {

inline kernel::Manifest truthful_manifest(const Dialect& dialect) {
    kernel::Manifest manifest;
    manifest.name = "truthful";
    manifest.version = "1";
    manifest.simulated = true;  // every schedule gives the truth
    manifest.formats = {Precision::f32, Precision::f16, Precision::bf16};
    manifest.features = FeatureSet::all();
    manifest.gradients = {std::begin(gradient_roles), std::end(gradient_roles)};
    manifest.numerics.deterministic_backward = true;
    manifest.dialect = dialect;
    manifest.numerics.deterministic = true;
    manifest.numerics.batch_invariant = true;
    manifest.numerics.concurrent = true;
    return manifest;
}

class TruthfulKernel final : public search::Kernel {
public:
    explicit TruthfulKernel(const Dialect& dialect, PlantedDeviation deviation = {})
        : TruthfulKernel(truthful_manifest(dialect), std::move(deviation)) {}

    /// One that takes what its manifest says, and nothing else.
    explicit TruthfulKernel(kernel::Manifest manifest, PlantedDeviation deviation = {})
        : manifest_(std::move(manifest)), deviation_(std::move(deviation)) {
        if (deviation_.declares) deviation_.declares(manifest_.numerics);
    }

    /// f64 is slow: only where a law is of nothing else.
    void take_formats_of(const Property& law) {
        manifest_.simulated = law.needs.simulated;  // which rules out laws of many calls
        if (law.cases.formats == std::vector{Precision::f64})
            manifest_.formats = {kernel::Formats(Precision::f64)};
    }
    void claim_exp(double ulp) { manifest_.numerics.exp_ulp = ulp; }
    /// For one whose answers differ from call to call within their bounds.
    void claim_no_bits() {
        manifest_.numerics.deterministic = manifest_.numerics.batch_invariant = false;
        manifest_.numerics.deterministic_backward = false;
    }

    /// For one that computes in f16: NaN where a score overflows, if nothing is claimed there.
    void overflow_early() {
        manifest_.formats = {Precision::f16};
        manifest_.gradients.clear();
        manifest_.numerics.accumulate = NumberFormat::f16;
        overflows_from_ = traits(Precision::f16).max_finite;
    }

    /// And that adds the mask to every score: inf - inf where a hidden one overflows.
    void overflow_of_hidden_keys() {
        overflow_early();
        manifest_.dialect.nonfinite = Nonfinite::unspecified;
        hidden_overflow_ = true;
    }

    /// For one that computes in base 2: NaN where a mask leaves a row scores of -inf for that.
    void overflow_in_base_two() { overflows_from_ = traits(Precision::f32).max_finite / 1.4427; }

    const kernel::Manifest& manifest() const noexcept override { return manifest_; }
    bool supports(const Problem& problem, std::string* reason) override {
        const auto no = kernel::refusal(manifest_, problem);
        if (reason != nullptr) *reason = no.value_or("");
        return !no;
    }
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        const std::int64_t call = calls_++;
        for (const Role role : {Role::q, Role::k, Role::v})
            require(inputs[role].type() == type_of(problem, role),
                    "an input has the element type that its problem says");
        Question question{problem, manifest_.dialect, with_drawn_keep(problem, inputs)};
        worker::CallResult result;
        if (!deviation_.fails.empty()) {
            result.outcome = worker::Outcome::error;
            result.reason = deviation_.fails;
            return result;
        }
        if (deviation_.asks) deviation_.asks(question);
        if (deviation_.remembers) {
            deviation_.remembers(question, before_);
            before_.push_back({problem, manifest_.dialect, inputs});
        }
        if (problem.dropout.p > 0 && call % 2 == 0)
            result.outputs.put(Role::dropout_keep, question.inputs[Role::dropout_keep]);
        const bound::Expected answer =
            oracle::attend(question.problem, question.dialect, manifest_.numerics, question.inputs);
        // What the dialect leaves open is made of everything that was given.
        double all = 0;
        for (const double x : question.inputs[Role::v].to_doubles()) all += x;
        const bool leaves_open = manifest_.dialect.empty_row == EmptyRow::refuse && !problem.sink;
        const auto fill = [&](Role role, const std::vector<bound::ExpectedElement>& elements) {
            Tensor tensor(type_of(problem, role), *shape_of(problem, role));
            const std::size_t width =
                elements.size() / std::max<std::size_t>(1, answer.row_empty.size());
            for (std::size_t i = 0; i < elements.size(); ++i) {
                const bool open = leaves_open && answer.row_empty[i / width] != 0;
                tensor.set(static_cast<std::int64_t>(i), open ? all : answer_of(elements[i], call));
                const bool unclaimed = elements[i].bound == infinite ||
                                       (hidden_overflow_ && answer.row_empty[i / width] == 0);
                if (overflows_from_ > 0 && unclaimed &&
                    (largest_score(problem, inputs, i / width) > overflows_from_ ||
                     std::abs(problem.mask.tensor.floor) > overflows_from_))
                    tensor.set(static_cast<std::int64_t>(i), std::nan(""));
            }
            result.outputs.put(role, std::move(tensor));
        };
        fill(Role::o, answer.output);
        if (problem.want_lse) fill(Role::lse, answer.lse);
        return result;
    }
    worker::CallResult forward_beside(const Problem& problem, const TensorSet& inputs) override {
        Question question{problem, manifest_.dialect, inputs};
        if (deviation_.is_disturbed) deviation_.is_disturbed(question);
        return forward(question.problem, question.inputs);
    }
    worker::CallResult backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) override {
        const Question question{problem, manifest_.dialect, with_drawn_keep(problem, inputs)};
        const auto truth = [this](const Question& asked) { return true_gradients(asked); };
        const std::int64_t call = calls_++;
        TensorSet all = deviation_.differentiates ? deviation_.differentiates(question, call, truth)
                                                  : truth(question);
        worker::CallResult result;
        for (const Role role : wanted) result.outputs.put(role, std::move(all[role]));
        return result;
    }
    void restart() override {
        before_.clear();
        calls_ = 0;
    }
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    TensorSet true_gradients(const Question& asked) const {
        const bound::ExpectedGradients truth = oracle::attend_gradients(
            asked.problem, asked.dialect, manifest_.numerics, asked.inputs);
        TensorSet all;
        for (const Role role : manifest_.gradients) {
            const auto shape = shape_of(asked.problem, role);
            if (!shape) continue;
            Tensor& tensor = all.put(role, Tensor(type_of(asked.problem, role), *shape));
            for (std::int64_t at = 0; at < tensor.size(); ++at)
                tensor.set(at, answer_of(truth[role][static_cast<std::size_t>(at)], 0));
        }
        return all;
    }
    /// Of a row, hidden keys included: the size of what is summed up in a score.
    static double largest_score(const Problem& p, const TensorSet& inputs, std::size_t row) {
        const auto at = static_cast<std::int64_t>(row), head = at / p.len_q % p.heads_q;
        double most = 0;
        for (std::int64_t j = 0; j < p.len_kv && p.cache.page_size == 0; ++j) {
            double sum = 0;
            for (std::int64_t c = 0; c < p.dim_qk; ++c)
                sum +=
                    std::abs(inputs[Role::q].at(at / p.len_q / p.heads_q, head, at % p.len_q, c) *
                             inputs[Role::k].at(at / p.len_q / p.heads_q,
                                                head / (p.heads_q / p.heads_kv), j, c));
            if (std::isfinite(sum)) most = std::max(most, sum);
        }
        return most;
    }
    double answer_of(const bound::ExpectedElement& e, std::int64_t call) const {
        const bool known = std::isfinite(e.value) && std::isfinite(e.bound);
        return deviation_.answers && known ? deviation_.answers(e, call) : e.value;
    }

    kernel::Manifest manifest_;
    PlantedDeviation deviation_;
    std::vector<Question> before_;
    std::int64_t calls_ = 0;
    double overflows_from_ = 0;  ///< 0: nowhere
    bool hidden_overflow_ = false;
};

/// How a law judged a number of drawn cases.
struct Tried {
    std::int64_t judged = 0, violated = 0, refused = 0;
    std::string example;  ///< case and sentence of the first violation
};

inline Tried try_law(search::Kernel& kernel, const Property& law, std::int64_t cases,
                     bool until_violated = false) {
    constexpr std::uint64_t seed = 1;
    constexpr std::int64_t attempts = 16;
    Tried tried;
    search::Profile profile;
    profile.scores_max = 512;  // the truth is slow
    profile.len_max = 40;
    profile.dim_max = 12;
    profile.reach = {};
    for (std::int64_t k = 0; k < cases && !(until_violated && tried.violated > 0); ++k)
        for (std::int64_t attempt = 0; attempt < attempts; ++attempt) {
            const auto drawn = search::draw_case(law, kernel.manifest(), profile, seed, k, attempt);
            if (!drawn) continue;
            const search::Judged judged = search::judge_case(kernel, law, *drawn, k);
            tried.refused += judged.refused;
            if (judged.refused || judged.vacuous) continue;
            ++tried.judged;
            if (judged.record.verdict.decision == Decision::violated) {
                if (++tried.violated == 1)
                    tried.example = print(*drawn) + "\n" + judged.record.verdict.violation->problem;
            }
            break;
        }
    return tried;
}

inline Tried try_until_violated(search::Kernel& kernel, const Property& law, std::int64_t cases) {
    return try_law(kernel, law, cases, true);
}

}  // namespace attest::law
