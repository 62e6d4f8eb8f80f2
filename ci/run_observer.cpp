#include "ci/run_observer.hpp"

#include "ci/law_record.hpp"

namespace attest {

void RunObserver::write(Record record) {
    journal_.append(record);
    records_.add(std::move(record));
}

// Called on a campaign's thread: a full disk ends the campaign, and is reported from the main one.
void RunObserver::write_quietly(const Record& record) {
    if (failure_) return;
    try {
        // A case can be the worst of its law and a failing one: it is written once.
        if (record.at("record") == "case" &&
            !cases_.insert(record.at("id").get<std::string>()).second)
            return;
        write(record);
    } catch (...) {
        failure_ = std::current_exception();
        interrupt_.stop();
    }
}

void RunObserver::on_case(const Property& law, const CaseRecord& record, double progress) {
    progress_.on_case(law, progress);
    if (record_cases_) write_quietly(case_record(law.id, law.compares, record));
}

void RunObserver::on_violation(const Property& law, const CaseRecord& record) {
    progress_.on_violation(law);
    write_quietly(case_record(law.id, law.compares, record));
}

void RunObserver::on_shrink(const Property& law, std::int64_t evaluation, const Case& subject) {
    progress_.on_shrink(law, evaluation, subject);
}

void RunObserver::on_waiting(const Property&, double seconds, double limit) {
    progress_.on_waiting(seconds, limit);
}

void RunObserver::write_law(const LawResult& result, const Record& law) {
    if (!laws_.insert(result.property->id).second) return;
    for (const CaseRecord* near : nearest_cases(result))
        write_quietly(case_record(result.property->id, result.property->compares, *near));
    write_quietly(law);
}

void RunObserver::on_law(const LawResult& result) {
    const Decision decision = result.verdict.decision;
    if (decision == Decision::violated || decision == Decision::not_run) return;
    write_law(result, law_record(result));
}

}  // namespace attest
