#include "properties/diagnosis/shared_dropout.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "properties/diagnosis/relatives.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::diagnosis {

namespace {

/// Whose fate a weight has: that of another cell, [batch, head, query, key], or its own with
/// another seed.
struct SharedFate {
    std::string id, says;
    std::function<Shape(const Problem&, Shape at)> cell{};
    std::uint64_t seed = 0;  ///< further
};

struct ReadMask {
    Problem problem;
    law::KeptMask mask;
    std::vector<std::pair<std::uint64_t, law::KeptMask>> reseeded;
};

constexpr std::uint64_t seeds[] = {1, std::uint64_t{1} << 8, std::uint64_t{1} << 16,
                                   std::uint64_t{1} << 32};

void add_axes(std::vector<SharedFate>& list) {
    const auto add = [&list](const char* id, const char* says, auto cell) {
        list.push_back({id, says, cell});
    };
    add("dropout_one_for_heads", "one dropout mask for all heads", [](const Problem&, Shape at) {
        at[1] = 0;
        return at;
    });
    add("dropout_one_for_group", "one dropout mask for all heads of a group",
        [](const Problem& p, Shape at) {
            at[1] -= at[1] % group_size(p);
            return at;
        });
    add("dropout_by_head_in_group", "a dropout mask by a head's number in its group",
        [](const Problem& p, Shape at) {
            at[1] %= group_size(p);
            return at;
        });
    add("dropout_one_for_sequences", "one dropout mask for all sequences",
        [](const Problem&, Shape at) {
            at[0] = 0;
            return at;
        });
    add("dropout_one_for_queries", "one dropout mask for all queries",
        [](const Problem&, Shape at) {
            at[2] = 0;
            return at;
        });
    add("dropout_one_for_keys", "a query's weights dropped all together",
        [](const Problem&, Shape at) {
            at[3] = 0;
            return at;
        });
    struct Axis {
        const char* name;
        std::int64_t Problem::*size;
    };
    constexpr Axis axes[] = {{"sequence", &Problem::batch},
                             {"head", &Problem::heads_q},
                             {"query", &Problem::len_q},
                             {"key", &Problem::len_kv}};
    for (std::size_t a = 0; a < std::size(axes); ++a)
        for (std::size_t b = a + 1; b < std::size(axes); ++b)
            list.push_back(
                {fmt::format("dropout_by_{}_and_{}", axes[a].name, axes[b].name),
                 fmt::format("a dropout mask by the sum of {} and {}", axes[a].name, axes[b].name),
                 [a, b, size = axes[b].size](const Problem& p, Shape at) {
                     if (at[a] == 0 || at[b] + 1 == p.*size) return at;
                     --at[a];
                     ++at[b];
                     return at;
                 }});
}

/// In the order of tiles: what repeats after 8 repeats after 16.
const std::vector<SharedFate>& shared_fates() {
    static const std::vector<SharedFate> list = [] {
        std::vector<SharedFate> all;
        for (const std::uint64_t further : seeds)
            all.push_back({fmt::format("dropout_seed_{}", further),
                           further == 1
                               ? std::string("one dropout mask whatever the seed")
                               : fmt::format("one dropout mask for seeds {} apart", further),
                           {},
                           further});
        add_axes(all);
        for (const std::int64_t tile : {2, 4, 8, 16, 32, 64, 128}) {
            all.push_back({fmt::format("dropout_key_in_{}", tile),
                           fmt::format("a dropout mask by a key's place in its tile of {}", tile),
                           [tile](const Problem&, Shape at) {
                               at[3] %= tile;
                               return at;
                           }});
            all.push_back(
                {fmt::format("dropout_query_in_{}", tile),
                 fmt::format("a dropout mask by a query's place in its block of {}", tile),
                 [tile](const Problem&, Shape at) {
                     at[2] %= tile;
                     return at;
                 }});
        }
        for (const std::int64_t row : {2, 4, 8, 16, 32}) {
            all.push_back({fmt::format("dropout_keys_by_{}", row),
                           fmt::format("{} keys in a row dropped together", row),
                           [row](const Problem&, Shape at) {
                               at[3] -= at[3] % row;
                               return at;
                           }});
            all.push_back({fmt::format("dropout_queries_by_{}", row),
                           fmt::format("the weights of {} queries in a row dropped together", row),
                           [row](const Problem&, Shape at) {
                               at[2] -= at[2] % row;
                               return at;
                           }});
        }
        return all;
    }();
    return list;
}

std::optional<ReadMask> read_masks(search::Kernel& kernel, const Case& c) try {
    const Problem& p = c.problem;
    const search::KernelTrial trial(kernel, c);
    const TensorSet inputs = make_inputs(c);
    ReadMask found{p, law::read_mask(trial, p, inputs), {}};
    for (const std::uint64_t further : seeds)
        found.reseeded.emplace_back(further,
                                    law::read_mask(trial, law::reseeded(p, further), inputs));
    return found;
} catch (const search::NoAnswer&) {
    return std::nullopt;
} catch (const BadInput&) {
    return std::nullopt;
}

/// How many weights have the fate that they are said to share; none where one has not.
std::optional<std::int64_t> sharing(const SharedFate& fate, const ReadMask& r) {
    const law::KeptMask* other = &r.mask;
    for (const auto& [further, mask] : r.reseeded)
        if (further == fate.seed) other = &mask;
    std::int64_t count = 0;
    for (std::int64_t at = 0; at < r.mask.keep.size(); ++at) {
        const Shape cell = law::index_of(r.mask.keep.shape(), at);
        const Shape shared = fate.cell ? fate.cell(r.problem, cell) : cell;
        const std::int64_t from = r.mask.keep.flat(shared[0], shared[1], shared[2], shared[3]);
        if ((fate.cell && from == at) || !r.mask.sees(at) || !other->sees(from)) continue;
        if (r.mask.kept(at) != other->kept(from)) return std::nullopt;
        ++count;
    }
    return count;
}

/// The share of weights that are dropped: of few or none, to be dropped alike says little.
double dropped_share(const law::KeptMask& mask) {
    return mask.cells > 0 ? static_cast<double>(mask.dropped()) / static_cast<double>(mask.cells)
                          : 0;
}

}  // namespace

