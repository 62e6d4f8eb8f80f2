#include "reference/bound/far_keys.hpp"

#include <algorithm>

namespace attest::bound {

FarKeys::FarKeys(const RowFacts& facts, const ScoreError& error) {
    if (facts.bias.empty()) return;
    if (!(*std::max_element(facts.bias.begin(), facts.bias.end()) > distance)) return;
    score.assign(facts.score.begin(), facts.score.end());
    bias.assign(facts.bias.begin(), facts.bias.end());
    const auto is_far = [&](std::size_t j) {
        const double below = facts.max - facts.score[j];
        const double turn = facts.turn.empty() ? 0 : facts.turn[j];
        const double off = error.dot * facts.magnitude[j] + error.bias * facts.bias[j] +
                           error.angle * turn + error.absolute;
        return below > distance && off < below / 4 && facts.weight[j] == 0;
    };
    double least = facts.max;
    for (std::size_t j = 0; j < score.size(); ++j)
        if (!is_far(j)) least = std::min(least, score[j]);
    for (std::size_t j = 0; j < score.size(); ++j)
        if (is_far(j)) {
            score[j] = least;
            bias[j] = 0;
        }
}

}  // namespace attest::bound
