#include "ci/run_end.hpp"

#include <set>

#include "ci/gpu_oracle.hpp"
#include "ci/machine.hpp"
#include "properties/search/few_shapes.hpp"

namespace attest::ci {

namespace {

// What was thrown, in a sentence; empty where nothing was.
std::string words_of(const std::exception_ptr& error) {
    if (!error) return {};
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
        return thrown.what();
    }
}

// Of few shapes, those that saw a call, also before this run went on.
std::vector<std::string> visited_shapes(const RunReport& report) {
    std::set<std::string> visited;
    for (const search::LawReport& law : report.laws)
        visited.insert(law.shapes.begin(), law.shapes.end());
    return {visited.begin(), visited.end()};
}

// What only the end of the run says that this one goes on with.
void add_earlier(RunEnd& end, const std::optional<RunEnd>& earlier) {
    if (!earlier) return;
    end.seconds += earlier->seconds;
    if (end.oracle.empty()) end.oracle = earlier->oracle;
    end.libraries.insert(earlier->libraries.begin(), earlier->libraries.end());
}

}  // namespace

RunEnd end_of(const RunReport& report, const search::CampaignResult& result,
              const std::optional<RunEnd>& earlier) {
    RunEnd end;
    end.ended = words_of(result.error);
    end.unread = result.unread;
    end.verdict = verdict_of(report, result.interrupted);
    end.seconds = result.seconds;
    end.interrupted = result.interrupted;
    end.narrowed = result.narrowed;
    if (result.shapes) {
        end.shapes_chosen.assign(result.shapes->chosen().begin(), result.shapes->chosen().end());
        end.shapes_visited = visited_shapes(report);
        end.narrowed.push_back(
            search::told_of_shapes(end.shapes_visited.size(), report.run.shapes.value()));
    }
    end.oracle = long_context_words();
    end.narrow = result.narrow;
    end.at = time_now();
    add_earlier(end, earlier);
    return end;
}

}  // namespace attest::ci
