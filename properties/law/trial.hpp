#pragma once
// What a law sees: the problem, the inputs, the observed outputs, run(other) for a further run of
// the same kernel, expected() for the reference with its own certified error. A law never sees a
// kernel, so it cannot special-case one.

#include <cstdint>
#include <string>

#include "properties/law/verdict.hpp"
#include "reference/bound/error_budget.hpp"
#include "reference/bound/expected.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/feature.hpp"

namespace attest::law {

class Trial {
public:
    virtual ~Trial() = default;

    virtual const Case& tried() const = 0;  ///< the case being tried
    const Problem& problem() const { return tried().problem; }
    /// k and v as sequences [batch, heads_kv, len_kv, dim], also where the cache is paged; every
    /// other call here takes them so, too.
    virtual const TensorSet& inputs() const = 0;
    virtual const Dialect& dialect() const = 0;
    virtual const Numerics& numerics() const = 0;

    /// The outputs of the case itself (run once, kept). o always; lse where the kernel returned
    /// one.
    virtual const TensorSet& observed() const = 0;

    /// A further run of the same kernel in the same process. Throws Stopped where the kernel
    /// refuses, fails or dies: the law ends there and the runner makes the verdict, so laws need
    /// not handle it.
    virtual TensorSet run(const Problem& problem, const TensorSet& inputs) const = 0;

    /// As run(), in a fresh process: what the kernel answers when nothing came before. Dear; for
    /// telling a wrong answer from one that depends on earlier calls.
    virtual TensorSet run_alone(const Problem& problem, const TensorSet& inputs) const = 0;

    /// Whether run() on this problem would be refused; a law asks before it leaves the space its
    /// case was drawn from.
    virtual bool supports(const Problem& problem) const = 0;

    /// The reference for any problem and inputs, with its certified error and the bound of the
    /// declared numerics.
    virtual const bound::Expected& expected() const = 0;  ///< of the case itself
    virtual bound::Expected expected(const Problem& problem, const TensorSet& inputs) const = 0;

    /// Judges with escalation: an undecided element is recomputed in wider arithmetic, and a
    /// disagreement is confirmed in exact arithmetic, before either is reported. Compares every o
    /// (and lse where both have one).
    virtual Verdict compare(const Problem& problem, const TensorSet& inputs,
                            const TensorSet& observed) const = 0;

    /// The case's own outputs against the other bounds of reference/bound/README.md; neither
    /// escalates, an element that double leaves undecided counts as agreeing. Against the structure
    /// the kernel declared (tile, rounding of P), in whichever order of tiles fits; not_applicable
    /// where it declared none.
    virtual Verdict compare_structure() const = 0;
    /// Under the model of random roundings; `rate` is the chance that a correct kernel fails.
    virtual Verdict compare_probable(double rate) const = 0;
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

/// Ends a law early with the verdict that explains why: the kernel refused, crashed, hung, ...; or
/// the case is none that the law can do its work on.
struct Stopped {
    Verdict verdict;
};

}  // namespace attest::law
