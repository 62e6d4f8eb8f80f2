#pragma once
// What a run found, in sentences: one finding a cause, and one for each failure that was not seen
// again in a fresh process. Screens, pages and the files of other programs are drawn from these, so
// that all of them say the same. Every text is free of control characters.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ci/run_report.hpp"

namespace attest::ci {

struct KernelPlace {
    std::string file;
    std::int64_t line = 1;
};

/// The caller's --source.
std::optional<KernelPlace> source_of(const RunReport& report);

/// One element: what was expected, what came, and the bound between them, as people read them.
struct ElementWords {
    std::string expected, observed;
    std::string bound;  ///< "bound 0.0032", "bound: to the bit"; empty where there is none to say
    std::string times;  ///< "1.6e5 times the bound", where that is a number above 1
    bool empty() const noexcept { return observed.empty(); }
    /// All of it in a line; empty where no element is shown.
    std::string line() const;
};
ElementWords element_words(const law::Violation& violation);

struct RunFinding {
    const diagnosis::CounterexampleReport* lead = nullptr;
    bool proven = true;  ///< else it fails no run
    /// Told from the findings before it; else what those leave unexplained, by them or by others.
    bool apart = true;
    std::vector<std::string> laws;  ///< the lead's first
    /// Of the laws, those whose cases are wrong mostly where the cause shows, in other numbers.
    std::vector<std::string> other_numbers;
    std::string problem;
    std::string computes, agree, declares;  ///< what the diagnosis knows; empty: nothing
    std::string fails, share;               ///< when, and in how many cases
    std::string smallest;
    ElementWords element;
    /// What a kernel may not do that says it was denied something; else empty.
    std::string held_in;
    std::string confirmed, replay;
    std::vector<KernelPlace> places;  ///< in the kernel's source, the first is the main one
    std::string fingerprint;  ///< SHA-256 of kernel, law and smallest case: the same in every run

    /// "only when Tq ≠ Tk (4 of 4 cases)", "in 8 of 18 cases, no pattern found"; empty: not known.
    std::string when() const;
    /// "masking.causal and 11 more".
    std::string title() const;
    /// "reference.lse: wrong mostly where this shows, in other numbers than it predicts"; empty: of
    /// none.
    std::string beside() const;
};

/// Causes first, in their order.
std::vector<RunFinding> findings_of(const RunReport& report, const std::string& directory);
RunFinding finding_of(const RunReport& report, const diagnosis::CounterexampleReport& one,
                      const std::string& directory);

/// The laws that broke, without those of failures that were not seen again.
std::vector<std::string> proven_laws(const std::vector<RunFinding>& findings);

/// A cause told from those before it; else what those leave unexplained, by them or by others.
bool told_apart(const RunReport& report, const diagnosis::CauseReport& cause);

/// "3 causes", "1 cause, 2 unexplained": laws that no named cause explains.
std::string causes_text(const RunReport& report);

/// What a law that judged nothing, or not enough, says: "not applicable: kernel has no backward".
std::string reason_text(const search::LawReport& law);

/// A family and its laws, in their order.
struct Family {
    std::string name;
    std::vector<const search::LawReport*> laws;
    std::int64_t count(law::Decision decision) const;
};

/// Each family once, in the order of their first laws: the catalogue has some laws of a family
/// behind those of others.
std::vector<Family> families_of(const RunReport& report);

/// The holding laws nearest to their bounds, nearest first.
std::vector<const search::LawReport*> nearest_laws(const RunReport& report, std::size_t most);

}  // namespace attest::ci
