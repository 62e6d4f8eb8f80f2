#pragma once
// A campaign inside a test: one law, one kernel, and the words a failing test prints.

#include <cstdint>
#include <string>

#include "ci/profile.hpp"
#include "properties/search/campaign.hpp"

namespace attest::ci {

/// Seed of every campaign of the driver: ATTEST_SEED, or a fixed one.
std::uint64_t driver_seed();

/// The classes that make a verdict violated: those of the profile, or all there are.
enum class Severity : std::uint8_t { profile, every_class };

/// How far the few largest cases reach: as the profile's, or no longer than a simulated GPU affords
/// (75 million scores take it ten seconds).
enum class JudgedLengths : std::uint8_t { profile, simulated };

struct JudgedBy {
    std::int64_t cases = 0;
    Severity severity = Severity::profile;
    JudgedLengths lengths = JudgedLengths::profile;
};

/// One law on one built-in kernel, or mutant, under profile quick; one thread.
search::LawResult judge_law(const std::string& kernel, const std::string& law, const JudgedBy& by);

/// The same for all laws that match.
search::CampaignResult judge_laws(const std::string& kernel, const std::vector<std::string>& match,
                                  const JudgedBy& by);

/// What is wrong, the smallest case and the line that repeats it.
std::string violation_text(const search::LawResult& result, const std::string& kernel);
std::string replay_text(const search::LawResult& result, const std::string& kernel);

/// The line of a law's declaration in its source file; 1 where the sources are not there.
int declaration_line(const law::Property& law, const std::string& repository);

}  // namespace attest::ci
