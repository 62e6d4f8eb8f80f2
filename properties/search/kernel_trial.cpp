#include "properties/search/kernel_trial.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "properties/law/dropout_mask.hpp"
#include "properties/search/compare.hpp"
#include "reference/oracle/long_context.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/other_bounds.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

/// What one comparison may cost: a tenth of a second of the filtered oracle. Cases that are not of
/// long contexts are far below it.
constexpr double products_max = 0x1p30;

/// A kernel's own words may be of any length.
std::string quoted(const std::string& text) {
    constexpr std::size_t shown_max = 300;
    return text.size() <= shown_max ? text : text.substr(0, shown_max) + " ...";
}

/// A failure that is no element's: expected and observed say only "nothing" and "something".
law::Judgement failed_call(std::string sentence, const std::optional<worker::Fault>& fault) {
    law::Violation violation;
    violation.problem = std::move(sentence);
    violation.tensor = fault && fault->tensor ? *fault->tensor : Role::o;
    violation.bound_kind = law::BoundKind::exact;
    violation.ratio = infinite;
    return law::violated(std::move(violation));
}

std::string with_sentence(const char* what, const worker::CallResult& result) {
    // What ended itself says so, and did not crash.
    if (result.fault && result.fault->kind == worker::Fault::Kind::exit_called)
        return "the kernel " + result.fault->sentence;
    if (result.fault && !result.fault->sentence.empty())
        return std::string(what) + ": " + result.fault->sentence;
    return result.reason.empty() ? what : std::string(what) + ": " + quoted(result.reason);
}

/// The fault's own sentence, where there is one.
std::string as_sentence(const char* did, const worker::CallResult& result) {
    const bool told = result.fault && !result.fault->sentence.empty();
    return std::string("the kernel ") + (told ? result.fault->sentence : did);
}

std::vector<std::int64_t> unravel(const Shape& shape, std::int64_t flat, std::size_t axes) {
    std::vector<std::int64_t> index(axes);
    for (std::size_t axis = axes; axis-- > 0;) {
        index[axis] = shape[axis] > 0 ? flat % shape[axis] : 0;
        flat = shape[axis] > 0 ? flat / shape[axis] : 0;
    }
    return index;
}

/// SplitMix64's mixing of the words of all bytes, behind `hash`. It finds a bit that differs, and
/// keeps no forger out.
std::uint64_t hash_of(const TensorSet& outputs, std::uint64_t hash) {
    const auto mix = [&](std::uint64_t word) {
        hash += word + 0x9e3779b97f4a7c15u;
        hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
        hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
        hash ^= hash >> 31;
    };
    for (std::size_t n = 0; n < role_count; ++n) {
        const auto role = static_cast<Role>(n);
        if (!outputs.has(role)) continue;
        const std::span<const std::byte> bytes = outputs[role].bytes();
        mix(n);
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
            mix(word);
        }
    }
    return hash;
}

law::Judgement unwritten(const Problem& problem, const worker::CallResult& result) {
    law::Judgement judgement = failed_call(
        "an element of " + std::string(name(result.unwritten_role)) + " was never written",
        std::nullopt);
    law::Violation& violation = *judgement.violation;
    violation.tensor = result.unwritten_role;
    // Whatever number was to stand there.
    violation.expected = violation.observed = std::numeric_limits<double>::quiet_NaN();
    if (const auto shape = shape_of(problem, result.unwritten_role))
        violation.index =
            unravel(*shape, result.unwritten_index, result.unwritten_role == Role::lse ? 3 : 4);
    return judgement;
}

/// Who declares a log-sum-exp returns one: left out, the laws of it would have nothing to compare.
worker::CallResult held_to_promise(const kernel::Manifest& manifest, const Problem& problem,
                                   worker::CallResult result) {
    const bool promised = manifest.features.has(Feature::lse) && problem.want_lse;
    if (promised && result.outcome == worker::Outcome::ok && !result.outputs_unwritten &&
        !result.outputs.has(Role::lse)) {
        result.outputs_unwritten = true;
        result.unwritten_role = Role::lse;
        result.unwritten_index = 0;
    }
    return result;
}

}  // namespace