bool mask_is_readable(search::Kernel& kernel, const Case& c) {
    constexpr std::int64_t calls_max = 16;
    const Problem& p = c.problem;
    return !find_contradiction(p) && p.dropout.p > 0 && !too_large(c) &&
           law::reading_calls(p) <= calls_max && kernel.supports(p, nullptr);
}

std::optional<Explanation> shared_dropout(search::Kernel& kernel,
                                          const search::Counterexample& counterexample) {
    std::vector<Case> cases = relatives(counterexample.smallest);
    cases.insert(cases.begin(), {counterexample.smallest, counterexample.found.tried});
    std::vector<ReadMask> masks;
    const auto add = [&](const Case& c) {
        std::optional<ReadMask> mask = read_masks(kernel, c);
        if (mask) masks.push_back(std::move(*mask));
    };
    for (Case& c : cases) {
        c.problem = canonical(c.problem);
        if (mask_is_readable(kernel, c)) add(c);
    }
    // As the law asks it.
    const auto taken = [&kernel](const Problem& p) {
        return !find_contradiction(p) && kernel.supports(p, nullptr);
    };
    Problem own = counterexample.smallest.problem;
    own.want_grad = false;
    if (const auto more = law::with_more_keys(own, taken)) add({*more, {}});
    // Of two weights that are dropped at the rate p that is seen, each for itself, both are kept or
    // both dropped with p^2 + (1-p)^2: that so many pairs are, is less likely than 1 % for all
    // fates tried together.
    const double most = std::log(static_cast<double>(shared_fates().size()) * 100);
    for (const SharedFate& fate : shared_fates()) {
        Explanation found{fate.id, fate.says, {}};
        double unlikely = 0;
        std::int64_t weights = 0;
        bool refuted = false;
        for (const ReadMask& r : masks) {
            const double p = dropped_share(r.mask);
            const auto count = sharing(fate, r);
            refuted = refuted || !count;
            if (refuted) break;
            weights += *count;
            unlikely -= static_cast<double>(*count) * std::log(p * p + (1 - p) * (1 - p));
        }
        if (refuted || unlikely <= most) continue;
        found.says += fmt::format(" (all {} weights that show it)", weights);
        return found;
    }
    return std::nullopt;
}

}  // namespace attest::diagnosis
