#pragma once
// What a law says of one case, the verdict that is kept of it, and how verdicts merge.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/score_sample.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::law {

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
    /// Of this case, for the pool of all: as many as the problem says, whatever the kernel answers.
    Samples pool{};
};

/// Why there is no judgement. What follows from that (an exit code, what a resumed run does again)
/// hangs on the kind; the sentence is for people.
struct Reason {
    enum class Kind : std::uint8_t {
        none,            ///< there is a judgement
        law,             ///< the law's own
        not_in_profile,  ///< left out on purpose, like the next
        not_selected,
        interrupted,
        time_spent,
        always_dead,    ///< every case before ended without an answer to judge
        kernel_lacks,   ///< what the law needs, by its manifest or by what it takes
        machine_lacks,  ///< what the law needs: a second processor
        refused,
        none_judged,
        too_little,
        slow_once,  ///< what looked like a hang was none
        too_slow,   ///< it did not return within a limit that its own speed explains
        no_memory,  ///< the system had none left, and killed a kernel that held what it may
        flaky       ///< what failed did not fail again, whatever was tried
    };
    Kind kind = Kind::none;
    std::string text;

    Reason() = default;
    Reason(std::string its_own) : kind(Kind::law), text(std::move(its_own)) {}
    Reason(const char* its_own) : Reason(std::string(its_own)) {}
    Reason(Kind of, std::string says) : kind(of), text(std::move(says)) {}
    explicit Reason(Kind of);  ///< one whose sentence has no details

    bool on_purpose() const noexcept {
        return kind == Kind::not_in_profile || kind == Kind::not_selected;
    }
    /// No case was asked for.
    bool left_out() const noexcept {
        return on_purpose() || kind == Kind::kernel_lacks || kind == Kind::machine_lacks;
    }
};
std::string_view name(Reason::Kind kind) noexcept;

struct Verdict {
    Decision decision = Decision::inconclusive;
    Reason reason;              ///< required unless holds or violated
    double worst_ratio = 0;     ///< of bound laws
    std::int64_t elements = 0;  ///< compared; a verdict that compared nothing is never holds
    std::int64_t undecided = 0;
    std::optional<Violation> violation;
    std::optional<Statistic> statistic;
    std::optional<Statistic> pooled;  ///< of a law: of its cases together
    /// A violation of a class that does not fail here: the law holds, and this is told beside it.
    std::optional<Violation> doubt;
};

/// What a law says once the kernel was asked. That it does not apply cannot be said here: that is
/// decided before (Plan, trial.hpp), from the problem and the reference alone.
struct Judgement {
    std::int64_t elements = 0;  ///< compared
    std::int64_t undecided = 0;
    double worst_ratio = 0;
    std::optional<Violation> violation{};
    std::optional<Statistic> statistic{};
    std::string
        open{};  ///< why there is no answer; of one that compared something: by the reference

    bool violated() const noexcept { return violation.has_value(); }
    bool compared_nothing() const noexcept { return elements == 0 && undecided == 0 && !violation; }
    /// Violated, inconclusive where it is open or compared nothing, or holds.
    operator Verdict() const;
};
Judgement holds(std::int64_t elements, double worst_ratio = 0);
Judgement violated(Violation violation, std::int64_t elements = 1);
Judgement nothing_compared(std::string why);

/// The sums of counts, the larger ratio, the first violation; of two that compared nothing the
/// first reason.
Judgement merge(Judgement a, const Judgement& b);

/// Why a law says nothing of a case.
struct NotApplicable {
    Reason reason;
    operator Verdict() const;
};
inline NotApplicable not_applicable(Reason reason) {
    return {std::move(reason)};
}
Verdict inconclusive(Reason reason);
Verdict not_run(Reason reason);

/// A violation of a class outside `fails` (names of ViolationClass) becomes a doubt; anything else
/// stays as it is.
Verdict graded(Verdict verdict, std::span<const std::string> fails);

/// Worst first; sums the counts, keeps the largest ratio (a NaN ratio is the largest), the first
/// violation and the first doubt of the worst class.
Verdict merge(Verdict a, const Verdict& b);

}  // namespace attest::law
