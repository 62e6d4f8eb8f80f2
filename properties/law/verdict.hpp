#pragma once
// The verdict of one law on one case, and how verdicts merge.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/problem/tensor.hpp"

namespace attest {

/// Ordered best to worst for merging; not_applicable and not_run merge as the identity.
enum class Decision : std::uint8_t { not_applicable, not_run, holds, inconclusive, violated };
std::string_view name(Decision decision) noexcept;

/// How a law reaches its verdict; picks what reports draw.
enum class Compares : std::uint8_t { bound, bits, statistic, property };
std::string_view name(Compares compares) noexcept;

/// What the number called bound is in a violation.
enum class BoundKind : std::uint8_t { derived, exact, bits, statistic, declared };
std::string_view name(BoundKind kind) noexcept;

/// Classes (reference/bound/README.md, Classes of verdict), never merged into one tolerance. A
/// profile says which of them fail.
enum class ViolationClass : std::uint8_t { violation, structure, suspect };
std::string_view name(ViolationClass c) noexcept;

/// One violated element: where, and what was expected.
struct Violation {
    std::string problem;  ///< the sentence: "query 0 reads key 0, which the causal mask hides"
    Role tensor = Role::o;
    std::vector<std::int64_t> index;  ///< logical
    std::string element_name;         ///< "output of query 0"
    double expected = 0, observed = 0, bound = 0;
    BoundKind bound_kind = BoundKind::derived;
    ViolationClass violation_class = ViolationClass::violation;
    double ratio = 0;  ///< error/bound; infinite where the bound is exact
};

struct Statistic {
    std::string name;
    double value = 0, threshold = 0, false_positive_rate = 0;
    std::int64_t samples = 0;
};

struct Verdict {
    Decision decision = Decision::inconclusive;
    std::string reason;         ///< required unless holds or violated
    double worst_ratio = 0;     ///< of bound laws
    std::int64_t elements = 0;  ///< compared; a verdict that compared nothing is never holds
    std::int64_t undecided = 0;
    std::optional<Violation> violation;
    std::optional<Statistic> statistic;
    /// A violation of a class that does not fail here: the law holds, and this is told beside it.
    std::optional<Violation> doubt;
};

/// holds(elements, ratio): inconclusive instead if no element was compared.
Verdict holds(std::int64_t elements, double worst_ratio = 0);
Verdict violated(Violation violation, std::int64_t elements = 1);
Verdict inconclusive(std::string reason);
Verdict not_applicable(std::string reason);

/// A violation of a class outside `fails` (names of ViolationClass) becomes a doubt; anything else
/// stays as it is.
Verdict graded(Verdict verdict, std::span<const std::string> fails);

/// Worst first; sums the counts, keeps the largest ratio (a NaN ratio is the largest), the first
/// violation and the first doubt.
Verdict merge(Verdict a, const Verdict& b);

}  // namespace attest
