#include "properties/search/probed_numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "properties/search/features.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

using kernel::NumberSet;
using kernel::Quantity;
using kernel::Queries;
using kernel::Takes;

constexpr std::int64_t longest_asked = 256, longest_known = 131072;

/// Which of the numbers are taken; empty where all are, or none: then nothing is learned.
std::vector<std::int64_t> taken_of(const std::vector<std::int64_t>& numbers,
                                   const std::function<bool(std::int64_t)>& takes) {
    std::vector<std::int64_t> taken;
    for (const std::int64_t n : numbers)
        if (takes(n)) taken.push_back(n);
    return taken.size() == numbers.size() ? std::vector<std::int64_t>{} : taken;
}

/// Of a kernel that takes nothing without lengths of each sequence, they are half of what there is;
/// over a cache no fewer than the queries.
Problem with_lengths(Problem p, std::int64_t len_q, std::int64_t len_kv) {
    p.len_q = len_q;
    p.len_kv = len_kv;
    if (p.cache.present) p.cache.len = len_kv - len_q;
    for (std::int64_t& len : p.mask.lens_q) len = len_q / 2;
    for (std::int64_t& len : p.mask.lens_kv)
        len = std::max(len_kv / 2, p.cache.present ? len_q : 0);
    return p;
}

/// The last multiple that is taken on the way from one that is to one that is not, up or down.
std::int64_t last_taken(std::int64_t multiple, std::int64_t taken, std::int64_t refused,
                        const std::function<bool(std::int64_t)>& takes) {
    std::int64_t yes = taken / multiple, no = refused / multiple;
    while (std::abs(yes - no) > 1) {
        const std::int64_t middle = (yes + no) / 2;
        (takes(middle * multiple) ? yes : no) = middle;
    }
    return yes * multiple;
}

/// What lengths to 256 that are taken have in common, if that is a multiple and two limits and
/// nothing else.
NumberSet short_lengths_taken(std::int64_t longest,
                              const std::function<bool(std::int64_t)>& takes) {
    std::vector<std::int64_t> asked = {1,  2,  3,  4,  5,  7,  8,  9,   12,  16,  17,           20,
                                       24, 32, 33, 48, 64, 65, 96, 128, 129, 192, longest_asked};
    std::erase_if(asked, [longest](std::int64_t len) { return len > longest; });
    const std::vector<std::int64_t> taken = taken_of(asked, takes);
    if (taken.empty()) return {};
    NumberSet lengths{.multiple = longest_asked};
    for (const std::int64_t len : taken)
        while (len % lengths.multiple != 0) lengths.multiple /= 2;
    if (taken.back() != asked.back()) lengths.most = taken.back();
    std::int64_t refused = 0;  // of the multiples below the first that is taken
    for (const std::int64_t len : asked)
        if (len < taken.front() && len % lengths.multiple == 0) refused = len;
    if (refused > 0) lengths.least = last_taken(lengths.multiple, taken.front(), refused, takes);
    const bool alike = std::all_of(asked.begin(), asked.end(), [&](std::int64_t len) {
        return lengths.has(len) == (std::ranges::find(taken, len) != taken.end());
    });
    if (!alike) return {};
    for (const std::int64_t len : asked)
        if (lengths.most && len > *lengths.most && len % lengths.multiple == 0) {
            lengths.most = last_taken(lengths.multiple, *lengths.most, len, takes);
            break;
        }
    return lengths;
}

NumberSet lengths_taken(std::int64_t longest, const std::function<bool(std::int64_t)>& takes) {
    NumberSet lengths = short_lengths_taken(longest, takes);
    if (longest < longest_asked || lengths.most || !takes(longest)) return lengths;
    for (std::int64_t len = longest; len < longest_known; len *= 2)
        if (!takes(2 * len)) {
            lengths.most = last_taken(lengths.multiple, len, 2 * len, takes);
            break;
        }
    return lengths;
}

Queries queries_taken(const Problem& p, const Supports& takes) {
    const std::int64_t unit = p.len_kv;
    if (takes(with_lengths(p, 2 * unit, unit)) && !p.cache.present) return Queries::any;
    if (takes(with_lengths(p, unit, 2 * unit))) return Queries::at_most_keys;
    return takes(with_lengths(p, 2 * unit, 2 * unit)) ? Queries::as_keys : Queries::any;
}

/// Where a problem's own rules ask for as many queries as keys unless there is a cache, only a call
/// with one tells what the kernel takes.
Problem with_own_lengths(const Problem& p, FeatureSet features, const Supports& takes) {
    if (!features.has(Feature::cache) || !counts_alike(features_of(p), {})) return p;
    Problem cached = p;
    cached.cache.present = true;
    cached = with_lengths(cached, p.len_q, 2 * p.len_kv);
    return takes(cached) ? cached : p;
}

