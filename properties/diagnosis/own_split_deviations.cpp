// What goes wrong where keys are parted, of a kernel that parts them of its own accord: the same as
// where the problem asks for splits.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

/// Into how many parts so many keys go: those of the axis, or each sequence's own.
struct OwnSplits {
    std::string id, says;
    std::function<std::int64_t(std::int64_t keys)> of;
    bool by_sequence = false;

    std::int64_t parts(const Problem& p, std::int64_t b) const {
        const std::int64_t keys = by_sequence ? length_of(p.mask.lens_kv, p.len_kv, b) : p.len_kv;
        return std::max<std::int64_t>(of(keys), 1);
    }
    /// Of all sequences alike, or one after the other.
    std::vector<std::int64_t> parts(const Problem& p) const {
        std::vector<std::int64_t> list{parts(p, 0)};
        for (std::int64_t b = 1; by_sequence && b < p.batch; ++b) list.push_back(parts(p, b));
        return list;
    }
    bool parts_all(const Problem& p) const {  ///< into as many
        const std::vector<std::int64_t> list = parts(p);
        return std::ranges::count(list, list.front()) == std::ssize(list);
    }
};

OwnSplits at_most(const OwnSplits& own, std::int64_t most) {
    return {fmt::format("{}_most_{}", own.id, most), fmt::format("{}, at most {}", own.says, most),
            [of = own.of, most](std::int64_t keys) { return std::min(of(keys), most); }};
}

OwnSplits of_each_sequence(OwnSplits own) {
    own.id += "_each_sequence";
    own.says += ", each sequence by its own number of keys";
    own.by_sequence = true;
    return own;
}

std::vector<OwnSplits> ways_to_part() {
    std::vector<OwnSplits> list;
    for (const std::int64_t each : {64, 128, 256, 512, 32, 16}) {
        list.push_back({fmt::format("each_{}", each),
                        fmt::format("split to {} keys of its own accord", each),
                        [each](std::int64_t keys) { return (keys + each - 1) / each; }});
        list.push_back({fmt::format("whole_{}", each),
                        fmt::format("split to {} keys and more of its own accord", each),
                        [each](std::int64_t keys) { return keys / each; }});
    }
    for (const std::int64_t each : {64, 128, 256})
        list.push_back({fmt::format("over_{}", each),
                        fmt::format("split of its own accord into one part more than it has "
                                    "whole {} keys",
                                    each),
                        [each](std::int64_t keys) { return keys / each + 1; }});
    for (const std::int64_t n : {2, 4, 8, 16})
        list.push_back({std::to_string(n), fmt::format("split into {} of its own accord", n),
                        [n](std::int64_t keys) { return std::min(n, keys); }});
    for (const std::int64_t n : {2, 4, 8, 16})
        for (const std::int64_t above : {32, 64, 128, 256, 512})
            list.push_back({fmt::format("{}_above_{}", n, above),
                            fmt::format("split into {} of its own accord above {} keys", n, above),
                            [n, above](std::int64_t keys) { return keys > above ? n : 1; }});
    for (std::size_t n = 0, uncapped = list.size(); n < uncapped; ++n)
        for (const std::int64_t most : {4, 8, 16, 32}) list.push_back(at_most(list[n], most));
    for (std::size_t n = 0, alike = list.size(); n < alike; ++n)
        list.push_back(of_each_sequence(list[n]));
    return list;
}

/// Of ways that part the keys of every call alike the first.
std::vector<OwnSplits> told_apart(std::vector<OwnSplits> ways, const AllEvidence& evidence) {
    std::set<std::vector<std::int64_t>> seen;
    std::erase_if(ways, [&](const OwnSplits& own) {
        std::vector<std::int64_t> splits;
        for (const auto* calls : {&evidence.wrong, &evidence.right})
            for (const Evidence& e : *calls)
                if (e.asked.problem.splits == 0)
                    for (std::int64_t b = 0; b < e.asked.problem.batch; ++b)
                        splits.push_back(own.parts(e.asked.problem, b));
        return !seen.insert(std::move(splits)).second;
    });
    return ways;
}

