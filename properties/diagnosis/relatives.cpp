#include "properties/diagnosis/relatives.hpp"

#include <algorithm>
#include <string_view>

#include "properties/search/shrink_moves.hpp"

namespace attest::diagnosis {

namespace {

/// What one relative has more than the smallest case.
struct More {
    std::int64_t q = 0, kv = 0, dim = 0, dim_v = 0, group = 0, heads_kv = 0, window = 0, splits = 0;
    double scale = 1;  ///< factor on the explicit scale; 0: the default scale
    ValueKind kind = ValueKind::normal;
    /// Documents: a further one behind instead of a longer first. Lengths of keys: so many keys
    /// more of the axis that no sequence has.
    std::int64_t behind = 0;
};

// Lengths on both sides of the tile edges 4 to 256, dimensions on both sides of multiples of 8, 16
// and 32, groups that are and are not a power of two; no two quantities grow together. The last are
// smaller than the smallest: where a kernel is right on those, it is right.
constexpr More variations[] = {
    {3, 2, 3, 0, 0, 2, 1, 1, 1},
    {0, 6, 11, 0, 1, 1, 2, 0, 0, ValueKind::normal, 70},
    {5, 0, 22, 4, 0, 3, 0, 2, 1.5},
    {1, 37, 0, 0, 2, 1, 1, 1, 0},
    {2, 4, 35, 1, 0, 1, 3, 0, 0.5, ValueKind::normal, 21},
    {0, 90, 5, 0, 0, 0, 0, 1, 1},
    {3, 9, 0, 3, 1, 2, 1, 2, 2, ValueKind::normal, 150},
    {4, 11, 13, 0, 0, 1, 2, 0, 0},
    {1, 170, 1, 0, 0, 0, 1, 1, 1},
    {7, 3, 7, 2, 2, 1, 0, 0, 0.75},
    {6, 1, 2, 0, 0, 0, 1, 1, 32, ValueKind::logit1e4},
    {0, -1, 0, 0, 0, 0, 0, 0, 1},
    {-1, 0, 0, 0, 0, 0, 0, 0, 1},
    {0, 0, -1, 0, 0, 0, 0, 0, 1},
};

void lengthen(Problem& w, const Problem& p, const More& more) {
    // Positions without a cache are defined for squares alone; a cache keeps Tq <= Tk.
    const bool square = positions_are_indices(p);
    const std::int64_t more_kv = square ? more.q : p.cache.present ? more.kv + more.q : more.kv;
    const bool bounded = !p.mask.lens_kv.empty() || !p.mask.documents_kv.empty();
    const std::int64_t gap = bounded && !square ? more.behind : 0;
    w.len_q = p.len_q + more.q;
    w.len_kv = p.len_kv + more_kv + gap;
    if (p.cache.present) w.cache.len = w.len_kv - w.len_q;
    for (std::int64_t& n : w.mask.lens_q) n += more.q;
    for (std::int64_t& n : w.mask.lens_kv) n += more_kv;
    const auto grow = [&more](std::vector<std::int64_t>& documents, std::int64_t by) {
        if (documents.empty()) return;
        if (more.behind > 0)
            documents.push_back(by);
        else
            documents.front() += by;
    };
    grow(w.mask.documents_q, more.q);
    grow(w.mask.documents_kv, more_kv + gap);
}

void widen(Problem& w, const Problem& p, const More& more) {
    const bool rotates = p.rope.style != RopeStyle::none;
    w.dim_qk = p.dim_qk + (rotates ? 2 * more.dim : more.dim);
    if (more.dim_v > 0)
        w.dim_v = w.dim_qk + more.dim_v;
    else if (p.dim_v != 0)
        w.dim_v = p.dim_v + more.dim;
    w.heads_kv = p.heads_kv + more.heads_kv;
    w.heads_q = w.heads_kv * (group_size(p) + more.group);
}

}  // namespace

std::vector<Case> relatives(const Case& smallest) {
    std::vector<Case> list;
    const Problem& p = smallest.problem;
    std::uint64_t seed = 1;
    for (const More& more : variations) {
        Case wide = smallest;
        Problem& w = wide.problem;
        lengthen(w, p, more);
        widen(w, p, more);
        if (p.mask.window.left >= 0) w.mask.window.left += more.window;
        if (p.mask.window.limited() && more.window > 0)
            w.mask.window.right = std::max<std::int64_t>(p.mask.window.right, 0) + more.window;
        if (p.splits > 0) w.splits += more.splits;
        if (p.rope.offset > 0) w.rope.offset += more.window;
        if (more.scale == 0)
            w.scale.reset();
        else if (more.scale != 1)
            w.scale = effective_scale(w) * more.scale;
        wide.values = {more.kind, seed++, {}};
        list.push_back(std::move(wide));
    }
    // A kernel that chooses its splits by itself is asked for some.
    for (std::size_t n = 0; n < 3 && p.splits == 0; ++n) {
        Case split = list[n];
        split.problem.splits = static_cast<std::int64_t>(n) + 2;
        list.push_back(std::move(split));
    }
    return list;
}

std::vector<Case> length_neighbours(const Case& smallest) {
    std::vector<Case> list;
    const Problem& p = smallest.problem;
    const auto add = [&](std::int64_t more_q, std::int64_t more_kv) {
        Case other = smallest;
        lengthen(other.problem, p, {.q = more_q, .kv = more_kv});
        other.values = {ValueKind::normal, list.size() + 1, {}};
        list.push_back(std::move(other));
    };
    const bool square = p.len_q == p.len_kv && has_positions(p);
    for (const std::int64_t n : {2, 4, 8, 16, 32, 64, 128}) {
        for (const std::int64_t keys : {n, n + 1, 3 * n, 3 * n + 1})
            add(square ? keys - p.len_q : 0, keys - p.len_kv);
        for (const std::int64_t queries : {n, n + 1}) add(queries - p.len_q, 0);
        add(n + 1 - p.len_q, n + 1 - p.len_kv);
    }
    // The same remainder in fewer keys: a limit far up is told from a period that divides it.
    for (std::int64_t n = 16; 2 * n < p.len_kv && n <= 256; n *= 2)
        add(square ? n + p.len_kv % n - p.len_q : 0, n + p.len_kv % n - p.len_kv);
    return list;
}

std::vector<Case> richer_neighbours(const Case& smallest) {
    std::vector<Case> list;
    const Case from = relatives(smallest).front();
    const auto with = [&](auto change) {
        list.push_back(from);
        change(list.back().problem);
        if (list.back().problem == from.problem) list.pop_back();
    };
    with([](Problem& p) { p.mask.causal = true; });
    with([](Problem& p) { p.mask.window = {p.len_kv / 2, -1}; });
    with([](Problem& p) { p.mask.window = {-1, 0}; });
    for (const MaskKind kind : {MaskKind::boolean, MaskKind::additive})
        with([kind](Problem& p) { p.mask.tensor.kind = kind; });
    with([](Problem& p) { p.mask.tensor.shared_heads = p.mask.tensor.kind != MaskKind::none; });
    with([](Problem& p) { p.mask.tensor.shared_queries = p.mask.tensor.kind != MaskKind::none; });
    with([](Problem& p) { p.sink = true; });
    with([](Problem& p) { p.softcap = 2; });
    with([](Problem& p) { p.heads_q *= 2; });
    for (const Precision format : {Precision::f32, Precision::f16, Precision::bf16})
        with([format](Problem& p) { p.format_q = p.format_kv = p.format_o = format; });
    with([](Problem& p) { p.scale = -2 * effective_scale(p); });
    return list;
}

namespace {

struct SegmentLengths {
    std::int64_t q = 0, kv = 0;
};
using Segments = std::vector<SegmentLengths>;

Segments segments_of(const Problem& p) {
    const bool packed = !p.mask.documents_q.empty();
    const std::vector<std::int64_t>& q = packed ? p.mask.documents_q : p.mask.lens_q;
    const std::vector<std::int64_t>& kv = packed ? p.mask.documents_kv : p.mask.lens_kv;
    Segments segments(std::max(q.size(), kv.size()));
    for (std::size_t n = 0; n < segments.size(); ++n)
        segments[n] = {q.empty() ? p.len_q : q[n], kv.empty() ? p.len_kv : kv[n]};
    return segments;
}

Problem with_segments(Problem p, const Segments& segments) {
    const bool packed = !p.mask.documents_q.empty();
    std::vector<std::int64_t> q, kv;
    std::int64_t sum_q = 0, sum_kv = 0;
    for (const SegmentLengths& s : segments) {
        q.push_back(s.q);
        kv.push_back(s.kv);
        sum_q += s.q;
        sum_kv += s.kv;
    }
    if (packed) {
        p.mask.documents_q = q;
        p.mask.documents_kv = kv;
        p.len_q = sum_q;
        p.len_kv = sum_kv;
        return p;
    }
    p.batch = static_cast<std::int64_t>(segments.size());
    p.len_q = std::max(p.len_q, *std::ranges::max_element(q));
    p.len_kv = std::max(p.len_kv, *std::ranges::max_element(kv));
    if (!p.mask.lens_q.empty()) p.mask.lens_q = q;
    if (!p.mask.lens_kv.empty()) p.mask.lens_kv = kv;
    return p;
}

}  // namespace

std::vector<Case> list_neighbours(const Case& smallest) {
    const Segments own = segments_of(smallest.problem);
    if (own.empty()) return {};
    std::vector<Segments> others{own, own, own, own, own};
    for (SegmentLengths& s : others[0]) s = {s.q + 1, s.kv + 1};
    for (SegmentLengths& s : others[1])
        s = {std::max<std::int64_t>(s.q, 1), std::max<std::int64_t>(s.kv, 1)};
    std::ranges::reverse(others[2]);
    others[3].insert(others[3].begin(), {2, 2});
    others[4].push_back({2, 2});
    for (const std::size_t n : {3u, 4u}) {
        others.push_back(others[n]);
        for (SegmentLengths& s : others.back()) s = {s.q + 1, s.kv + 1};
    }
    std::vector<Case> list;
    for (const Segments& segments : others) {
        list.push_back(
            {with_segments(smallest.problem, segments), {ValueKind::normal, list.size() + 1, {}}});
    }
    return list;
}

std::vector<Case> dimension_neighbours(const Case& smallest) {
    std::vector<Case> list;
    const Problem& p = smallest.problem;
    const bool rotates = p.rope.style != RopeStyle::none;
    for (const std::int64_t dim : {2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128}) {
        if (rotates && dim < std::max<std::int64_t>(p.rope.dims, 2)) continue;
        Case other = smallest;
        if (p.dim_v != 0) other.problem.dim_v = value_dim(p);
        other.problem.dim_qk = rotates ? dim / 2 * 2 : dim;
        other.values = {ValueKind::normal, list.size() + 1, {}};
        list.push_back(std::move(other));
    }
    for (const std::int64_t page : {2, 3, 4, 8, 16}) {
        if (p.cache.page_size == 0) break;
        for (const std::int64_t more : {0, 1, 2}) {  // keys behind two full pages
            Case other = smallest;
            lengthen(other.problem, p, {.kv = 2 * page + more - p.len_kv});
            other.problem.cache.page_size = page;
            other.values = {ValueKind::normal, list.size() + 1, {}};
            list.push_back(std::move(other));
        }
    }
    // A table of angles may end, positions may be rounded: what is turned less tells.
    for (const std::int64_t offset : {p.rope.offset - 1, p.rope.offset / 2, p.rope.offset / 16}) {
        if (!rotates || offset < 0 || p.rope.offset == 0) continue;
        Case other = relatives(smallest).front();
        other.problem.rope.offset = offset;
        list.push_back(std::move(other));
    }
    return list;
}

namespace {

/// A mask that sequences, heads and queries share, or some of them.
void add_shared_axes(std::vector<Case>& list, const Case& from) {
    if (from.problem.mask.tensor.kind == MaskKind::none) return;
    for (const bool batch : {false, true})
        for (const bool heads : {false, true})
            for (const bool of_queries : {false, true}) {
                list.push_back(from);
                MaskTensor& mask = list.back().problem.mask.tensor;
                mask.shared_batch = batch;
                mask.shared_heads = heads;
                mask.shared_queries = of_queries;
            }
}

}  // namespace

std::vector<Case> feature_neighbours(const Case& smallest) {
    std::vector<Case> list, from_these = relatives(smallest);
    from_these.resize(2);
    from_these.push_back({smallest.problem, {ValueKind::normal, 1, {}}});
    for (const Case& from : from_these) {
        list.push_back(from);
        for (const search::Edit& edit : search::feature_edits(from.problem)) {
            if (edit.pass != std::string_view("features")) continue;
            list.push_back(from);
            edit.apply(list.back().problem);
        }
    }
    add_shared_axes(list, from_these.front());
    return list;
}

}  // namespace attest::diagnosis
