#pragma once
// A kernel that computes whatever it is told to, and calls on which every known deviation shows.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "properties/diagnosis/diagnose.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

using Answer = std::function<bound::Expected(const Specification&, const bound::Expected& truth)>;

// A kernel made of the reference itself, or of one deviation of it, rounded to the output's format.
class Actor : public search::Kernel {
public:
    explicit Actor(Answer answer, const Dialect& dialect = {}) : answer_(std::move(answer)) {
        manifest_.name = "actor";
        manifest_.dialect = dialect;
        manifest_.formats = {Precision::f32};
        manifest_.numerics.weights = NumberFormat::f32;
    }
    const kernel::Manifest& manifest() const noexcept override { return manifest_; }
    void declare(const Numerics& numerics) { manifest_.numerics = numerics; }
    bool supports(const Problem&, std::string*) override { return true; }
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        const Specification s{problem, manifest_.dialect, manifest_.numerics, inputs};
        const bound::Expected truth = oracle::attend(problem, s.dialect, s.numerics, inputs);
        const bound::Expected own = answer_(s, truth);
        worker::CallResult result;
        Tensor& o =
            result.outputs.put(Role::o, Tensor(element_type(problem.format_o), truth.output_shape));
        for (std::int64_t n = 0; n < o.size(); ++n)
            o.set(n, (own.output.empty() ? truth : own).output[static_cast<std::size_t>(n)].value);
        Tensor& lse = result.outputs.put(
            Role::lse, Tensor(type_of(problem, Role::lse),
                              {problem.batch, problem.heads_q, problem.len_q, 1}));
        for (std::int64_t n = 0; n < lse.size(); ++n)
            lse.set(n, (own.lse.empty() ? truth : own).lse[static_cast<std::size_t>(n)].value);
        return result;
    }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    Answer answer_;
    kernel::Manifest manifest_;
};

/// An answer made row by row of the scores: `row` is given those, their largest and the value of
/// each key in one channel, and returns the output and the sum it was divided by.
struct RowAnswer {
    double output = 0, sum = 0;
};
using RowAnswerOf = std::function<RowAnswer(const std::vector<double>& below_largest,
                                            const std::vector<double>& values)>;

/// Of calls without masks, in which every query sees every key.
inline Answer row_by_row(RowAnswerOf row) {
    return [row = std::move(row)](const Specification& s, const bound::Expected& truth) {
        bound::Expected own = truth;
        const Problem& p = s.problem;
        const auto rows = oracle::row_details(p, s.dialect, s.inputs);
        const std::int64_t dim = value_dim(p);
        for (std::int64_t n = 0; n < static_cast<std::int64_t>(own.output.size()); ++n) {
            const std::int64_t flat = n / dim, head = flat / p.len_q % p.heads_q;
            const oracle::RowDetail& of = rows[static_cast<std::size_t>(flat)];
            std::vector<double> below, values;
            for (std::int64_t j = 0; j < p.len_kv; ++j) {
                below.push_back(of.scores[static_cast<std::size_t>(j)] - of.max);
                values.push_back(s.inputs[Role::v].at(flat / p.len_q / p.heads_q,
                                                      head / group_size(p), j, n % dim));
            }
            const RowAnswer answer = row(below, values);
            own.output[static_cast<std::size_t>(n)].value = answer.output;
            own.lse[static_cast<std::size_t>(flat)].value = of.max + std::log(answer.sum);
        }
        return own;
    };
}

/// Weights that are this function of how far a score lies below the largest.
inline Answer weighing(double (*weight)(double below)) {
    return row_by_row(
        [weight](const std::vector<double>& below, const std::vector<double>& values) {
            RowAnswer answer;
            for (std::size_t j = 0; j < below.size(); ++j) {
                answer.sum += weight(below[j]);
                answer.output += weight(below[j]) * values[j];
            }
            answer.output /= answer.sum;
            return answer;
        });
}

