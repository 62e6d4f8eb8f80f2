#include "reference/oracle/random_problem.hpp"

#include <algorithm>

#include "reference/problem/counter.hpp"

namespace attest::oracle {

namespace {

/// A choice is a hash of (number, which choice), so a new one moves no other.
class Chooser {
public:
    explicit Chooser(std::uint64_t number) : number_(number) {}
    std::int64_t below(std::int64_t limit) {
        return static_cast<std::int64_t>(counter_bits(number_, 77, next_++) %
                                         static_cast<std::uint64_t>(limit));
    }
    bool one_in(std::int64_t n) { return below(n) == 0; }
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + below(high - low + 1);
    }

private:
    std::uint64_t number_, next_ = 0;
};

void choose_mask(Chooser& choose, Problem& p) {
    Mask& m = p.mask;
    m.causal = choose.one_in(3);
    if (choose.one_in(4)) m.window = {choose.between(-1, 6), choose.between(-1, 6)};
    if (choose.one_in(3)) {
        m.tensor.kind = choose.one_in(2) ? MaskKind::boolean : MaskKind::additive;
        m.tensor.shared_batch = choose.one_in(2);
        m.tensor.shared_heads = choose.one_in(2);
        m.tensor.shared_queries = choose.one_in(2);
    }
    if (!p.cache.present && choose.one_in(5)) {
        p.batch = 1;
        const std::int64_t q = choose.between(0, p.len_q), k = choose.between(0, p.len_kv);
        m.documents_q = {q, p.len_q - q};
        m.documents_kv = {k, p.len_kv - k};
    } else if (choose.one_in(4)) {
        for (std::int64_t b = 0; b < p.batch; ++b) {
            const std::int64_t keys = choose.between(0, p.len_kv);
            m.lens_kv.push_back(keys);
            m.lens_q.push_back(
                choose.between(0, p.cache.present ? std::min(keys, p.len_q) : p.len_q));
        }
    }
}

}  // namespace

RandomCase random_case(std::uint64_t number, std::int64_t len_max, std::int64_t dim_max) {
    Chooser choose(number);
    RandomCase out;
    Problem& p = out.tried.problem;
    p.batch = choose.between(1, 2);
    p.heads_kv = choose.between(1, 2);
    p.heads_q = p.heads_kv * choose.between(1, 2);
    p.len_q = choose.between(1, 6);
    p.len_kv = choose.between(1, choose.one_in(3) ? len_max : 12);
    p.dim_qk = choose.between(1, choose.one_in(3) ? dim_max : 8);
    p.dim_v = choose.one_in(3) ? choose.between(1, 8) : 0;
    if (choose.one_in(3)) {
        p.cache.present = true;
        p.len_kv = std::max(p.len_kv, p.len_q);
        p.cache.len = p.len_kv - p.len_q;
        p.cache.page_size = choose.one_in(2) ? choose.between(1, 4) : 0;
    }
    choose_mask(choose, p);
    if (choose.one_in(4)) p.scale = 0.125 * static_cast<double>(choose.between(-8, 8));
    if (choose.one_in(4)) p.softcap = static_cast<double>(choose.between(1, 50));
    p.sink = choose.one_in(4);
    const bool aligned = p.cache.present || (p.mask.lens_q.empty() && p.mask.documents_q.empty());
    const bool position = aligned && choose.one_in(3);
    if (position && !p.cache.present) p.len_q = p.len_kv = std::min<std::int64_t>(p.len_kv, 8);
    if (position && choose.one_in(2)) p.alibi = true;
    if (position && p.dim_qk >= 2) {
        p.rope.style = choose.one_in(2) ? RopeStyle::interleaved : RopeStyle::half;
        p.rope.dims = 2 * choose.between(1, p.dim_qk / 2);
        p.rope.offset = choose.one_in(3) ? choose.between(0, 100000) : 0;
        p.cache.keys_rotated = p.cache.present && choose.one_in(4);
    }
    constexpr Precision formats[] = {Precision::f64, Precision::f32, Precision::f16,
                                     Precision::bf16};
    p.format_q = p.format_kv = p.format_o = formats[choose.below(4)];
    out.tried.values.kind = static_cast<ValueKind>(choose.below(value_kind_count));
    out.tried.values.seed = number;
    out.dialect.causal =
        choose.one_in(2) ? CausalAlignment::bottom_right : CausalAlignment::top_left;
    out.dialect.softcap = choose.one_in(2) ? SoftcapPlace::before_bias : SoftcapPlace::after_bias;
    out.dialect.window_ends = choose.one_in(2) ? WindowEnds::inclusive : WindowEnds::exclusive;
    out.dialect.lse_base = choose.one_in(2) ? LseBase::e : LseBase::two;
    // Last: what is chosen before stays as it is.
    p.mask.tensor.shared_keys = p.mask.tensor.kind != MaskKind::none && choose.one_in(4);
    return out;
}

RandomCase random_gradient_case(std::uint64_t number, std::int64_t len_max, std::int64_t dim_max) {
    RandomCase c = random_case(number, len_max, dim_max);
    c.tried.problem.cache.page_size = 0;
    c.tried.problem.want_grad = true;
    c.tried.problem.lse_grad = counter_bits(number, 78, 0) % 2 == 0;
    return c;
}

}  // namespace attest::oracle