/// Unwritten outputs stop every law: they are reported as what they are, not as the wrong number
/// the poison would look like.
std::optional<law::Verdict> verdict_of_call(const Problem& problem,
                                            const worker::CallResult& result) {
    switch (result.outcome) {
        case worker::Outcome::ok:
            break;
        case worker::Outcome::refused:
            return law::not_applicable(
                {law::Reason::Kind::refused,
                 "the kernel refuses `" + print(problem) + "`: " + quoted(result.reason)});
        case worker::Outcome::error:
            return failed_call(with_sentence("the kernel returned an error", result), result.fault);
        case worker::Outcome::crash:
            return failed_call(with_sentence("the kernel crashed", result), result.fault);
        case worker::Outcome::hang:
            return failed_call(as_sentence("did not return", result), result.fault);
        case worker::Outcome::memory:
            return failed_call(as_sentence("ran out of memory", result), result.fault);
        case worker::Outcome::slow:
            return law::inconclusive({law::Reason::Kind::too_slow, quoted(result.reason)});
        case worker::Outcome::no_memory:
            return law::inconclusive(law::Reason(law::Reason::Kind::no_memory));
    }
    if (result.fault) return failed_call("the kernel " + result.fault->sentence, result.fault);
    if (result.outputs_unwritten) return unwritten(problem, result);
    return std::nullopt;
}

KernelTrial::KernelTrial(Kernel& kernel, const Case& tried)
    : kernel_(kernel), tried_(tried), inputs_(make_inputs(tried)) {}

const TensorSet& KernelTrial::observed() const {
    if (!observed_) observed_ = run(problem(), inputs_);
    return *observed_;
}

TensorSet KernelTrial::run(const Problem& problem, const TensorSet& inputs) const {
    TensorSet outputs = outputs_of(
        problem, held_to_promise(kernel_.manifest(), problem, kernel_.forward(problem, inputs)));
    require(outputs.has(Role::o), "a call that ended well returns o");
    return outputs;
}

TensorSet KernelTrial::outputs_of(const Problem& problem, worker::CallResult result) const {
    if (!result.printed.empty()) account_.printed = result.printed;
    if (auto verdict = verdict_of_call(problem, result)) {
        keep(result);
        throw NoAnswer{std::move(*verdict)};
    }
    account_.largest.cover(sizes_of(problem));
    account_.outputs = hash_of(result.outputs, account_.outputs);
    return std::move(result.outputs);
}

void KernelTrial::keep(const worker::CallResult& result) const {
    account_.outcome = result.outcome;
    account_.fault = result.fault;
}

TensorSet KernelTrial::run_alone(const Problem& problem, const TensorSet& inputs) const {
    kernel_.restart();
    return run(problem, inputs);
}

TensorSet KernelTrial::run_beside(const Problem& problem, const TensorSet& inputs) const {
    return outputs_of(problem, held_to_promise(kernel_.manifest(), problem,
                                               kernel_.forward_beside(problem, inputs)));
}

/// What is no problem, or what the manifest rules out, is not asked: a kernel without a careful
/// supports() would say yes to it and answer something else.
bool KernelTrial::supports(const Problem& problem) const {
    if (find_contradiction(problem) || kernel::refusal(kernel_.manifest(), problem)) return false;
    std::string reason;
    try {
        return kernel_.supports(problem, &reason);
    } catch (const worker::KernelDied& died) {
        keep(died.result);
        throw NoAnswer{verdict_of_call(problem, died.result).value()};
    }
}

const bound::Expected& KernelTrial::expected() const {
    if (!expected_) expected_ = oracle::attend(problem(), dialect(), numerics(), inputs_);
    return *expected_;
}

bool KernelTrial::is_tried(const Problem& problem, const TensorSet& inputs) const {
    return problem == this->problem() && (&inputs == &inputs_ || inputs == inputs_);
}