inline std::vector<Case> read_stages() {
    std::vector<Case> list;
    for (const char* line : {
             "b2 hq6 hkv2 tq5 tk7 d6 causal f32",
             "b2 hq4 hkv2 tq7 tk5 d6 causal f32",
             "b1 hq2 hkv2 tq9 tk9 d4 window 3 1 f32",
             "b1 hq2 hkv2 tq9 tk12 d4 causal window 3 -1 f32",
             "b2 hq2 hkv2 tq4 tk6 d4 mask bool f32",
             "b2 hq2 hkv2 tq4 tk6 d4 mask additive f32",
             "b2 hq2 hkv2 tq4 tk6 d4 lens_kv 3,5 f32",
             "b2 hq2 hkv2 tq4 tk6 d4 lens_q 2,3 f32",
             "b1 hq2 hkv2 tq6 tk6 d4 docs_q 2,4 docs_kv 3,3 f32",
             "b1 hq6 hkv2 tq3 tk3 d13 scale 0.5 f32",
             "b1 hq3 hkv3 tq3 tk5 d13 dv7 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 softcap 0.5 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 softcap 0.5 mask additive f32",
             "b1 hq2 hkv2 tq5 tk5 d4 softcap 0.5 mask additive alibi f32",
             "b1 hq2 hkv2 tq3 tk5 d4 sink f32",
             "b1 hq4 hkv4 tq5 tk5 d4 alibi f32",
             "b1 hq2 hkv2 tq5 tk5 d8 rope half base 100 dims 4 f32",
             "b1 hq2 hkv2 tq2 tk6 d8 rope half cache 4 f32",
             "b1 hq2 hkv2 tq2 tk6 d8 rope half cache 4 rotated f32",
             "b1 hq2 hkv2 tq6 tk6 d4 docs_q 2,4 docs_kv 2,4 rope half f32",
             "b1 hq2 hkv2 tq3 tk7 d4 splits 2 f32",
             "b1 hq2 hkv2 tq3 tk7 d4 mask additive splits 2 f32",
             "b1 hq1 hkv1 tq3 tk5 d4 softcap 0.5 f32 values logit1e3",
             "b1 hq1 hkv1 tq3 tk33 d4 f32",
             "b1 hq1 hkv1 tq3 tk300 d4 f32",
             "b1 hq6 hkv6 tq4 tk4 d4 f32",
             "b1 hq1 hkv1 tq2 tk2 d1 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 causal softcap 0.5 f32",
             "b1 hq2 hkv2 tq3 tk7 d4 splits 2 sink f32",
             "b1 hq2 hkv2 tq9 tk2 d4 f32 values logit1e4",
             "b1 hq2 hkv2 tq3 tk5 d4 f32 values tiny",
             "b1 hq1 hkv1 tq2 tk248 d1 scale 0.0008 f32 q ones k steep v index",
             "b1 hq2 hkv2 tq3 tk300 d4 sink f32",
             "b1 hq2 hkv2 tq2 tk6 d4 alibi cache 4 f32",
             "b1 hq4 hkv2 tq5 tk5 d4 alibi f32",
             "b1 hq2 hkv2 tq2 tk6 d4 alibi splits 2 cache 4 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 bf16",
             "b1 hq4 hkv2 tq3 tk5 d4 sink f32",
             "b1 hq2 hkv2 tq3 tk5 d4 scale 0.3 bf16",
             "b1 hq4 hkv4 tq5 tk5 d4 alibi slopes random f32",
             "b1 hq4 hkv2 tq5 tk5 d4 mask bool f32",
             "b1 hq4 hkv2 tq9 tk2 d4 sink f32 values logit1e4",
             "b2 hq2 hkv2 tq6 tk6 d4 causal mask bool f32",
             "b2 hq4 hkv2 tq4 tk7 d4 window 2 1 lens_kv 3,7 f32",
             "b2 hq2 hkv2 tq2 tk5 d4 cache 3 page 2 f32",
             "b3 hq2 hkv1 tq1 tk7 d4 lens_kv 7,3,5 cache 6 page 3 f32",
             "b1 hq2 hkv2 tq1 tk40 d4 cache 39 page 4 f32",
             "b1 hq2 hkv2 tq2 tk300 d4 cache 298 page 64 f32",
             "b2 hq2 hkv2 tq2 tk9 d4 causal window 3 -1 cache 7 ring f32",
             "b1 hq2 hkv2 tq2 tk9 d4 causal window 3 -1 rope half cache 7 ring f32",
             "b2 hq2 hkv2 tq4 tk9 d4 causal window 3 -1 lens_kv 5,9 f32",
             "b2 hq2 hkv2 tq2 tk9 d8 rope half dims 4 offset 5 cache 7 page 4 f32",
             "b1 hq6 hkv6 tq5 tk5 d4 alibi slopes random f32",
             "b1 hq2 hkv2 tq3 tk5 d4 sink softcap 0.5 f32",
             "b1 hq2 hkv2 tq3 tk90 d4 splits 2 f32",
             "b1 hq2 hkv2 tq9 tk9 d4 window 2 -1 f32",
             "b2 hq2 hkv2 tq3 tk6 d8 rope half alibi lens_q 1,3 cache 3 f32",
             "b1 hq2 hkv2 tq5 tk5 d8 rope interleaved f32",
             "b1 hq3 hkv3 tq3 tk5 d4 dv7 f32",
             "b2 hq2 hkv2 tq3 tk6 d4 lens_kv 0,6 f32",
             "b1 hq2 hkv2 tq3 tk5 d4 scale 1e9 f16 values tiny",
             "b1 hq1 hkv1 tq1 tk3 d1 dv3 scale 30000 f16 q [3.0517578125e-05] k index v index",
         }) {
        list.push_back(parse_case(line));
    }
    return list;
}

inline const std::vector<Case>& stages() {
    static const std::vector<Case> list = read_stages();
    return list;
}

inline Diagnosis diagnosed_by(search::Kernel& kernel, const char* line) {
    search::Counterexample c;
    c.law = "reference.output";
    c.smallest = c.found.tried = parse_case(line);
    return diagnose(kernel, c, {});
}

inline Diagnosis diagnosed_of(Answer answer, const char* line) {
    Actor actor(std::move(answer));
    return diagnosed_by(actor, line);
}

/// What a kernel that computes this one of `all` is taken for.
inline std::string played(const std::vector<Deviation>& all, const char* id, const char* line) {
    const auto own = std::ranges::find(all, id, &Deviation::id);
    if (own == all.end()) return "no such deviation";
    const auto answer = [own](const Specification& s, const bound::Expected& truth) {
        return predict(*own, s, truth).value_or(truth);
    };
    Actor actor(answer);
    if (parse_case(line).problem.format_q == Precision::f64) actor.declare({});
    return diagnosed_by(actor, line).id;
}

}  // namespace attest::diagnosis
