#include "properties/law/merging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/law/reading.hpp"

namespace attest::law {

std::vector<std::int64_t> cuts(const Trial& trial, std::uint64_t stream, std::int64_t keys) {
    std::vector<std::int64_t> ends = {0, 1 + trial.random_below(stream, 0, keys - 1)};
    const std::int64_t second = 1 + trial.random_below(stream, 1, keys - 1);
    if (second != ends[1]) ends.push_back(second);
    ends.push_back(keys);
    std::sort(ends.begin(), ends.end());
    return ends;
}

// The parts that the mask leaves without a key say L = -inf. Where the dialect leaves that open
// they are not asked; else their own answer is taken: a wrong one spoils the merge, as it would for
// a user.
Merge merge_row(const std::vector<Run>& parts, const Row& row) {
    Merge merge;
    std::vector<Interval> lse;
    for (const Run& part : parts) {
        if (blind(part, row)) {
            if (part.trial().dialect().empty_row != EmptyRow::zeros) continue;
            const double said = part.lse().get(flat(part.problem(), row));
            if (said == -std::numeric_limits<double>::infinity()) continue;
            lse.push_back(Interval::exactly(said));
        } else {
            lse.push_back(lse_truth(part, row));
        }
        merge.parts.push_back(&part);
    }
    double most = -std::numeric_limits<double>::infinity(), sum = 0, worst = 0;
    for (const Interval& l : lse) most = std::max(most, l.mid());
    for (const Interval& l : lse) {
        merge.share.push_back(std::exp(l.mid() - most));
        merge.excess.push_back(std::expm1(l.radius()));
        sum += merge.share.back();
        worst = std::max(worst, l.radius());
    }
    for (std::size_t p = 0; p < merge.share.size(); ++p) {
        merge.share[p] /= sum;
        merge.off += merge.share[p] * merge.excess[p];
    }
    const double middle = most + std::log(sum);
    // Of the middle itself: exp and log of the library are within 4 units of 2^-53, three parts add
    // two more each, and a sum of roundings is doubled: 16.
    merge.lse = Interval::around(middle, worst + 16 * 0x1p-53 * (1 + std::abs(middle)));
    return merge;
}

// O = sum_p exp(L_p) O_p / sum_p exp(L_p). With L_p known to e_p, shares w_p from the middles and
// O^ = sum w_p m_p, m_p the middle of O_p known to r_p:
//   |O - O^| <= [sum w_p H_p |m_p - O^| + sum w_p (1 + H_p) r_p] / (1 - sum w_p H_p), H_p =
//   expm1(e_p),
// as for bound (a): an error common to all parts cancels.
Interval merged(const Merge& merge, const Row& row, std::int64_t channel) {
    std::vector<Interval> part;
    double centre = 0, magnitude = 0;
    for (std::size_t p = 0; p < merge.parts.size(); ++p) {
        const Run& call = *merge.parts[p];
        part.push_back(blind(call, row) ? Interval::exactly(output(call, row, channel))
                                        : truth(call, row, channel));
        centre += merge.share[p] * part[p].mid();
        magnitude += merge.share[p] * std::abs(part[p].mid());
    }
    if (!(merge.off < 0.5))
        return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    double error = 0;
    for (std::size_t p = 0; p < merge.parts.size(); ++p)
        error += merge.share[p] * (merge.excess[p] * std::abs(part[p].mid() - centre) +
                                   (1 + merge.excess[p]) * part[p].radius());
    const double own = 32 * 0x1p-53 * magnitude;  // shares: exp, a sum of three and a quotient, 16
                                                  // units as above; products and their sum: as many
    return Interval::around(centre, evaluation * error / (1 - merge.off) + own);
}

}  // namespace attest::law
