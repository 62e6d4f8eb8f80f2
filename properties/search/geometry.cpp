#include "properties/search/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "properties/search/features.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

using kernel::Quantity;

constexpr std::int64_t longest_asked = 256, longest_known = 131072;

/// A list's largest member that is not above n; where there is none, its smallest.
std::int64_t nearest_of(const std::vector<std::int64_t>& list, std::int64_t n) {
    if (list.empty()) return n;
    std::int64_t best = *std::min_element(list.begin(), list.end());
    for (const std::int64_t member : list)
        if (member <= n) best = std::max(best, member);
    return best;
}

bool has(const std::vector<std::int64_t>& list, std::int64_t n) {
    return list.empty() || std::find(list.begin(), list.end(), n) != list.end();
}

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

/// The longest that is taken, somewhere between `lengths.most` and `refused`, both multiples.
std::int64_t longest_taken(const Lengths& lengths, std::int64_t refused,
                           const std::function<bool(std::int64_t)>& takes) {
    std::int64_t low = lengths.most / lengths.multiple, high = refused / lengths.multiple;
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (takes(middle * lengths.multiple) ? low : high) = middle;
    }
    return low * lengths.multiple;
}

/// The shortest that is taken, of those up to `taken`: all longer ones asked about were.
std::int64_t shortest_taken(std::int64_t multiple, std::int64_t refused, std::int64_t taken,
                            const std::function<bool(std::int64_t)>& takes) {
    std::int64_t low = refused / multiple, high = taken / multiple;
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (takes(middle * multiple) ? high : low) = middle;
    }
    return high * multiple;
}

/// What lengths to 256 that are taken have in common, if that is a multiple and two limits and
/// nothing else.
Lengths short_lengths_taken(std::int64_t longest, const std::function<bool(std::int64_t)>& takes) {
    std::vector<std::int64_t> asked = {1,  2,  3,  4,  5,  7,  8,  9,   12,  16,  17,           20,
                                       24, 32, 33, 48, 64, 65, 96, 128, 129, 192, longest_asked};
    std::erase_if(asked, [longest](std::int64_t len) { return len > longest; });
    const std::vector<std::int64_t> taken = taken_of(asked, takes);
    if (taken.empty()) return {};
    Lengths lengths{.multiple = longest_asked, .most = taken.back()};
    for (const std::int64_t len : taken)
        while (len % lengths.multiple != 0) lengths.multiple /= 2;
    if (lengths.most == asked.back()) lengths.most = 0;
    std::int64_t refused = 0;  // of the multiples below the first that is taken
    for (const std::int64_t len : asked)
        if (len < taken.front() && len % lengths.multiple == 0) refused = len;
    if (refused > 0)
        lengths.least = shortest_taken(lengths.multiple, refused, taken.front(), takes);
    const bool alike = std::all_of(asked.begin(), asked.end(), [&](std::int64_t len) {
        return has(taken, len) == lengths.has(len);
    });
    if (!alike) return {};
    for (const std::int64_t len : asked)
        if (lengths.most > 0 && len > lengths.most && len % lengths.multiple == 0) {
            lengths.most = longest_taken(lengths, len, takes);
            break;
        }
    return lengths;
}

