// What goes wrong where keys are parted, of a kernel that parts them of its own accord: the same as
// where the problem asks for splits.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// Into how many parts so many keys go.
struct OwnSplits {
    std::string id, says;
    std::function<std::int64_t(std::int64_t keys)> of;
};

std::vector<OwnSplits> ways_to_part() {
    std::vector<OwnSplits> list;
    for (const std::int64_t each : {64, 128, 256, 512}) {
        list.push_back({fmt::format("each_{}", each),
                        fmt::format("split to {} keys of its own accord", each),
                        [each](std::int64_t keys) { return (keys + each - 1) / each; }});
        list.push_back({fmt::format("whole_{}", each),
                        fmt::format("split to {} keys and more of its own accord", each),
                        [each](std::int64_t keys) { return keys / each; }});
    }
    for (const std::int64_t n : {2, 4, 8, 16})
        list.push_back({std::to_string(n), fmt::format("split into {} of its own accord", n),
                        [n](std::int64_t keys) { return std::min(n, keys); }});
    return list;
}

/// Rows of a key head's queries.
std::int64_t rows_of_group(const Problem& p) {
    return p.len_q * group_size(p);
}

/// rows_most: none of a call with more rows of a group; 0: any.
Deviation parted(const Deviation& d, const OwnSplits& own, std::int64_t rows_most) {
    const std::string few =
        rows_most == 0 ? ""
                       : fmt::format(" in calls of up to {} rows of a group's heads", rows_most);
    return {.id = fmt::format("{}_own_{}{}", d.id, own.id,
                              rows_most == 0 ? "" : fmt::format("_of_{}", rows_most)),
            .says = d.says + "; " + own.says + few,
            .formula = [d, of = own.of, rows_most](
                           const Specification& s,
                           const bound::Expected& truth) -> std::optional<bound::Expected> {
                const bool many = rows_most > 0 && rows_of_group(s.problem) > rows_most;
                if (s.problem.splits > 0 || many) return std::nullopt;
                Specification split = s;
                split.problem.splits = of(s.problem.len_kv);
                if (split.problem.splits < 2) return std::nullopt;
                return predict(d, split, truth);
            },
            .tells = d.tells};
}

Deviation where_split(const Deviation& d) {
    return formula_deviation(d.id + "_where_split", d.says + ", where keys are split",
                             [d](const Specification& s, const bound::Expected& truth) {
                                 return s.problem.splits < 2 ? std::nullopt : predict(d, s, truth);
                             });
}

/// What has to do with splits, from all lists, and what may be forgotten where parts are merged.
std::vector<Deviation> deviations_of_splits() {
    std::vector<Deviation> list;
    const auto take = [&list](const auto& from) {
        for (const Deviation& d : from) {
            if (d.id.find("split") != d.id.npos && !d.id.starts_with("split_tail_dropped"))
                list.push_back(d);
            if (d.id == "lse_without_sink" || d.id == "sink_omitted" || d.id == "mask_ignored")
                list.push_back(where_split(d));
        }
    };
    take(deviations());
    take(counted_without_keys());
    take(sinks_of_splits());
    take(lse_of_splits());
    return list;
}

}  // namespace

std::vector<Deviation> own_splits(const std::vector<Evidence>& wrong) {
    std::vector<Deviation> list;
    // One that no way parts is explained by none of them.
    const auto smallest = std::ranges::min_element(wrong, {}, [](const Evidence& e) {
        return static_cast<std::int64_t>(e.truth.row_empty.size()) * e.asked.problem.len_kv;
    });
    if (smallest == wrong.end() || smallest->asked.problem.len_kv < 2) return list;
    std::int64_t rows = 1;
    for (const Evidence& e : wrong) rows = std::max(rows, rows_of_group(e.asked.problem));
    for (const Deviation& d : deviations_of_splits())
        for (const OwnSplits& own : ways_to_part())
            for (const std::int64_t rows_most : {std::int64_t{0}, power_of_two_at_least(rows)}) {
                Deviation mine = parted(d, own, rows_most);
                if (agrees(mine, *smallest)) list.push_back(std::move(mine));
            }
    return list;
}

}  // namespace attest::diagnosis
