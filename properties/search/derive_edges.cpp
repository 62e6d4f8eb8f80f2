// Edges met on purpose: where a cache, a sequence's keys or a window ends at a multiple of what
// kernels cut keys into. Positions off by one there are right everywhere else.

#include <algorithm>
#include <optional>
#include <vector>

#include "properties/search/derive.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

/// What the keys are cut into: pages, the tiles of real kernels, splits.
std::vector<std::int64_t> units_of(const Problem& p) {
    std::vector<std::int64_t> units;
    const std::int64_t page = p.cache.page_size;
    if (page > 1 && page < p.len_kv) units = {page, page};
    if (p.splits > 1 && p.splits < p.len_kv) units.push_back((p.len_kv + p.splits - 1) / p.splits);
    for (const std::int64_t tile : {16, 32, 64, 128})
        if (tile < p.len_kv) units.push_back(tile);
    return units;
}

class Edge {
public:
    Edge(const Raw& raw, std::int64_t unit) : raw_(raw), unit_(unit) {}

    /// The largest number that is at the edge and not above; none where that is negative.
    std::optional<std::int64_t> below(std::int64_t number) const {
        const std::int64_t from = number - raw_.edge_side;
        const std::int64_t at = from - (from % unit_ + unit_) % unit_ + raw_.edge_side;
        return at < 0 ? std::nullopt : std::optional(at);
    }

    /// The cache ends at the edge: keys give way.
    void cache(Problem& p) const {
        const auto cached = below(p.cache.len);
        if (!p.cache.present || !cached || *cached == 0) return;
        p.len_kv -= p.cache.len - *cached;
        p.cache.len = *cached;
        for (std::size_t b = 0; b < p.mask.lens_kv.size(); ++b)
            p.mask.lens_kv[b] = std::min(p.mask.lens_kv[b], p.len_kv);
    }

    /// A sequence's keys, or those before its queries, end there.
    void lengths(Problem& p) const {
        for (std::size_t b = 0; b < p.mask.lens_kv.size(); ++b) {
            const std::int64_t queries = p.mask.lens_q.empty() ? p.len_q : p.mask.lens_q[b];
            const std::int64_t after = raw_.edge_row % 2 == 0 && p.cache.present ? queries : 0;
            const auto keys = below(p.mask.lens_kv[b] - after);
            if (keys && *keys > 0) p.mask.lens_kv[b] = *keys + after;
        }
    }

    /// The first key of the first or last query's window is the first behind an edge, or the last
    /// one is the last before it.
    void window(Problem& p) const {
        const std::int64_t own = raw_.edge_row < 2 ? p.len_kv - 1 : p.len_kv - p.len_q;
        Window& w = p.mask.window;
        if (w.left >= 0)
            if (const auto first = below(own - w.left)) w.left = own - *first;
        if (w.right >= 0)
            if (const auto end = below(own + w.right + 1))
                w.right = std::max<std::int64_t>(*end - 1 - own, 0);
    }

private:
    const Raw& raw_;
    std::int64_t unit_;
};

}  // namespace

void meet_an_edge(Problem& problem, const Raw& raw, const Geometry& geometry) {
    constexpr std::int64_t percent_met = 67;
    const std::vector<std::int64_t> units = units_of(problem);
    if (raw.edge >= percent_met || units.empty()) return;
    const Edge edge(raw, units[static_cast<std::size_t>(raw.edge_of) % units.size()]);
    for (void (Edge::*meet)(Problem&) const : {&Edge::cache, &Edge::lengths, &Edge::window}) {
        Problem moved = problem;
        (edge.*meet)(moved);
        if (!find_contradiction(moved) && takes_shape(geometry, moved)) problem = std::move(moved);
    }
}

}  // namespace attest::search