Lengths lengths_taken(std::int64_t longest, const std::function<bool(std::int64_t)>& takes) {
    Lengths lengths = short_lengths_taken(longest, takes);
    if (longest < longest_asked || lengths.most > 0 || !takes(longest)) return lengths;
    for (std::int64_t len = longest; len < longest_known; len *= 2)
        if (!takes(2 * len)) {
            lengths.most = longest_taken({lengths.multiple, len}, 2 * len, takes);
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

void ask_lengths(Geometry& g, const Problem& p, Queries declared, const Supports& takes) {
    // Where lengths are few and far between none of those asked about tells how they relate.
    g.queries = declared;
    const bool by_rule = counts_alike(features_of(p), {});
    if (p.len_q == p.len_kv && !by_rule) g.queries = std::max(declared, queries_taken(p, takes));
    if (g.queries == Queries::as_keys || by_rule) {
        g.len_q = g.len_kv = lengths_taken(
            longest_asked, [&](std::int64_t len) { return takes(with_lengths(p, len, len)); });
        return;
    }
    std::int64_t keys = longest_asked;
    while (keys > p.len_q && !takes(with_lengths(p, p.len_q, keys))) keys /= 2;
    const bool fewer = p.cache.present || g.queries == Queries::at_most_keys;
    const std::int64_t keys_each = p.mask.lens_kv.empty() ? 1 : 2;  // a sequence has half of them
    g.len_q = lengths_taken(fewer ? keys : longest_asked, [&](std::int64_t len) {
        return takes(with_lengths(p, len, fewer ? std::max(keys_each * len, keys) : keys));
    });
    const std::int64_t queries = g.len_q.nearest(1);
    g.len_kv = lengths_taken(longest_asked, [&](std::int64_t len) {
        // Fewer keys than the fewest queries, or no room for fewer: nothing that could be asked.
        if (fewer && len < queries + keys_each - 1) return len % g.len_q.multiple == 0;
        return takes(with_lengths(p, queries, len));
    });
}

/// Of the usual numbers those that the manifest leaves open, and the largest it names.
std::vector<std::int64_t> within(std::vector<std::int64_t> usual,
                                 const kernel::NumberSet& declared) {
    if (!declared.only.empty()) return declared.only;
    std::erase_if(usual, [&](std::int64_t n) { return !declared.has(n); });
    if (declared.most) usual.push_back(declared.nearest(*declared.most));
    return usual;
}

void ask_heads(Geometry& g, const Problem& p, FeatureSet features, const kernel::Takes& declared,
               const Supports& takes) {
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
    g.batches = taken(within({1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33}, declared[Quantity::batch]),
                      [&](std::int64_t n) { return with(n, p.heads_kv, group); });
    g.heads_kv = taken(within({1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64}, declared[Quantity::heads_kv]),
                       [&](std::int64_t n) { return with(p.batch, n, group); });
    if (features.has(Feature::gqa))
        g.groups =
            taken(within({1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 128}, declared[Quantity::group]),
                  [&](std::int64_t n) { return with(p.batch, p.heads_kv, n); });
}

void ask_pages(Geometry& g, const Problem& p, const kernel::NumberSet& declared,
               const Supports& takes) {
    std::vector<std::int64_t> asked = within({1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256}, declared);
    std::erase(asked, 0);  // a cache without pages
    g.page_sizes = taken_of(asked, [&](std::int64_t n) {
        Problem paged = p;
        if (!p.cache.present && p.len_q == p.len_kv) paged.len_q = p.len_kv / 4;
        paged.cache.present = true;
        paged.cache.len = paged.len_kv - paged.len_q;
        paged.cache.page_size = n;
        return takes(paged);
    });
}

std::string in_words(const Lengths& lengths) {
    if (lengths.most == lengths.multiple) return std::to_string(lengths.most).append(" alone");
    std::string text;
    const auto add = [&](const char* words, std::int64_t number) {
        text.append(text.empty() ? "" : ", ").append(words).append(std::to_string(number));
    };
    if (lengths.multiple > 1) add("multiples of ", lengths.multiple);
    if (lengths.least > 1) add("from ", lengths.least);
    if (lengths.most > 0) add("up to ", lengths.most);
    return text;
}

}  // namespace

bool Lengths::has(std::int64_t len) const noexcept {
    return len % multiple == 0 && len >= least && (most == 0 || len <= most);
}

std::int64_t Lengths::nearest(std::int64_t len) const noexcept {
    const std::int64_t below = most == 0 ? len : std::min(len, most);
    const std::int64_t shortest = (least + multiple - 1) / multiple * multiple;
    return std::max(below - below % multiple, shortest);
}

bool Geometry::any() const noexcept {
    return batches.empty() && heads_kv.empty() && groups.empty() && page_sizes.empty() &&
           len_q.any() && len_kv.any() && queries == Queries::any;
}

Geometry probed_geometry(const Problem& taken, FeatureSet features, const kernel::Takes& declared,
                         const Supports& takes) {
    Geometry g;
    ask_lengths(g, with_own_lengths(taken, features, takes), declared.queries, takes);
    const auto listed = [&](Quantity q) { return !declared[q].only.empty(); };
    const bool alike =
        g.queries == Queries::as_keys && (listed(Quantity::len_q) || listed(Quantity::len_kv));
    if (alike || listed(Quantity::len_q)) g.len_q = {};
    if (alike || listed(Quantity::len_kv)) g.len_kv = {};
    ask_heads(g, taken, features, declared, takes);
    if (features.has(Feature::paged)) ask_pages(g, taken, declared[Quantity::page_size], takes);
    return g;
}

void snap(Problem& p, const Geometry& g, bool cached) {
    const std::int64_t group = nearest_of(g.groups, group_size(p));
    p.batch = nearest_of(g.batches, p.batch);
    p.heads_kv = nearest_of(g.heads_kv, p.heads_kv);
    p.heads_q = p.heads_kv * group;
    p.len_q = g.len_q.nearest(p.len_q);
    p.len_kv = g.len_kv.nearest(p.len_kv);
    if (g.queries == Queries::as_keys) p.len_q = p.len_kv;
    const bool fewer = cached || g.queries == Queries::at_most_keys;
    if (!fewer || p.len_q <= p.len_kv) return;
    p.len_q = g.len_q.nearest(p.len_kv);
    while (p.len_kv < p.len_q) p.len_kv += g.len_kv.multiple;
}

bool takes_shape(const Geometry& g, const Problem& p) {
    if (!has(g.batches, p.batch) || !has(g.heads_kv, p.heads_kv) || !has(g.groups, group_size(p)))
        return false;
    if (p.cache.page_size > 0 && !has(g.page_sizes, p.cache.page_size)) return false;
    if (!g.len_q.has(p.len_q) || !g.len_kv.has(p.len_kv)) return false;
    if (g.queries == Queries::as_keys && p.len_q != p.len_kv) return false;
    return g.queries != Queries::at_most_keys || p.len_q <= p.len_kv;
}

std::vector<std::string> described(const Geometry& g) {
    std::vector<std::string> limits;
    for (const auto& [what, numbers] :
         {std::pair{"batch", &g.batches}, std::pair{"key/value heads", &g.heads_kv},
          std::pair{"heads a group", &g.groups}, std::pair{"page size", &g.page_sizes}})
        if (!numbers->empty())
            limits.push_back(fmt::format("{}: {}", what, fmt::join(*numbers, ", ")));
    if (!g.len_q.any()) limits.push_back("queries: " + in_words(g.len_q));
    if (!g.len_kv.any()) limits.push_back("keys: " + in_words(g.len_kv));
    if (g.queries == Queries::as_keys) limits.push_back("queries: as many as keys");
    if (g.queries == Queries::at_most_keys) limits.push_back("queries: no more than keys");
    return limits;
}

}  // namespace attest::search
