#pragma once
// For the tests of the law families: a kernel in this process that answers with the truth, rounded
// once, in whatever dialect it declares; and the same with its question twisted first.

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "properties/search/campaign.hpp"
#include "properties/search/judge.hpp"
#include "properties/search/subject.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::testing {

/// An admissible answer to one element: `value` before the last rounding, within its bound.
using Slip = std::function<double(const ExpectedElement&)>;

/// What the kernel answers instead of what it was asked.
struct Question {
    Problem problem;
    Dialect dialect;
    TensorSet inputs;
};
using Twist = std::function<void(Question&)>;

inline Manifest truthful_manifest(const Dialect& dialect) {
    Manifest manifest;
    manifest.name = "truthful";
    manifest.version = "1";
    manifest.simulated = true;  // every schedule gives the truth
    manifest.formats = {Precision::f32, Precision::f16, Precision::bf16};
    manifest.features_declared = true;
    manifest.features = FeatureSet::all().without(Feature::dropout);
    manifest.dialect = dialect;
    manifest.numerics.deterministic = true;
    manifest.numerics.batch_invariant = true;
    return manifest;
}

class TruthfulKernel final : public Subject {
public:
    explicit TruthfulKernel(const Dialect& dialect, Twist twist = nullptr, Slip slip = nullptr)
        : manifest_(truthful_manifest(dialect)), twist_(std::move(twist)), slip_(std::move(slip)) {
        // Who slips as it pleases claims neither.
        if (slip_) manifest_.numerics.deterministic = manifest_.numerics.batch_invariant = false;
    }

    /// Declares an online softmax over tiles, which rounds its weights: not what the truth is.
    void claim_tile(std::int64_t keys) { manifest_.numerics.tile = keys; }
    void claim_exp(double ulp) { manifest_.numerics.exp_ulp = ulp; }

    const Manifest& manifest() const noexcept override { return manifest_; }
    bool supports(const Problem&, std::string* reason) override {
        if (reason != nullptr) reason->clear();
        return true;
    }
    CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        Question question{problem, manifest_.dialect, inputs};
        if (twist_) twist_(question);
        const Expected answer =
            attend(question.problem, question.dialect, manifest_.numerics, question.inputs);
        CallResult result;
        const auto fill = [&](Role role, const std::vector<ExpectedElement>& elements) {
            Tensor tensor(type_of(problem, role), *shape_of(problem, role));
            for (std::int64_t i = 0; i < tensor.size(); ++i)
                tensor.set(i, answer_of(elements[static_cast<std::size_t>(i)]));
            result.outputs.put(role, std::move(tensor));
        };
        fill(Role::o, answer.output);
        if (problem.want_lse) fill(Role::lse, answer.lse);
        return result;
    }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    double answer_of(const ExpectedElement& e) const {
        return slip_ && std::isfinite(e.value) && std::isfinite(e.bound) ? slip_(e) : e.value;
    }

    Manifest manifest_;
    Twist twist_;
    Slip slip_;
};

/// How a law judged a number of drawn cases.
struct Tried {
    std::int64_t judged = 0, violated = 0;
    std::string example;  ///< case and sentence of the first violation
};

inline Tried try_law(Subject& kernel, const Property& law, std::int64_t cases,
                     std::uint64_t seed = 1) {
    constexpr std::int64_t attempts = 16;
    Tried tried;
    Profile profile;
    profile.scores_max = 512;  // the truth is slow
    profile.len_max = 40;
    profile.dim_max = 12;
    for (std::int64_t k = 0; k < cases; ++k)
        for (std::int64_t attempt = 0; attempt < attempts; ++attempt) {
            const auto subject = draw_case(law, kernel.manifest(), profile, seed, k, attempt);
            if (!subject) continue;
            const Judged judged = judge_case(kernel, law, *subject, k);
            if (judged.refused || judged.vacuous) continue;
            ++tried.judged;
            if (judged.record.verdict.decision == Decision::violated) {
                if (++tried.violated == 1)
                    tried.example =
                        print(*subject) + "\n" + judged.record.verdict.violation->problem;
            }
            break;
        }
    return tried;
}

}  // namespace attest::testing
