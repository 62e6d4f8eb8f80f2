#include "ci/run_observer.hpp"

namespace attest {

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
void RunObserver::write_case(const Property& law, const CaseRecord& tried) {
    CaseReport report = case_report(law, tried);
    if (cases_.insert(report.id).second) write_quietly(std::move(report));
}

void RunObserver::on_case(const Property& law, const CaseRecord& record, double progress) {
    progress_.on_case(law, progress);
    if (record_cases_) write_case(law, record);
}

void RunObserver::on_violation(const Property& law, const CaseRecord& record) {
    progress_.on_violation(law);
    write_case(law, record);
}

void RunObserver::on_shrink(const Property& law, std::int64_t evaluation, const Case& subject) {
    progress_.on_shrink(law, evaluation, subject);
}

void RunObserver::on_waiting(const Property&, double seconds, double limit) {
    progress_.on_waiting(seconds, limit);
}

void RunObserver::write_law(const LawResult& result) {
    if (!laws_.insert(result.property->id).second) return;
    for (const CaseRecord* near : nearest_cases(result)) write_case(*result.property, *near);
    write_quietly(law_report(result));
}

void RunObserver::on_law(const LawResult& result) {
    const Decision decision = result.verdict.decision;
    if (decision == Decision::violated || decision == Decision::not_run) return;
    write_law(result);
}

}  // namespace attest