/// Rows of a key head's queries.
std::int64_t rows_of_group(const Problem& p) {
    return p.len_q * group_size(p);
}

/// What a deviation predicts of calls with so many splits: most ways to part keys come to the same.
/// Asked by several threads at once.
class PartedAnswers {
public:
    std::optional<bound::Expected> of(const Deviation& d, const Specification& parted,
                                      const bound::Expected& truth) {
        const auto call = rows_of(parted);  // the same for the same call, whatever its splits
        const std::pair key(call.get(), parted.problem.splits);
        {
            const std::lock_guard lock(mutex_);
            const auto known = known_.find(key);
            if (known != known_.end() && known->second.call.lock() == call)
                return known->second.answer;
        }
        std::optional<bound::Expected> answer = predict(d, parted, truth);
        const std::lock_guard lock(mutex_);
        known_[key] = {call, answer};
        return answer;
    }

private:
    using Rows = std::vector<oracle::RowDetail>;
    struct Answered {
        std::weak_ptr<const Rows> call;
        std::optional<bound::Expected> answer;
    };
    std::mutex mutex_;
    std::map<std::pair<const Rows*, std::int64_t>, Answered> known_;
};

void take_sequence(const Problem& p, std::int64_t b, const bound::Expected& from,
                   bound::Expected& to) {
    const auto take = [&](const auto& numbers, auto& own, std::int64_t each) {
        if (numbers.empty()) own.clear();  // it is not judged
        if (own.empty()) return;
        const std::int64_t count = p.heads_q * p.len_q * each;
        std::copy_n(numbers.begin() + b * count, count, own.begin() + b * count);
    };
    take(from.output, to.output, value_dim(p));
    take(from.lse, to.lse, 1);
    take(from.row_empty, to.row_empty, 1);
}

/// rows_most: none of a call with more rows of a group; 0: any. asked_too: also in the splits that
/// a problem asks for.
Deviation parted(const Deviation& d, const std::shared_ptr<PartedAnswers>& answers,
                 const OwnSplits& own, std::int64_t rows_most, bool asked_too) {
    const std::string few =
        rows_most == 0 ? ""
                       : fmt::format(" in calls of up to {} rows of a group's heads", rows_most);
    // One part alone is none, but where that is a form of the same.
    const auto split = [own, rows_most, asked_too, alone = d.by_parts](
                           const Specification& s, std::int64_t b) -> std::optional<Specification> {
        if (s.problem.splits > 0) return asked_too ? std::optional(s) : std::nullopt;
        if (rows_most > 0 && rows_of_group(s.problem) > rows_most) return std::nullopt;
        Specification out = s;
        out.problem.splits = own.parts(s.problem, b);
        if (out.problem.splits < 2 && !alone) return std::nullopt;
        return out;
    };
    Deviation own_accord = formula_deviation(
        fmt::format("{}_own_{}{}", d.id, own.id,
                    rows_most == 0 ? "" : fmt::format("_of_{}", rows_most)),
        d.says + "; " + own.says + few,
        [d, answers, split, own](const Specification& s,
                                 const bound::Expected& truth) -> std::optional<bound::Expected> {
            if (own.parts_all(s.problem)) {
                const auto parted = split(s, 0);
                return parted ? answers->of(d, *parted, truth) : std::nullopt;
            }
            bound::Expected out = truth;
            bool any = false;
            for (std::int64_t b = 0; b < s.problem.batch; ++b) {
                const auto parted = split(s, b);
                const auto answer = parted ? answers->of(d, *parted, truth) : std::nullopt;
                any = any || answer;
                if (answer) take_sequence(s.problem, b, *answer, out);
            }
            return any ? std::optional(out) : std::nullopt;
        });
    if (d.lse_refutes)
        own_accord.lse_refutes = [refutes = d.lse_refutes, split, own](const Specification& s,
                                                                       const bound::Expected& truth,
                                                                       const Tensor& lse) {
            if (!own.parts_all(s.problem)) return false;
            const auto parted = split(s, 0);
            return parted && refutes(*parted, truth, lse);
        };
    own_accord.declares = d.declares;
    own_accord.tells = d.tells;
    own_accord.form_of = d.form_of.empty() ? d.id : d.form_of;
    own_accord.entails = d.entails;
    return own_accord;
}

