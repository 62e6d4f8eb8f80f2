#pragma once
// The parts of report.html, a function each.

#include <string>
#include <utility>
#include <vector>

#include "ci/finding.hpp"
#include "ci/html.hpp"
#include "ci/record.hpp"

namespace attest::ci {

/// One cause: what it computes and declares, when it fails, its numbers and pictures, the other
/// laws it breaks. The first is drawn whole, further ones without the pictures of the run.
Html cause_section(const RunReport& report, const RunFinding& finding, std::size_t number,
                   const std::string& directory);

/// What each query reads of each key: reads and may, reads and must not, must and does not, hidden.
Html attention_matrix(const diagnosis::Picture& picture);
/// Cases that fail and hold over the two quantities that separate them best.
Html boundary_plot(const diagnosis::Boundary& boundary);
/// The size of the case after each step of the shrinker.
Html shrink_plot(const search::Counterexample& example);

/// How near each law came to its bound, over all cases: a strip a law.
Html laws_section(const RunReport& report);
Html nearest_section(const RunReport& report);
/// A mark a law, by family.
Html family_marks(const RunReport& report);

/// Which features were drawn together, a triangle a format, and the largest sizes.
Html coverage_section(const RunReport& report);

/// The head of a column of strips, which are 240 wide: each text at its place, the first and the
/// last within the column however narrow the page is.
Html strip_head(const std::vector<std::pair<double, std::string>>& labels);

/// Names and values.
Html facts_table(Literal title, const Facts& facts);

}  // namespace attest::ci
