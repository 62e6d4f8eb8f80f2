#include "properties/search/raw_draw.hpp"

#include <vector>

#include "properties/search/landmarks.hpp"

namespace attest::search {

namespace {

namespace gen = rc::gen;

/// inRange narrows with the generator's size; at the nominal size it does not.
template <typename T>
rc::Gen<T> full(rc::Gen<T> g) {
    return gen::resize(rc::kNominalSize, std::move(g));
}

rc::Gen<std::int64_t> below(std::int64_t limit) {
    return full(gen::inRange<std::int64_t>(0, limit));
}

rc::Gen<std::int64_t> one_of(std::vector<std::int64_t> numbers) {
    return gen::elementOf(std::move(numbers));
}

/// Six of ten times a landmark, else any length.
rc::Gen<std::int64_t> lengths(std::int64_t most) {
    return gen::weightedOneOf<std::int64_t>(
        {{6, one_of(landmark_lengths(most))}, {4, full(gen::inRange<std::int64_t>(1, most + 1))}});
}

/// Zero, a landmark, or more than there is: cut to fit, the whole.
rc::Gen<std::int64_t> valid_lengths(std::int64_t most) {
    return gen::weightedOneOf<std::int64_t>({{1, gen::just<std::int64_t>(0)},
                                             {2, gen::just(most)},
                                             {3, one_of(landmark_lengths(most))},
                                             {3, full(gen::inRange<std::int64_t>(1, most + 1))}});
}

/// Small dimensions are the quick ones: every third draw is one of the smaller half.
rc::Gen<std::int64_t> dimensions(const std::vector<std::int64_t>& dims) {
    const auto middle = dims.begin() + static_cast<std::ptrdiff_t>((dims.size() + 1) / 2);
    return gen::weightedOneOf<std::int64_t>(
        {{1, one_of({dims.begin(), middle})}, {2, one_of(dims)}});
}

/// Where a document ends, in percent; both ends come up, for documents of no length.
rc::Gen<std::int64_t> cuts() {
    return gen::weightedOneOf<std::int64_t>(
        {{1, gen::just<std::int64_t>(0)}, {1, gen::just<std::int64_t>(100)}, {6, below(101)}});
}

rc::Gen<std::int64_t> window_limits(std::int64_t most) {
    return gen::weightedOneOf<std::int64_t>(
        {{4, one_of({0, 1, 2, 3, 7, 8})}, {4, one_of(landmark_lengths(most))}, {2, below(most)}});
}

rc::Gen<RawLayout> layouts() {
    return gen::build<RawLayout>(
        gen::set(&RawLayout::order, gen::element(AxisOrder::bhtd, AxisOrder::bthd, AxisOrder::bthd,
                                                 AxisOrder::tbhd, AxisOrder::bhdt)),
        gen::set(&RawLayout::row_pad, one_of({0, 0, 1, 3, 8})),
        gen::set(&RawLayout::offset, one_of({0, 0, 1, 2, 5})));
}

rc::Gen<Rope> ropes() {
    return gen::build<Rope>(
        gen::set(&Rope::style, gen::element(RopeStyle::interleaved, RopeStyle::half)),
        gen::set(&Rope::base, gen::element(10000.0, 10000.0, 500000.0, 100.0)),
        gen::set(&Rope::offset, one_of({0, 0, 1, 7, 100, 4095})));
}

/// Every pattern as often as another, and independent keys twice as often.
rc::Gen<MaskPattern> patterns() {
    return gen::map(below(mask_pattern_count + 1), [](std::int64_t number) {
        return static_cast<MaskPattern>(number % mask_pattern_count);
    });
}

}  // namespace

rc::Gen<Raw> raw_draws(const RawLimits& limits) {
    const std::int64_t most = limits.len_max;
    const auto percent = [] { return below(100); };
    return gen::build<Raw>(
        gen::set(&Raw::batch, gen::map(gen::weightedElement<std::int64_t>(
                                           {{12, 1}, {12, 2}, {9, 3}, {1, 4}, {1, 5}, {1, 9}}),
                                       [cap = limits.batch_max](std::int64_t b) {
                                           return cap > 0 ? std::min(b, cap) : b;
                                       })),
        gen::set(&Raw::heads_kv,
                 gen::weightedElement<std::int64_t>(
                     {{10, 1}, {10, 2}, {4, 3}, {2, 4}, {1, 5}, {1, 6}, {1, 7}, {1, 8}})),
        gen::set(&Raw::group,
                 gen::weightedElement<std::int64_t>(
                     {{4, 2}, {4, 3}, {2, 4}, {2, 5}, {2, 6}, {1, 7}, {2, 8}, {1, 12}, {1, 16}})),
        gen::set(&Raw::len_q, lengths(most)), gen::set(&Raw::len_kv, lengths(most)),
        gen::set(&Raw::long_len, one_of(long_landmarks(most, limits.long_from))),
        gen::set(&Raw::relation,
                 gen::weightedElement<LengthRelation>({{10, LengthRelation::free},
                                                       {5, LengthRelation::equal},
                                                       {2, LengthRelation::one_query},
                                                       {4, LengthRelation::one_more_query},
                                                       {1, LengthRelation::one_more_key}})),
        gen::set(&Raw::size, gen::weightedElement<Size>({{12, Size::typical},
                                                         {3, Size::large},
                                                         {1, Size::full},
                                                         {3, Size::long_keys},
                                                         {1, Size::long_queries}})),
        gen::set(&Raw::size_share,
                 gen::map(below(1 << 20),
                          [](std::int64_t n) { return static_cast<double>(n) / (1 << 20); })),
        gen::set(&Raw::heads_first, gen::arbitrary<bool>()),
        gen::set(&Raw::queries_first, gen::arbitrary<bool>()),
        gen::set(&Raw::dim_qk, dimensions(limits.dims)),
        gen::set(&Raw::dim_v, dimensions(limits.dims)),
        gen::set(&Raw::window_left, window_limits(most)),
        gen::set(&Raw::window_right, window_limits(most)), gen::set(&Raw::window_sides, below(3)),
        gen::set(&Raw::lens_q, gen::container<std::array<std::int64_t, 8>>(valid_lengths(most))),
        gen::set(&Raw::lens_kv, gen::container<std::array<std::int64_t, 8>>(valid_lengths(most))),
        gen::set(&Raw::cuts_q, gen::container<std::array<std::int64_t, 4>>(cuts())),
        gen::set(&Raw::cuts_kv, gen::container<std::array<std::int64_t, 4>>(cuts())),
        gen::set(&Raw::documents, one_of({2, 2, 3, 3, 4, 5})),
        gen::set(&Raw::softcap, gen::element(0.5, 1.0, 5.0, 20.0, 30.0, 50.0)),
        gen::set(&Raw::scale, gen::element(1.0, 0.5, 0.25, 0.125, 0.0625, 2.0, 0.3, 0.07, 0.0)),
        gen::set(&Raw::rope, ropes()), gen::set(&Raw::rope_share, one_of({1, 2, 4, 4})),
        gen::set(&Raw::page_size, one_of({1, 2, 3, 4, 5, 8, 16, 16, 32, 64, 80, 96, 128})),
        gen::set(&Raw::splits, one_of({1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33})),
        gen::set(&Raw::layouts, gen::container<std::array<RawLayout, 4>>(layouts())),
        gen::set(&Raw::shared_batch, gen::arbitrary<bool>()),
        gen::set(&Raw::shared_heads, gen::arbitrary<bool>()),
        gen::set(&Raw::shared_queries, gen::weightedElement<bool>({{3, false}, {1, true}})),
        gen::set(&Raw::other_format, below(1 << 20)), gen::set(&Raw::mixed, below(3)),
        gen::set(&Raw::chance, gen::container<std::array<std::int64_t, 32>>(percent())),
        // Last: what is drawn before stays as it is.
        gen::set(&Raw::picks, gen::container<std::array<std::int64_t, 16>>(below(1 << 20))),
        gen::set(&Raw::pattern, patterns()), gen::set(&Raw::tile, below(1 << 20)),
        gen::set(&Raw::floor, below(1 << 20)),
        gen::set(&Raw::random_slopes, gen::arbitrary<bool>()), gen::set(&Raw::edge, below(100)),
        gen::set(&Raw::edge_of, below(1 << 20)),
        gen::set(&Raw::edge_side, one_of({0, 0, 0, -1, 1})), gen::set(&Raw::edge_row, below(4)),
        gen::set(&Raw::shared_keys, gen::weightedElement<bool>({{3, false}, {1, true}})));
}

void cut_into_several_tiles(Raw& raw) {
    constexpr std::int64_t tile = 64;
    raw.size = Size::full;
    raw.heads_first = true;
    if (raw.relation == LengthRelation::one_query) raw.relation = LengthRelation::free;
    for (std::int64_t* len : {&raw.len_q, &raw.len_kv})
        if (*len <= tile) *len += tile;
    // Wider windows hide whole tiles of few cases of such lengths.
    for (std::int64_t* limit : {&raw.window_left, &raw.window_right}) *limit %= tile;
}

void cut_into_several_pages(Raw& raw, std::int64_t page) {
    constexpr std::int64_t large = 64;
    if (page < large) return;
    raw.len_kv = raw.len_kv % page + raw.edge_of % 4 * page;
    raw.queries_first = true;
    raw.heads_first = raw.heads_first || raw.edge_of % 3 != 0;
    // As many queries would leave few keys.
    if (raw.relation == LengthRelation::equal) raw.relation = LengthRelation::free;
}

}  // namespace attest::search
