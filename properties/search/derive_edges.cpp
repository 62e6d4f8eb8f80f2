// Edges met on purpose: where a call's keys, a cache, a sequence's keys or a window ends at a
// multiple of what kernels cut keys into. Positions off by one there are right everywhere else, and
// the path for whole tiles is taken nowhere else.

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "properties/search/derive.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

/// What the keys are cut into: pages above all, splits, the tiles of real kernels. A split's length
/// follows from the number of keys.
struct Unit {
    std::int64_t keys = 1, splits = 0;
    std::int64_t of(std::int64_t len_kv) const {
        return splits == 0 ? keys : std::max<std::int64_t>((len_kv + splits - 1) / splits, 1);
    }
};

std::vector<Unit> units_of(const Problem& p) {
    std::vector<Unit> units;
    const std::int64_t page = p.cache.page_size;
    if (page > 1 && page < p.len_kv) units.assign(4, {page});
    if (p.splits > 1 && p.splits < p.len_kv) units.insert(units.end(), 2, {1, p.splits});
    for (const std::int64_t tile : {16, 32, 64, 128})
        if (tile < p.len_kv) units.push_back({tile});
    return units;
}

class Edge {
public:
    Edge(const Raw& raw, Unit unit) : raw_(raw), unit_(unit) {}

    /// The keys of some calls without a cache end there. Queries that were about as many follow.
    void keys(Problem& p) const {
        constexpr std::int64_t percent_moved = 30;
        const bool as_wanted = raw_.size == Size::full;  // for several tiles, say
        const bool whole = !p.cache.present && p.mask.documents_kv.empty();
        if (!whole || as_wanted || raw_.edge >= percent_moved) return;
        const auto keys = below(p.len_kv, p);
        if (!keys) return;
        const std::int64_t gone = p.len_kv - *keys;
        const bool alike = std::abs(p.len_q - p.len_kv) <= 1;
        p.len_kv -= gone;
        if (alike) p.len_q -= gone;
        for (std::int64_t& len : p.mask.lens_kv) len = std::min(len, p.len_kv);
        for (std::int64_t& len : p.mask.lens_q) len = std::min(len, p.len_q);
    }

    /// The cache ends at the edge: keys give way.
    void cache(Problem& p) const {
        if (!p.cache.present) return;
        std::int64_t cached = p.cache.len;
        while (cached > 0 && !at_edge(cached, unit_.of(cached + p.len_q))) --cached;
        if (cached == 0) return;
        p.cache.len = cached;
        p.len_kv = cached + p.len_q;
        for (std::int64_t& len : p.mask.lens_kv) len = std::min(len, p.len_kv);
    }

    /// A sequence's keys, or those before its queries, end there.
    void lengths(Problem& p) const {
        for (std::size_t b = 0; b < p.mask.lens_kv.size(); ++b) {
            const std::int64_t queries = p.mask.lens_q.empty() ? p.len_q : p.mask.lens_q[b];
            const std::int64_t after = raw_.edge_row % 2 == 0 && p.cache.present ? queries : 0;
            const auto keys = below(p.mask.lens_kv[b] - after, p);
            if (keys) p.mask.lens_kv[b] = *keys + after;
        }
    }

    /// The first key of the first or last query's window is the first behind an edge, or the last
    /// one is the last before it. One that ends behind the last key is left: those of earlier
    /// queries end at edges.
    void window(Problem& p) const {
        const std::int64_t own = raw_.edge_row < 2 ? p.len_kv - 1 : p.len_kv - p.len_q;
        Window& w = p.mask.window;
        if (w.left >= 0)
            if (const auto first = below(own - w.left, p)) w.left = own - *first;
        if (w.right >= 0 && own + w.right < p.len_kv)
            if (const auto end = below(own + w.right + 1, p))
                w.right = std::max<std::int64_t>(*end - 1 - own, 0);
    }

private:
    bool at_edge(std::int64_t number, std::int64_t unit) const {
        const std::int64_t from = number - raw_.edge_side;
        return from >= unit && from % unit == 0;
    }

    /// The largest number that is at an edge and not above; none where there is none above 0.
    std::optional<std::int64_t> below(std::int64_t number, const Problem& p) const {
        while (number > 0 && !at_edge(number, unit_.of(p.len_kv))) --number;
        return number > 0 ? std::optional(number) : std::nullopt;
    }

    const Raw& raw_;
    Unit unit_;
};

}  // namespace

void meet_an_edge(Problem& problem, const Raw& raw, const Capability& capability) {
    constexpr std::int64_t percent_met = 80;
    const std::vector<Unit> units = units_of(problem);
    if (raw.edge >= percent_met || units.empty()) return;
    const Edge edge(raw, units[static_cast<std::size_t>(raw.edge_of) % units.size()]);
    for (void (Edge::*meet)(Problem&) const :
         {&Edge::keys, &Edge::cache, &Edge::lengths, &Edge::window}) {
        Problem moved = problem;
        (edge.*meet)(moved);
        fit(moved, capability);
        if (!find_contradiction(moved) && capability.takes_numbers_of(moved))
            problem = std::move(moved);
    }
}

}  // namespace attest::search
