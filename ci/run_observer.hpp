#pragma once
// Writes what happens during a campaign into the journal, and shows how far it is.

#include <exception>
#include <set>
#include <string>

#include "ci/interrupt.hpp"
#include "ci/journal.hpp"
#include "ci/options.hpp"
#include "ci/progress.hpp"
#include "ci/record.hpp"
#include "properties/search/campaign.hpp"

namespace attest::ci {

class RunObserver final : public search::CampaignObserver {
public:
    RunObserver(Journal& journal, RunReport& report, Progress& progress, InterruptGuard& interrupt,
                const CommandOptions& options)
        : journal_(journal),
          report_(report),
          progress_(progress),
          interrupt_(interrupt),
          options_(options) {}

    void on_case(const law::Property& law, const search::CaseRecord& record,
                 double progress) override;
    void on_violation(const law::Property& law, const search::CaseRecord& record) override;
    void on_shrink(const law::Property& law, std::int64_t evaluation, const Case& tried) override;
    void on_waiting(const law::Property& law, double seconds, double limit) override;
    /// Laws that hold are written at once; what has a counterexample waits for its diagnosis, but
    /// the first that is confirmed is told.
    void on_law(const search::LawResult& result) override;

    /// The law and its nearest cases, unless they are written already.
    void write_law(const search::LawResult& result);
    template <typename Report>
    void write(Report report) {
        journal_.append(record_line(report));
        report_.add(std::move(report));
    }
    bool wrote_law(const std::string& law) const { return laws_.count(law) != 0; }

    /// Throws what stopped the writing, if anything did.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void write_case(const law::Property& law, const search::CaseRecord& tried);
    template <typename Report>
    void write_quietly(Report report);
    Journal& journal_;
    RunReport& report_;
    Progress& progress_;
    InterruptGuard& interrupt_;
    const CommandOptions& options_;
    bool told_ = false;  ///< of the first violation that was confirmed
    std::set<std::string> laws_, cases_;
    std::exception_ptr failure_;
};

}  // namespace attest::ci
