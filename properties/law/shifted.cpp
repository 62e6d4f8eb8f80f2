#include "properties/law/shifted.hpp"

#include <fmt/format.h>

#include "properties/law/reading.hpp"

namespace attest::law {

void compare_shifted(Tally& tally, const Run& first, const Run& second, const char* change,
                     const std::function<Interval(const Row&)>& shift) {
    const Problem& problem = first.problem();
    for (const Row& row : all_rows(problem)) {
        if (blind(first, row)) continue;
        for (int64_t c = 0; c < value_dim(problem); ++c)
            tally.same(truth(first, row, c), truth(second, row, c), output_at(row, c), [&] {
                return fmt::format("{} changes the output of {}", change, name_of(problem, row));
            });
        if (!first.has_lse() || !second.has_lse()) continue;
        tally.same(lse_truth(first, row) + shift(row), lse_truth(second, row), lse_at(row), [&] {
            return fmt::format("{} does not shift the log-sum-exp of {} by {:.6g}", change,
                               name_of(problem, row), shift(row).mid());
        });
    }
}

}  // namespace attest::law
