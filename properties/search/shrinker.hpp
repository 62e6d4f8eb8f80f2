#pragma once
// Makes a failing case small: passes of moves to a fixpoint, simpler data, and then a sweep over
// all cases smaller still, in the order of size. The passes get near the smallest case quickly; the
// sweep makes it one, so that a defect has one smallest case whatever case it was found by.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "properties/search/capability.hpp"
#include "properties/search/counterexample.hpp"
#include "properties/search/shrink_moves.hpp"
#include "properties/search/size_order.hpp"

namespace attest::search {

/// The failure as it was found, not shrunk and not confirmed.
Counterexample counterexample_of(const law::Property& property, const CaseRecord& record);

struct ShrinkLimits {
    std::int64_t evaluations = 2'000;
    std::optional<std::chrono::steady_clock::time_point> deadline;
    /// Time limit of a call of the confirmation; unset: the kernel's as it is.
    std::optional<std::chrono::milliseconds> confirm_timeout;
    bool fresh = false;  ///< each candidate in a process of its own: slow, and free of the past
};

class Shrinker {
public:
    using Tell = std::function<void(std::int64_t evaluation, const Case&)>;

    Shrinker(Kernel& kernel, const law::Property& property, const Capability& capability,
             const ShrinkLimits& limits, Tell tell);

    /// The smallest case that fails as `found` did. Where `found` does not fail again, in this
    /// process nor in a fresh one, it is returned as it is, unconfirmed.
    Counterexample shrink(const CaseRecord& found);

private:
    bool open() const;
    bool fails(const Case& candidate, const std::string& line);
    Judged judge(const Case& candidate);
    bool fails_again();
    void look_whether_steady(const Judged& first);
    bool dear() const;
    bool confirmed();
    bool attempt(Case candidate, const char* pass, const std::string& change);
    void accept(const Case& candidate, SizeKey key, const char* pass, const std::string& change);

    bool to_the_floor();
    bool features();
    bool turn(const Parameter& parameter);
    bool turn_to(const Parameter& parameter, std::int64_t value, const char* pass);
    bool turn_all();
    bool simpler_data();
    bool move_with_data();
    bool try_data(const Case& moved, Share share, const std::string& change);
    bool sweep();
    bool write_out();
    void passes();

    Kernel& kernel_;
    const law::Property& property_;
    const Capability& capability_;
    ShrinkLimits limits_;
    Tell tell_;
    FailureKind kind_;
    bool depends_on_placement_ = false, unsteady_ = false;
    CaseRecord best_;
    SizeKey best_key_;
    Counterexample result_;
    std::unordered_map<std::string, bool> memo_;
};

/// The shapes and dimensions a sweep goes through, in order of size: those of `problem` with batch,
/// heads, lengths and dimensions from a fixed small grid and the product of scores below its own.
std::vector<Problem> smaller_shapes(const Problem& problem);

/// Cases with one tensor written out a step simpler than it is: rounded, zeroed, or one number
/// nearer to zero. Empty where the tensors are too large to be read.
std::vector<Case> written_out(const Case& c);

}  // namespace attest::search
