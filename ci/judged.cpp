#include "ci/judged.hpp"

#include <cstdlib>
#include <fstream>

#include "ci/number.hpp"
#include "ci/run.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/text.hpp"

namespace attest::ci {

std::uint64_t driver_seed() {
    const char* text = std::getenv("ATTEST_SEED");
    if (text == nullptr) return ci_seed;
    const auto seed = parse_integer<std::uint64_t>(text);
    if (!seed) throw BadInput(std::string("ATTEST_SEED ") + text + ": a whole number");
    return *seed;
}

search::CampaignResult judge_laws(const std::string& kernel, const std::vector<std::string>& match,
                                  const JudgedBy& by) {
    search::CampaignOptions options;
    options.kernel = kernel::parse_kernel_spec(kernel);
    options.profile = load_profile("quick");
    if (by.severity == Severity::every_class)
        options.profile.fails = {"violation", "structure", "suspect"};
    constexpr std::int64_t simulated_len = 257;
    if (by.lengths == JudgedLengths::simulated)
        for (const search::SizeAxis axis : {search::SizeAxis::len_q, search::SizeAxis::len_kv})
            options.profile.reach[axis] = simulated_len;
    options.match = match;
    options.seed = driver_seed();
    options.cases = by.cases;
    options.jobs = 1;
    search::CampaignObserver nobody;
    return search::run_campaign(options, nobody);
}

search::LawResult judge_law(const std::string& kernel, const std::string& law, const JudgedBy& by) {
    for (search::LawResult& result : judge_laws(kernel, {law}, by).laws)
        if (result.property->id == law) return std::move(result);
    throw InternalError("every law of the catalogue has a result");
}

std::string replay_text(const search::LawResult& result, const std::string& kernel) {
    if (!result.counterexample) return "";
    return "attest replay \"" + print(result.counterexample->smallest) + "\" --kernel " + kernel +
           " --law " + result.property->id;
}

std::string violation_text(const search::LawResult& result, const std::string& kernel) {
    std::string text = result.property->id + " is violated by " + kernel;
    if (!result.counterexample) return text;
    const search::Counterexample& c = *result.counterexample;
    if (c.verdict.violation) {
        const auto [expected, observed] =
            value_texts(c.verdict.violation->expected, c.verdict.violation->observed);
        text += "\n  problem        " + c.verdict.violation->problem + "\n  observed       " +
                observed + "   expected " + expected + "   bound " +
                bound_text(c.verdict.violation->bound);
    }
    return text + "\n  smallest case  " + print(c.smallest) + "\n  found as       case " +
           std::to_string(c.found.number) + ": " + print(c.found.tried) + "\n  replay         " +
           replay_text(result, kernel);
}

int declaration_line(const law::Property& law, const std::string& repository) {
    std::ifstream file(repository + "/" + law.file);
    const std::string id = "\"" + law.id + "\"";
    int number = 1;
    for (std::string line; std::getline(file, line); ++number)
        if (line.find(id) != std::string::npos) return number;
    return 1;
}

}  // namespace attest::ci
