#include "properties/law/merging.hpp"
#include "properties/law/case_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/law/paired_keys.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

/// Where the keys are cut into parts, ends included: one boundary or two at random places, never an
/// empty part. At least two keys.
std::vector<std::int64_t> cuts(const Given& given, std::uint64_t stream, std::int64_t keys) {
    std::vector<std::int64_t> ends = {0, 1 + given.random_below(stream, 0, keys - 1)};
    const std::int64_t second = 1 + given.random_below(stream, 1, keys - 1);
    if (second != ends[1]) ends.push_back(second);
    ends.push_back(keys);
    std::sort(ends.begin(), ends.end());
    return ends;
}

/// What the parts say of one row: for each that sees a key, its L and its share of the whole.
struct Merge {
    std::vector<const Run*> parts;
    std::vector<double> share;   ///< softmax of the middles of the parts' L
    std::vector<double> excess;  ///< expm1 of what each L may be off by
    Interval lse;
    double off = 0;  ///< sum of share * excess
};

constexpr double off_max = 0.5;  // any below 1: the error of the merge is divided by 1 - off

/// Whether the reference knows the parts well enough to tell the whole from them: then so does
/// every correct kernel. A kernel's L is within its bound of the truth and rounded, and what is
/// read of it within the same of that: twice both, with 2^-20 of it for two roundings to f32 at
/// least.
bool mergeable(const std::vector<Run>& parts, const Row& row) {
    std::vector<double> lse, reach;
    double most = -infinite, sum = 0, off = 0;
    for (const Run& part : parts) {
        if (blind(part, row)) continue;
        const bound::ExpectedElement& e = part.expected_lse(flat(part.problem(), row));
        const bool base_two = part.trial().dialect().lse_base == LseBase::two;
        const double unit = base_two ? std::log(2.0) : 1;
        lse.push_back(unit * e.value);
        reach.push_back(unit * (2 * (e.bound + e.error) + 0x1p-20 * (1 + std::abs(e.value))));
        most = std::max(most, lse.back());
    }
    for (std::size_t p = 0; p < lse.size(); ++p) {
        const double share = std::exp(lse[p] - most);
        sum += share;
        off += share * std::expm1(reach[p]);
    }
    return off < off_max / 2 * sum;
}

// The parts that the mask leaves without a key say L = -inf, or what the dialect says. Where the
// dialect leaves that open they are not asked; else their own answer is taken: a wrong one spoils
// the merge, as it would for a user.
Merge merge_row(const std::vector<Run>& parts, const Row& row) {
    Merge merge;
    std::vector<Interval> lse;
    for (const Run& part : parts) {
        if (blind(part, row)) {
            if (part.trial().dialect().empty_row != EmptyRow::zeros) continue;
            const double said = part.lse().get(flat(part.problem(), row));
            if (said == part.trial().dialect().lse_of_no_key()) continue;
            lse.push_back(Interval::exactly(said));
        } else {
            lse.push_back(lse_truth(part, row));
        }
        merge.parts.push_back(&part);
    }
    double most = -infinite, sum = 0, worst = 0;
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
    if (!(merge.off < off_max)) return Interval::exactly(std::numeric_limits<double>::quiet_NaN());
    double error = 0;
    for (std::size_t p = 0; p < merge.parts.size(); ++p)
        error += merge.share[p] * (merge.excess[p] * std::abs(part[p].mid() - centre) +
                                   (1 + merge.excess[p]) * part[p].radius());
    const double own = 32 * 0x1p-53 * magnitude;  // shares: exp, a sum of three and a quotient, 16
                                                  // units as above; products and their sum: as many
    return Interval::around(centre, evaluation * error / (1 - merge.off) + own);
}

/// The keys up to `first_end`, and the rest, in one part or in two.
Judgement judge_merge(const Trial& trial, const std::vector<PairedCase>& cut,
                      std::int64_t first_end) {
    const Run whole(trial);
    std::vector<Run> parts;
    for (const PairedCase& part : cut) parts.emplace_back(trial, part.problem, part.inputs);
    const Problem& problem = whole.problem();
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(whole, row) || !mergeable(parts, row)) continue;
        const Merge merge = merge_row(parts, row);
        if (merge.parts.empty()) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c)
            tally.same(truth(whole, row, c), merged(merge, row, c), output_at(row, c), [&] {
                return fmt::format(
                    "keys cut at {} and merged by their log-sum-exp give {} another output than "
                    "the whole",
                    first_end, name_of(problem, row));
            });
        tally.same(lse_truth(whole, row), merge.lse, lse_at(row), [&] {
            return fmt::format("keys cut at {} and merged give {} another log-sum-exp", first_end,
                               name_of(problem, row));
        });
    }
    return tally.judgement(nothing_visible);
}

}  // namespace

Plan parts_merge(const Given& given) {
    const Problem& problem = given.problem();
    if (problem.len_kv < 2) return not_applicable("one key cannot be split");
    const std::vector<std::int64_t> ends =
        cuts(given, stream_of("partition.merge"), problem.len_kv);
    std::vector<PairedCase> parts;
    for (std::size_t p = 0; p + 1 < ends.size(); ++p) {
        parts.push_back(
            with_keys(problem, given.inputs(), range(ends[p], ends[p + 1] - ends[p]), {}));
        if (!given.supports(parts.back().problem))
            return not_applicable("the kernel does not take a part of the keys");
    }
    return [parts, first_end = ends[1]](const Trial& trial) {
        return judge_merge(trial, parts, first_end);
    };
}

}  // namespace attest::law
