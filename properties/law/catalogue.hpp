#pragma once
// What the generated list of laws hands over. The catalogue proper is property.hpp's.

#include <vector>

#include "properties/law/property.hpp"

namespace attest::law {

/// The laws of every file in catalogue order, each with the file it stands in. Defined in
/// catalogue_list.cpp, which the build writes (properties/CMakeLists.txt).
std::vector<Property> declared_laws();

/// The declarations as data: ids well formed and unique, statements short enough, a check function
/// each. Throws InternalError with the law and what is wrong.
void require_well_declared(std::span<const Property> laws);

/// Hands over every field of a law but its check. Whoever adds a field adds it here: the names are
/// counted by the compiler, and what is handed over by catalogue_test.
template <typename Law, typename Tell>
void each_field(Law& law, Tell tell) {
    auto& [id, statement, statement_short, why, source, compares, tells, after_other_calls, needs,
           cases, cases_enough, check, pool, turned_red_by, knows_more, file] = law;
    (tell(id), tell(statement), tell(statement_short), tell(why), tell(source), tell(compares));
    (tell(tells), tell(after_other_calls), tell(cases_enough), tell(turned_red_by));
    (tell(pool), tell(knows_more), tell(file));
    auto& [lse, backward, deterministic, batch_invariant, concurrent, simulated, structure, d_q,
           d_k, d_v] = needs;
    (tell(lse), tell(backward), tell(deterministic), tell(batch_invariant), tell(concurrent));
    (tell(simulated), tell(structure), tell(d_q), tell(d_k), tell(d_v));
    auto& [allow, require, require_any, formats, kinds, cost, scores_max, len_max, dim_max,
           batch_max, limited_because, len_q_one, square, more_queries, any_length, several_tiles,
           default_scale, admits] = cases;
    (tell(allow), tell(require), tell(require_any), tell(formats), tell(kinds));
    (tell(cost), tell(scores_max), tell(len_max), tell(dim_max), tell(batch_max));
    (tell(limited_because), tell(len_q_one));
    (tell(square), tell(more_queries), tell(any_length), tell(several_tiles));
    (tell(default_scale), tell(admits));
}

/// All that each_field() hands over, as text. A precondition is told by what it answers to a fixed
/// set of problems; the check is code, and stands under the version.
std::string declaration_text(const Property& law);

/// Those problems: every one valid.
std::span<const Problem> precondition_problems();

}  // namespace attest::law
