#include "properties/search/shrinker.hpp"

#include <algorithm>
#include <utility>

#include "properties/search/clock.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

using Clock = std::chrono::steady_clock;

std::string moved(const Parameter& parameter, std::int64_t from, std::int64_t to) {
    return parameter.label + " " + std::to_string(from) + " -> " + std::to_string(to) +
           parameter.kept;
}

// Of a kernel that answers otherwise at each call: what fails now and then is made smaller for as
// long as the passes take, not the sweeps, which would try all that is smaller in vain.
constexpr std::int64_t unsteady_evaluations = 150;
constexpr std::chrono::seconds unsteady_time{1};

}  // namespace

Counterexample counterexample_of(const law::Property& property, const CaseRecord& record) {
    Counterexample c;
    c.law = property.id;
    c.id = failure_id(record.tried, property.id);
    c.smallest = record.tried;
    c.verdict = record.verdict;
    c.outcome = record.outcome;
    c.fault = record.fault;
    c.printed = record.printed;
    c.found = record;
    return c;
}

Shrinker::Shrinker(Kernel& kernel, const law::Property& property, const Capability& capability,
                   const ShrinkLimits& limits, Tell tell)
    : kernel_(kernel),
      property_(property),
      capability_(capability),
      limits_(limits),
      tell_(std::move(tell)) {}

bool Shrinker::open() const {
    return result_.evaluations < limits_.evaluations &&
           !(limits_.deadline && Clock::now() >= *limits_.deadline);
}

Judged Shrinker::judge(const Case& candidate) {
    if (limits_.fresh) kernel_.restart();
    if (depends_on_placement_)
        return judge_both_ways(kernel_, property_, candidate, best_.number, kind_);
    return judge_case(kernel_, property_, candidate, best_.number);
}

/// Judges a candidate, once: a case that was tried is not tried again.
bool Shrinker::fails(const Case& candidate, const std::string& line) {
    const auto [known, is_new] = memo_.try_emplace(line, false);
    if (!is_new) return known->second;
    ++result_.evaluations;
    if (tell_) tell_(result_.evaluations, candidate);
    const Judged judged = judge(candidate);
    if (failure_kind(judged.record) != kind_) return false;
    // What failed by chance would hardly fail again where it is confirmed.
    if (unsteady_ && failure_kind(judge(candidate).record) != kind_) return false;
    known->second = true;
    best_ = judged.record;  // every caller accepts what fails
    return true;
}

void Shrinker::accept(const Case& candidate, SizeKey key, const char* pass,
                      const std::string& change) {
    best_key_ = std::move(key);
    ++result_.accepted;
    result_.steps.push_back(
        {result_.evaluations, pass, change, best_key_.text, score_count(candidate.problem)});
}

bool Shrinker::attempt(Case candidate, const char* pass, const std::string& change) {
    if (!open()) return false;
    // An edit may leave lengths no axis has; repair() relies on axes that are.
    const Problem& raw = candidate.problem;
    if (std::min({raw.batch, raw.len_q, raw.len_kv, raw.dim_qk}) < 1) return false;
    repair(candidate.problem);
    if (find_contradiction(candidate.problem) ||
        find_contradiction(candidate.problem, candidate.values))
        return false;
    if (!in_space(property_, capability_, candidate.problem) ||
        !in_space(property_, candidate.values))
        return false;
    SizeKey key = size_key(candidate);
    if (!(key < best_key_) || !fails(candidate, key.text)) return false;
    accept(candidate, std::move(key), pass, change);
    return true;
}

bool Shrinker::turn_to(const Parameter& parameter, std::int64_t value, const char* pass) {
    const std::int64_t now = parameter.get(best_.tried.problem);
    if (value < parameter.floor || value >= now) return false;
    Case candidate = best_.tried;
    parameter.set(candidate.problem, value);
    return attempt(std::move(candidate), parameter.kept.empty() ? pass : "coupled",
                   moved(parameter, now, value));
}

/// The least value a parameter can be turned to: its floor, else by halving steps, else whole tiles
/// (a bug that needs a remainder survives those alone), else one less.
bool Shrinker::turn(const Parameter& parameter) {
    if (turn_to(parameter, parameter.floor, "floor")) return true;
    const auto room = [&] {
        return (parameter.get(best_.tried.problem) - parameter.floor) / parameter.step *
               parameter.step;
    };
    bool any = false;
    for (std::int64_t by = room() / 2 / parameter.step * parameter.step;
         by >= parameter.step && open();) {
        if (turn_to(parameter, parameter.get(best_.tried.problem) - by, "bisect")) {
            any = true;
            by = std::min(by, room());
        } else {
            by = by / 2 / parameter.step * parameter.step;
        }
    }
    for (const std::int64_t tile : {256, 128, 64, 32, 16})
        while (tile % parameter.step == 0 &&
               turn_to(parameter, parameter.get(best_.tried.problem) - tile, "tiles"))
            any = true;
    while (turn_to(parameter, parameter.get(best_.tried.problem) - parameter.step, "minus one"))
        any = true;
    return any;
}

