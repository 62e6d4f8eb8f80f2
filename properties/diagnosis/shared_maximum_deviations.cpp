// A maximum that is not of the row's own scores: one for a block of rows, or that of the products
// before a scale below 0.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "properties/diagnosis/other_maximum.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

/// The largest of blocks of so many queries of a head, or of the rows of all heads of a group,
/// query by query.
StartOf maximum_of_blocks(std::int64_t size, bool of_group) {
    return [size, of_group](const Specification& s, std::size_t count) {
        const Problem& p = s.problem;
        const auto rows = rows_of(s);
        const std::int64_t group = of_group ? group_size(p) : 1;
        const auto block = [&](std::size_t n) {
            const auto flat = static_cast<std::int64_t>(n);
            const std::int64_t head = flat / p.len_q, query = flat % p.len_q;
            return std::pair(head / group, (query * group + head % group) / size);
        };
        std::map<std::pair<std::int64_t, std::int64_t>, double> largest;
        for (std::size_t n = 0; n < count; ++n) {
            double& most = largest.try_emplace(block(n), -infinite).first->second;
            most = std::max(most, (*rows)[n].max);
        }
        std::vector<double> maxima;
        for (std::size_t n = 0; n < count; ++n) maxima.push_back(largest[block(n)]);
        return maxima;
    };
}

/// At a scale below 0 the largest product has the smallest score.
std::vector<double> scores_of_largest_products(const Specification& s, std::size_t) {
    std::vector<double> maxima;
    const auto rows = rows_of(s);
    const bool turned = effective_scale(s.problem) < 0;
    for (const oracle::RowDetail& row : *rows) {
        double least = infinite;
        for (const double score : row.scores)
            if (score > -infinite) least = std::min(least, score);
        maxima.push_back(turned && least < infinite ? least : row.max);
    }
    return maxima;
}

}  // namespace

std::vector<Deviation> maximum_of_other_rows(bool guarded) {
    std::vector<Deviation> list;
    for (const bool of_group : {false, true})
        for (const std::int64_t size : {2, 4, 8, 16, 32, 64, 128})
            list.push_back(underflowing(
                fmt::format("maximum_of_block_{}{}", size, of_group ? "_group" : ""),
                fmt::format("one maximum for {} {}: where a row's scores are all far below it, "
                            "every weight underflows and",
                            size, of_group ? "rows of all heads of a group" : "queries"),
                guarded,
                [size, of_group](double quotient, const Specification& s,
                                 const bound::Expected& truth) {
                    return maximum_from(maximum_of_blocks(size, of_group), quotient, s, truth);
                }));
    return list;
}

std::vector<Deviation> maximum_of_products(bool guarded) {
    return subtracting("maximum_of_products",
                       "the maximum of q.k before a scale below 0, which is the smallest score: "
                       "of scores far above it weights are infinite, and",
                       guarded, scores_of_largest_products);
}

}  // namespace attest::diagnosis