Deviation where_split(const Deviation& d) {
    return as_form_of(d.id,
                      formula_deviation(d.id + "_where_split", d.says + ", where keys are split",
                                        [d](const Specification& s, const bound::Expected& truth) {
                                            return s.problem.splits < 2 ? std::nullopt
                                                                        : predict(d, s, truth);
                                        }));
}

/// What has to do with splits, from all lists, and what may be forgotten where parts are merged.
std::vector<Deviation> deviations_of_splits(bool paged) {
    std::vector<Deviation> list;
    const auto take = [&list](const auto& from) {
        for (const Deviation& d : from) {
            // Those of split_tail_dropped that have splits of their own are listed.
            const bool parts = d.form_of == "split_tail_dropped";
            if (d.id.find("split") != d.id.npos && !parts) list.push_back(d);
            if (d.id == "lse_without_sink" || d.id == "sink_omitted" || d.id == "mask_ignored")
                list.push_back(where_split(d));
        }
    };
    take(deviations());
    take(counted_without_keys(paged));
    take(sinks_of_splits());
    take(lse_of_splits());
    take(split_outputs_rounded(true));
    take(early_limits());
    return list;
}

/// With the smallest, and with a few more where it has something to say: most ways to part are no
/// matter then.
bool agrees_with_all(const Deviation& d, std::span<const Evidence* const> calls) {
    return agrees(d, *calls.front()) &&
           std::ranges::all_of(calls.subspan(1), [&d](const Evidence* e) {
               return agrees(d, *e) || !predict(d, e->asked, e->truth);
           });
}

}  // namespace

std::vector<Deviation> own_splits(const AllEvidence& evidence) {
    const std::vector<Evidence>& wrong = evidence.wrong;
    std::vector<Deviation> list;
    std::vector<const Evidence*> calls;
    for (const Evidence& e : wrong)
        if (e.asked.problem.splits == 0) calls.push_back(&e);
    std::ranges::stable_sort(calls, {}, [](const Evidence* e) {
        return static_cast<std::int64_t>(e->truth.row_empty.size()) * e->asked.problem.len_kv;
    });
    if (calls.empty()) return list;
    std::int64_t rows = 1;
    for (const Evidence* e : calls) rows = std::max(rows, rows_of_group(e->asked.problem));
    const std::vector<OwnSplits> ways = told_apart(ways_to_part(), evidence);
    const bool asked = calls.size() < wrong.size();
    constexpr std::size_t few = 4;
    const std::span<const Evidence* const> smallest(calls.data(), std::min(few, calls.size()));
    for (const Deviation& d : deviations_of_splits(evidence.paged())) {
        // By how many parts each of the smallest calls has; no wrong call has more rows.
        std::map<std::vector<std::int64_t>, bool> explains_first;
        std::map<std::vector<std::vector<std::int64_t>>, bool> explained;
        const auto answers = std::make_shared<PartedAnswers>();
        for (const OwnSplits& own : ways) {
            const auto is_parted = [&own](const Evidence* e) {
                return std::ranges::max(own.parts(e->asked.problem)) > 1;
            };
            if (std::ranges::none_of(calls, is_parted)) continue;
            std::vector<std::vector<std::int64_t>> parts;
            for (const Evidence* e : smallest) parts.push_back(own.parts(e->asked.problem));
            const auto [first, untried] = explains_first.emplace(parts.front(), false);
            if (untried)
                first->second = agrees(parted(d, answers, own, 0, asked), *smallest.front());
            if (!first->second) continue;
            const auto [known, is_new] = explained.emplace(std::move(parts), false);
            if (is_new)
                known->second = agrees_with_all(parted(d, answers, own, 0, asked), smallest);
            if (!known->second) continue;
            for (const std::int64_t rows_most : {std::int64_t{0}, power_of_two_at_least(rows)})
                list.push_back(parted(d, answers, own, rows_most, asked));
        }
    }
    return list;
}

}  // namespace attest::diagnosis
