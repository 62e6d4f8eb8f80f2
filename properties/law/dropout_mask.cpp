#include "properties/law/dropout_mask.hpp"

#include <algorithm>
#include <cmath>

#include "properties/law/reading.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"
#include "reference/problem/counter.hpp"

namespace attest::law {

namespace {

void clear(TensorSet& inputs, Role role) {
    if (!inputs.has(role)) return;
    Tensor& tensor = inputs[role];
    for (std::int64_t at = 0; at < tensor.size(); ++at)
        if (std::isfinite(tensor.get(at))) tensor.set(at, 0);
}

TensorSet even_scores(const Problem& p, TensorSet inputs) {
    for (const Role role : {Role::q, Role::alibi_slopes, Role::sinks}) clear(inputs, role);
    if (p.mask.tensor.kind == MaskKind::additive) clear(inputs, Role::mask);
    return inputs;
}

}  // namespace

Tensor drawn_keep(const Problem& p) {
    constexpr std::uint64_t rows_apart = std::uint64_t{1} << 32;
    Tensor keep(ElementType::u8, {p.batch, p.heads_q, p.len_q, p.len_kv});
    std::int64_t at = 0;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i)
                for (std::int64_t j = 0; j < p.len_kv; ++j)
                    keep.set_bits(
                        at++, counter_uniform(p.dropout.seed,
                                              static_cast<std::uint64_t>(b) << 16 |
                                                  static_cast<std::uint64_t>(h),
                                              static_cast<std::uint64_t>(i) * rows_apart +
                                                  static_cast<std::uint64_t>(j)) >= p.dropout.p);
    return keep;
}

TensorSet with_drawn_keep(const Problem& problem, TensorSet inputs) {
    if (problem.dropout.p > 0) inputs.put(Role::dropout_keep, drawn_keep(problem));
    return inputs;
}

std::int64_t KeptMask::dropped() const {
    std::int64_t count = 0;
    for (std::int64_t at = 0; at < keep.size(); ++at) count += sees(at) && !kept(at);
    return count;
}

std::int64_t reading_calls(const Problem& p) noexcept {
    return (p.len_kv + value_dim(p) - 1) / value_dim(p);
}

// A kept weight is 1/(n (1-p)) >= 1/n, a dropped one 0: half of 1/n tells them apart, whatever the
// kernel's arithmetic and also where it forgets the factor.
KeptMask read_mask(const Trial& trial, const Problem& p, const TensorSet& inputs) {
    TensorSet reading = even_scores(p, inputs);
    const Visibility visibility(p, trial.dialect(), inputs);
    KeptMask mask;
    mask.keep = Tensor(ElementType::u8, {p.batch, p.heads_q, p.len_q, p.len_kv});
    mask.visible.assign(static_cast<std::size_t>(mask.keep.size()), 0);
    std::vector<TensorSet> answers;
    for (std::int64_t first = 0; first < p.len_kv; first += value_dim(p)) {
        reading[Role::v] = tensor_of(p, Role::v, [&](auto, auto, std::int64_t j, std::int64_t c) {
            return j == first + c ? 1.0 : 0.0;
        });
        answers.push_back(trial.run(p, reading));
    }
    for (const Row& row : all_rows(p)) {
        const bool queried = visibility.is_query(row);
        const double count =
            queried ? static_cast<double>(visibility.visible_count(row)) + (p.sink ? 1 : 0) : 0;
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            const std::int64_t at = mask.keep.flat(row.batch, row.head, row.query, j);
            mask.keep.set_bits(at, 1);
            if (!queried || !visibility.sees(row, j)) continue;
            ++mask.cells;
            mask.visible[static_cast<std::size_t>(at)] = 1;
            const Tensor& o = answers[static_cast<std::size_t>(j / value_dim(p))][Role::o];
            const double weight = o.at(row.batch, row.head, row.query, j % value_dim(p));
            mask.keep.set_bits(at, weight * count > 0.5);
        }
    }
    for (const TensorSet& answer : answers)
        if (!mask.contradiction) mask.contradiction = contradicts(p, mask, answer);
    return mask;
}

std::optional<Problem> with_more_keys(const Problem& problem,
                                      const std::function<bool(const Problem&)>& taken) {
    constexpr std::int64_t calls_max = 16;
    struct Lengths {
        std::int64_t q, kv;
    };
    for (const Lengths len : {Lengths{4, 320}, Lengths{192, 192}})
        for (const std::int64_t dim_v : {std::int64_t{64}, value_dim(problem)}) {
            Problem p = problem;
            p.mask = {};
            p.cache = {};
            p.rope = {};
            p.alibi = {};
            p.splits = Problem{}.splits;
            p.batch = 1;
            p.len_q = len.q;
            p.len_kv = len.kv;
            p.dim_v = dim_v;
            p = canonical(p);
            if (reading_calls(p) <= calls_max && taken(p)) return p;
        }
    return std::nullopt;
}

std::optional<Judgement> contradicts(const Problem& p, const KeptMask& mask,
                                     const TensorSet& outputs) {
    if (!outputs.has(Role::dropout_keep)) return std::nullopt;
    const Tensor& said = outputs[Role::dropout_keep];
    Tally tally(p);
    for (std::int64_t at = 0; at < said.size(); ++at) {
        if (!mask.sees(at)) continue;
        const Shape place = index_of(said.shape(), at);
        tally.fact(said.bits(at) == mask.keep.bits(at), static_cast<double>(mask.keep.bits(at)),
                   static_cast<double>(said.bits(at)),
                   {Role::dropout_keep, {place.begin(), place.end()}}, [&] {
                       return "dropout_keep is not what the output was computed with: the weight "
                              "of key " +
                              std::to_string(place[3]) +
                              (mask.kept(at) ? " was kept" : " was dropped");
                   });
        if (tally.violated()) return tally.judgement("");
    }
    return std::nullopt;
}

Problem reseeded(Problem problem, std::uint64_t number) {
    problem.dropout.seed += number;
    return problem;
}

}  // namespace attest::law
