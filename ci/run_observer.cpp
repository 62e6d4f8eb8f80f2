#include "ci/run_observer.hpp"

#include "ci/check_screen.hpp"

namespace attest::ci {

// Called on a campaign's thread: a full disk ends the campaign, and is reported from the main one.
template <typename Report>
void RunObserver::write_quietly(Report report) {
    if (failure_) return;
    try {
        write(std::move(report));
    } catch (...) {
        failure_ = std::current_exception();
        interrupt_.stop();
    }
}

// A case can be the worst of its law and a failing one: it is written once.
void RunObserver::write_case(const law::Property& law, const search::CaseRecord& tried) {
    if (cases_.insert({law.id, tried.number}).second)
        write_quietly(search::case_report(law, tried));
}

void RunObserver::on_slot(const law::Property& law, const search::CaseSlot& slot,
                          const search::SlotResult& result) {
    const bool says = !result.record || result.discarded > 0 || result.refused > 0;
    if (report_.run.recorded && says)
        write_quietly(search::DrawReport{law.id, slot.number, result.discarded, result.refused,
                                         result.refusals, result.nothing, result.inapplicable});
}

void RunObserver::on_case(const law::Property& law, const search::CaseRecord& record,
                          double progress) {
    progress_.on_case(law, progress);
    if (report_.run.recorded) write_case(law, record);
}

void RunObserver::on_violation(const law::Property& law, const search::CaseRecord& record) {
    progress_.on_violation(law);
    write_case(law, record);
}

void RunObserver::on_shrink(const law::Property& law, std::int64_t evaluation, const Case& tried) {
    progress_.on_shrink(law, evaluation, tried);
}

void RunObserver::on_waiting(const law::Property&, double seconds, double limit) {
    progress_.on_waiting(seconds, limit);
}

void RunObserver::write_law(const search::LawResult& result) {
    if (!laws_.insert(result.property->id).second) return;
    for (const search::CaseRecord* near : search::nearest_cases(result))
        write_case(*result.property, *near);
    write_quietly(search::law_report(result));
}

void RunObserver::on_law(const search::LawResult& result) {
    const law::Decision decision = result.verdict.decision;
    if (decision == law::Decision::violated && result.counterexample && !told_ &&
        search::is_proven(result.counterexample->confirmed.how)) {
        told_ = true;
        const Case& smallest = result.counterexample->smallest;
        progress_.say(result.property->id + " is violated, seen again in a fresh process");
        progress_.say(replay_line(report_.run.kernel,
                                  search::short_id(smallest, result.property->id), options_.out,
                                  result.counterexample->outcome));
    }
    if (result.counterexample || decision == law::Decision::not_run) return;
    if (decision == law::Decision::violated) return;
    write_law(result);
}

}  // namespace attest::ci
