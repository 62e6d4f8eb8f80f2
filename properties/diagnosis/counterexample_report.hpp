#pragma once
// A counterexample with all that was found out about it: what the kernel computes instead, when it
// fails, what it reads, how far off it is. Everything here that runs a kernel or the reference does
// so once; screens and files are drawn from the values.

#include <optional>
#include <string>
#include <vector>

#include "properties/diagnosis/boundary.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/picture.hpp"
#include "properties/diagnosis/sanitizer_report.hpp"
#include "properties/search/conclude.hpp"

namespace attest::diagnosis {

/// Weights of one head of the smallest case: [len_q][len_kv].
struct HeadWeights {
    std::vector<std::vector<double>> expected, observed;
};

/// error/bound of each output of one head of the case as found, as digits: 0 within the bound, k
/// for a ratio of 10^(k-1) to 10^k, 6 for more. Of larger heads blocks, with their worst.
struct ErrorMap {
    std::int64_t batch = 0, head = 0;
    std::vector<std::string> levels;  ///< a text a row
};

struct CounterexampleReport {
    search::Counterexample example;    ///< its verdict has a violation
    std::optional<std::int64_t> ulps;  ///< between expected and observed, where both have one sign
    Boundary boundary;
    Diagnosis diagnosis;
    std::vector<Picture> pictures;
    std::optional<HeadWeights> weights;
    std::optional<ErrorMap> map;
    std::vector<SanitizerEntry> sanitizer;
    std::string cause;  ///< id of the cause it belongs to

    const law::Violation& violation() const { return *example.verdict.violation; }
    /// Not a wrong answer but no answer, or a broken neighbour.
    bool died() const { return example.outcome != worker::Outcome::ok || example.fault; }
};

/// The schedule of threads alone made it hold and fail, or may have, where it does of another law.
bool failed_now_and_then(const search::Confirmed& confirmed);

/// Finds out. A null kernel is not asked; nor is one that dies of the case. Of a kernel known to
/// race, what failed now and then is not asked for what it computes: no answer of it is evidence.
CounterexampleReport counterexample_report(const search::LawResult& result, search::Kernel* kernel,
                                           bool races = false, const NamedDeviations& named = {});

}  // namespace attest::diagnosis
