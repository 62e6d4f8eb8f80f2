#include "ci/ci_formats.hpp"
#include "ci/record_writer.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

std::string draw_code_quality(const RunReport& report, const std::string& directory,
                              const GateReport* gate) {
    Record issues = Record::array();
    for (const RunFinding& f : findings_of(report, directory)) {
        // GitLab drops an issue without a place: one of no source is the kernel's, in its first
        // line.
        const KernelPlace place =
            f.places.empty() ? KernelPlace{clean(report.run.kernel.typed), 1} : f.places.front();
        const std::string excuse = gate == nullptr ? "" : gate->excuse_of(f.laws);
        issues.push_back(
            {{"description", (excuse.empty() ? "" : excuse + ": ") + "attest " + f.title() + ": " +
                                 f.problem +
                                 (f.computes.empty() ? "" : "; it computes " + f.computes) +
                                 ". Replay: " + f.replay},
             {"check_name", "attest " + f.laws.front()},
             {"fingerprint", f.fingerprint},
             {"severity", !excuse.empty() ? "info"
                          : f.proven      ? "critical"
                                          : "minor"},
             {"location",
              {{"path", place.file.starts_with("./") ? place.file.substr(2) : place.file},
               {"lines", {{"begin", place.line}}}}}});
    }
    return record_text(issues, 1) + "\n";
}

}  // namespace attest::ci