/// Everything at once: with the features that matter, most failing cases fail at their smallest.
bool Shrinker::to_the_floor() {
    bool any = false;
    Case candidate = best_.tried;
    for (const Parameter& parameter : parameters(candidate.problem))
        if (parameter.kept.empty() && parameter.get(candidate.problem) > parameter.floor)
            parameter.set(candidate.problem, parameter.floor);
    any = attempt(candidate, "floor", "everything to its floor") || any;
    candidate = best_.tried;
    Problem plain;
    plain.format_q = plain.format_kv = plain.format_o = candidate.problem.format_q;
    plain.want_grad = candidate.problem.want_grad;
    plain.want_lse = candidate.problem.want_lse;
    plain.batch = candidate.problem.batch;
    plain.heads_q = candidate.problem.heads_q;
    plain.heads_kv = candidate.problem.heads_kv;
    plain.len_q = candidate.problem.len_q;
    plain.len_kv = candidate.problem.len_kv;
    plain.dim_qk = candidate.problem.dim_qk;
    candidate.problem = plain;
    return attempt(candidate, "features", "all features off") || any;
}

bool Shrinker::features() {
    bool any = false;
    for (bool again = true; again && open();) {
        again = false;
        for (const Edit& edit : feature_edits(best_.tried.problem)) {
            Case candidate = best_.tried;
            edit.apply(candidate.problem);
            again = attempt(std::move(candidate), edit.pass, edit.change);
            if (again) break;  // the list belongs to the problem it was made for
        }
        any = any || again;
    }
    return any;
}

bool Shrinker::turn_all() {
    bool any = false;
    const std::size_t count = parameters(best_.tried.problem).size();
    for (std::size_t i = 0; i < count && open(); ++i) {
        const auto now = parameters(best_.tried.problem);  // a move may have changed what there is
        if (i < now.size()) any = turn(now[i]) || any;
    }
    return any;
}

void Shrinker::passes() {
    for (bool moving = true; moving && open();) {
        moving = to_the_floor();
        moving = features() || moving;
        moving = turn_all() || moving;
        moving = simpler_data() || moving;
    }
}

/// The case as found: in this process both ways its tensors may lie, then in a fresh one. Where the
/// two ways differ, every candidate is tried both ways.
bool Shrinker::fails_again() {
    const bool slow = kind_.outcome == worker::Outcome::hang;
    depends_on_placement_ = kind_.death() && !slow;
    const PlacementOrder other = placement_order_of(best_.number) == PlacementOrder::even
                                     ? PlacementOrder::odd
                                     : PlacementOrder::even;
    for (const bool fresh : {false, true}) {
        if (fresh) kernel_.restart();
        const Judged first = judge_case(kernel_, property_, best_.tried, best_.number);
        const bool failed = failure_kind(first.record) == kind_;
        look_whether_steady(first);
        if (failed && (slow || dear() || depends_on_placement_)) return true;
        const Judged second = judge_case(kernel_, property_, best_.tried, best_.number, other);
        const bool failed_too = failure_kind(second.record) == kind_;
        if (failed != failed_too) depends_on_placement_ = true;
        if (failed || failed_too) return true;
    }
    return false;
}

/// Other answers than when it was found may come of what ran before; other ones at once do not.
void Shrinker::look_whether_steady(const Judged& first) {
    const bool as_found = first.record.outputs == result_.found.outputs;
    if (unsteady_ || kind_.death() || (as_found && dear())) return;
    const Judged second = judge_case(kernel_, property_, best_.tried, best_.number);
    if (second.record.outputs == first.record.outputs) return;
    unsteady_ = true;
    limits_.evaluations = std::min(limits_.evaluations, unsteady_evaluations);
    const auto soon = Clock::now() + unsteady_time;
    limits_.deadline = std::min(limits_.deadline.value_or(soon), soon);
}

/// A statistic's case makes up to a thousand calls, and where the tensors lie is nothing to it.
bool Shrinker::dear() const {
    return property_.compares == law::Compares::statistic;
}

bool Shrinker::confirmed() {
    kernel_.restart();
    if (limits_.confirm_timeout) kernel_.set_timeout(*limits_.confirm_timeout);
    const bool slow = kind_.outcome == worker::Outcome::hang;  // once is enough, and dear
    const Judged fresh =
        slow || dear() ? judge_case(kernel_, property_, best_.tried, best_.number)
                       : judge_both_ways(kernel_, property_, best_.tried, best_.number, kind_);
    if (limits_.confirm_timeout) kernel_.set_timeout(std::chrono::milliseconds(0));
    if (failure_kind(fresh.record) != kind_) return false;
    if (slow) {  // what is told is the limit it was given last, the longest
        best_.verdict = fresh.record.verdict;
        best_.fault = fresh.record.fault;
    }
    return true;
}

Counterexample Shrinker::shrink(const CaseRecord& found) {
    const auto begin = Clock::now();
    result_ = {};
    result_.law = property_.id;
    result_.found = found;
    result_.outcome = found.outcome;
    kind_ = failure_kind(found).value_or(FailureKind{});
    best_ = found;
    best_.tried.problem = canonical(best_.tried.problem);
    best_key_ = size_key(best_.tried);
    result_.steps.push_back({0, "found",
                             "case " + std::to_string(found.number) + " of " + property_.id,
                             print(found.tried), score_count(found.tried.problem)});
    if (fails_again()) {
        passes();
        // A hang costs its time limit each time: the passes alone must do.
        const bool cheap =
            kind_.outcome != worker::Outcome::hang && kind_.outcome != worker::Outcome::memory;
        while (cheap && open() && (move_with_data() || sweep() || write_out())) passes();
        if (confirmed()) result_.confirmed = {Confirmation::alone, {1, 1}, {}, {}};
    }
    result_.smallest = best_.tried;
    result_.verdict = best_.verdict;
    result_.outcome = best_.outcome;
    result_.fault = best_.fault;
    result_.printed = best_.printed;
    result_.id = failure_id(result_.smallest, property_.id);
    result_.shrink_seconds = seconds_since(begin);
    return std::move(result_);
}

}  // namespace attest::search