void ask_lengths(kernel::NumberLimits& found, const Problem& p, Queries declared,
                 const Supports& takes) {
    NumberSet &len_q = found[Quantity::len_q], &len_kv = found[Quantity::len_kv];
    // Where lengths are few and far between none of those asked about tells how they relate.
    found.queries = declared;
    const bool by_rule = counts_alike(features_of(p), {});
    if (p.len_q == p.len_kv && !by_rule)
        found.queries = std::max(declared, queries_taken(p, takes));
    if (found.queries == Queries::as_keys || by_rule) {
        len_q = len_kv = lengths_taken(
            longest_asked, [&](std::int64_t len) { return takes(with_lengths(p, len, len)); });
        return;
    }
    std::int64_t keys = longest_asked;
    while (keys > p.len_q && !takes(with_lengths(p, p.len_q, keys))) keys /= 2;
    const bool fewer = p.cache.present || found.queries == Queries::at_most_keys;
    const std::int64_t keys_each = p.mask.lens_kv.empty() ? 1 : 2;  // a sequence has half of them
    len_q = lengths_taken(fewer ? keys : longest_asked, [&](std::int64_t len) {
        return takes(with_lengths(p, len, fewer ? std::max(keys_each * len, keys) : keys));
    });
    const std::int64_t queries = len_q.nearest(1);
    len_kv = lengths_taken(longest_asked, [&](std::int64_t len) {
        // Fewer keys than the fewest queries, or no room for fewer: nothing that could be asked.
        if (fewer && len < queries + keys_each - 1) return len % len_q.multiple == 0;
        return takes(with_lengths(p, queries, len));
    });
}

/// Of the usual numbers those that the manifest leaves open, and the largest it names.
std::vector<std::int64_t> within(std::vector<std::int64_t> usual, const NumberSet& declared) {
    if (!declared.only.empty()) return declared.only;
    std::erase_if(usual, [&](std::int64_t n) { return !declared.has(n); });
    if (declared.most) usual.push_back(declared.nearest(*declared.most));
    return usual;
}

void ask_heads(kernel::NumberLimits& found, const Problem& p, FeatureSet features,
               const Takes& declared, const Supports& takes) {
    const auto with = [&](std::int64_t batch, std::int64_t heads_kv, std::int64_t group) {
        Problem other = p;
        other.batch = batch;
        other.heads_kv = heads_kv;
        other.heads_q = heads_kv * group;
        return other;
    };
    // What is no problem at all, as a batch of packed sequences, tells nothing of the kernel.
    const auto taken = [&](std::vector<std::int64_t> numbers, const auto& problem_of) {
        std::erase_if(
            numbers, [&](std::int64_t n) { return find_contradiction(problem_of(n)).has_value(); });
        return taken_of(numbers, [&](std::int64_t n) { return takes(problem_of(n)); });
    };
    const std::int64_t group = group_size(p);
    found[Quantity::batch].only =
        taken(within({1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33}, declared[Quantity::batch]),
              [&](std::int64_t n) { return with(n, p.heads_kv, group); });
    found[Quantity::heads_kv].only =
        taken(within({1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64}, declared[Quantity::heads_kv]),
              [&](std::int64_t n) { return with(p.batch, n, group); });
    if (features.has(Feature::gqa))
        found[Quantity::group].only =
            taken(within({1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128}, declared[Quantity::group]),
                  [&](std::int64_t n) { return with(p.batch, p.heads_kv, n); });
}

void ask_pages(kernel::NumberLimits& found, const Problem& p, const NumberSet& declared,
               const Supports& takes) {
    const auto takes_pages = [&](std::int64_t n) {
        Problem paged = p;
        if (!p.cache.present && p.len_q == p.len_kv) paged.len_q = p.len_kv / 4;
        paged.cache.present = true;
        paged.cache.len = paged.len_kv - paged.len_q;
        paged.cache.page_size = n;
        return takes(paged);
    };
    std::vector<std::int64_t> asked = within({1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256}, declared);
    std::erase(asked, 0);
    std::vector<std::int64_t>& sizes = found[Quantity::page_size].only;
    sizes = taken_of(asked, takes_pages);
    // A cache without pages is another matter than their size.
    if (!sizes.empty() && takes_pages(0)) sizes.insert(sizes.begin(), 0);
}

}  // namespace

kernel::NumberLimits probed_numbers(const Problem& taken, FeatureSet features,
                                    const Takes& declared, const Supports& takes) {
    kernel::NumberLimits found;
    ask_lengths(found, with_own_lengths(taken, features, takes), declared.queries, takes);
    const auto listed = [&](Quantity q) { return !declared[q].only.empty(); };
    const bool alike =
        found.queries == Queries::as_keys && (listed(Quantity::len_q) || listed(Quantity::len_kv));
    for (const Quantity length : {Quantity::len_q, Quantity::len_kv})
        if (alike || listed(length)) found[length] = {};
    ask_heads(found, taken, features, declared, takes);
    if (features.has(Feature::paged)) ask_pages(found, taken, declared[Quantity::page_size], takes);
    return found;
}

}  // namespace attest::search
