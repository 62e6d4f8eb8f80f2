#pragma once
// What a law sees, in two steps. Given: the problem, the inputs, what the kernel declares and
// takes, and the reference with its own certified error; from these alone follows whether the law
// applies (Plan). Trial: that, the outputs, and run(other) for a further run of the same kernel;
// from then on the law judges. A law never sees a kernel, so it cannot special-case one.

#include <cstdint>
#include <functional>
#include <variant>

#include "properties/law/verdict.hpp"
#include "reference/bound/error_budget.hpp"
#include "reference/bound/expected.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/feature.hpp"

namespace attest::law {

class Given {
public:
    virtual ~Given() = default;

    virtual const Case& tried() const = 0;  ///< the case being tried
    const Problem& problem() const { return tried().problem; }
    /// k and v as sequences [batch, heads_kv, len_kv, dim], also where the cache is paged; every
    /// other call here takes them so, too.
    virtual const TensorSet& inputs() const = 0;
    virtual const Dialect& dialect() const = 0;
    virtual const Numerics& numerics() const = 0;

    /// Whether run() on this problem would be refused; a law asks before it leaves the space its
    /// case was drawn from.
    virtual bool supports(const Problem& problem) const = 0;

    /// The reference for any problem and inputs, with its certified error and the bound of the
    /// declared numerics.
    virtual const bound::Expected& expected() const = 0;  ///< of the case itself
    virtual bound::Expected expected(const Problem& problem, const TensorSet& inputs) const = 0;
    /// Which gradients the kernel returns of a problem with want_grad, of d_q d_k d_v d_mask
    /// d_sinks d_slopes; none where it has no backward.
    virtual std::vector<Role> gradients_of(const Problem& problem) const = 0;
    /// Their reference; inputs hold d_o.
    virtual bound::ExpectedGradients expected_gradients(const Problem& problem,
                                                        const TensorSet& inputs) const = 0;
    /// What a correct kernel's errors are expected to be on average, for any problem.
    virtual bound::ErrorBudget error_budget(const Problem& problem,
                                            const TensorSet& inputs) const = 0;

    /// The law's own randomness: the same for the same case, whatever ran before. stream separates
    /// independent uses.
    std::uint64_t random_bits(std::uint64_t stream, std::uint64_t index) const;
    std::int64_t random_below(std::uint64_t stream, std::uint64_t index,
                              std::int64_t limit) const;  ///< [0, limit)
    double random_normal(std::uint64_t stream, std::uint64_t index) const;
};

class Trial : public Given {
public:
    /// The outputs of the case itself (run once, kept). o always; lse where the problem wants it.
    virtual const TensorSet& observed() const = 0;

    /// A further run of the same kernel in the same process. Where the kernel refuses, fails or
    /// dies, the law ends there and the runner makes the verdict, so laws need not handle it.
    virtual TensorSet run(const Problem& problem, const TensorSet& inputs) const = 0;

    /// As run(), in a fresh process: what the kernel answers when nothing came before. Dear; for
    /// telling a wrong answer from one that depends on earlier calls.
    virtual TensorSet run_alone(const Problem& problem, const TensorSet& inputs) const = 0;

    /// As run(), while another thread of that process calls the kernel.
    virtual TensorSet run_beside(const Problem& problem, const TensorSet& inputs) const = 0;

    /// A backward call; `inputs` hold d_o and what forward gave for them: o and, where the kernel
    /// returns one, lse. `wanted` are of gradients_of(problem).
    virtual TensorSet backward(const Problem& problem, const TensorSet& inputs,
                               const std::vector<Role>& wanted) const = 0;
    /// Judges every gradient there is, as compare() does.
    virtual Judgement compare_gradients(const Problem& problem, const TensorSet& inputs,
                                        const TensorSet& gradients) const = 0;
    /// The case's gradients against the structure that the kernel declared of them (rounding of P
    /// and dS), which it does for this problem; `inputs` are those of backward. As
    /// compare_structure().
    virtual Judgement compare_gradient_structure(const TensorSet& inputs,
                                                 const TensorSet& gradients) const = 0;

    /// Judges with escalation: an undecided element is recomputed in wider arithmetic, and a
    /// disagreement is confirmed in exact arithmetic, before either is reported. Compares every o
    /// (and lse where both have one).
    virtual Judgement compare(const Problem& problem, const TensorSet& inputs,
                              const TensorSet& observed) const = 0;

    /// The case's own outputs against the other bounds of reference/bound/README.md; neither
    /// escalates, an element that double leaves undecided counts as agreeing. Against the structure
    /// the kernel declared (tile, rounding of P), in whichever order of tiles fits; it declares one
    /// for this problem.
    virtual Judgement compare_structure() const = 0;
    /// Under the model of random roundings; `rate` is the chance that a correct kernel fails.
    virtual Judgement compare_probable(double rate) const = 0;
};

/// Of a law that makes a problem of its own of a case, which the kernel refuses.
NotApplicable not_taken(const Problem& problem);

/// What a law makes of a case before the kernel was asked anything: why it does not apply, or how
/// it judges.
using Judge = std::function<Judgement(const Trial&)>;
using Plan = std::variant<NotApplicable, Judge>;

/// The plan of a law that applies to every case it is drawn.
template <Judgement (*judge)(const Trial&)>
Plan always(const Given&) {
    return Judge(judge);
}

/// Ends a law early with the violation that explains why: the kernel crashed, hung, returned no
/// number, ...
struct Stopped {
    Judgement judgement;
};

}  // namespace attest::law