bound::Expected KernelTrial::expected(const Problem& problem, const TensorSet& inputs) const {
    if (is_tried(problem, inputs)) return expected();
    return oracle::attend(problem, dialect(), numerics(), inputs);
}

law::Judgement KernelTrial::compare(const Problem& problem, const TensorSet& inputs,
                                    const TensorSet& observed) const {
    const Comparison comparison{problem, dialect(), numerics(), inputs, observed};
    if (expected_ && is_tried(problem, inputs)) return compare_with(comparison, *expected_);
    return compare_with(
        comparison, oracle::attend_affordable(problem, dialect(), numerics(), inputs, products_max,
                                              tried().values.seed));
}

law::Judgement KernelTrial::compare_structure() const {
    const Comparison comparison{problem(), dialect(), numerics(), inputs_, observed()};
    law::Judgement judgement;
    for (const bound::TileOrder order :
         {bound::TileOrder::ascending, bound::TileOrder::descending}) {
        const auto expected =
            oracle::attend_structure(problem(), dialect(), numerics(), inputs_, order);
        require(expected.has_value(), "only a declared structure is asked for");
        law::Judgement one = compare_as(comparison, *expected, law::ViolationClass::structure);
        if (order == bound::TileOrder::ascending || !one.violated()) judgement = std::move(one);
        if (!judgement.violated()) break;
    }
    return judgement;
}

law::Judgement KernelTrial::compare_probable(double rate) const {
    const Comparison comparison{problem(), dialect(), numerics(), inputs_, observed()};
    const auto elements = std::max<std::int64_t>(observed()[Role::o].size(), 1);
    const bound::Expected probable = oracle::attend_probable(
        problem(), dialect(), numerics(), inputs_, rate / static_cast<double>(elements));
    return compare_as(comparison, probable, law::ViolationClass::suspect);
}

bound::ErrorBudget KernelTrial::error_budget(const Problem& problem,
                                             const TensorSet& inputs) const {
    return oracle::attend_budget(problem, dialect(), numerics(), inputs);
}

TensorSet TruthTrial::run(const Problem& problem, const TensorSet& inputs) const {
    const bound::Expected truth = given_.expected(problem, law::with_drawn_keep(problem, inputs));
    TensorSet outputs;
    const auto fill = [&](Role role, const std::vector<bound::ExpectedElement>& elements) {
        Tensor tensor(type_of(problem, role), *shape_of(problem, role));
        for (std::int64_t i = 0; i < tensor.size(); ++i)
            tensor.set(i, elements[static_cast<std::size_t>(i)].value);
        outputs.put(role, std::move(tensor));
    };
    fill(Role::o, truth.output);
    if (problem.want_lse) fill(Role::lse, truth.lse);
    return outputs;
}

const TensorSet& TruthTrial::observed() const {
    if (!observed_) observed_ = run(problem(), inputs());
    return *observed_;
}

const bound::Expected& TruthTrial::expected() const {
    if (!expected_) expected_ = expected(problem(), inputs());
    return *expected_;
}

bound::Expected TruthTrial::expected(const Problem& problem, const TensorSet& inputs) const {
    bound::Expected twice = given_.expected(problem, inputs);
    for (auto* elements : {&twice.output, &twice.lse})
        for (bound::ExpectedElement& e : *elements) e.bound *= 2;
    return twice;
}

law::Judgement TruthTrial::compare(const Problem& problem, const TensorSet& inputs,
                                   const TensorSet& observed) const {
    return compare_with({problem, dialect(), numerics(), inputs, observed},
                        given_.expected(problem, inputs));
}

/// Which rows are judged does not depend on the bound.
law::Judgement TruthTrial::compare_structure() const {
    return compare(problem(), inputs(), observed());
}

law::Judgement TruthTrial::compare_probable(double) const {
    return compare(problem(), inputs(), observed());
}

}  // namespace attest::search
