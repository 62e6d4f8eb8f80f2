#include "properties/law/hidden.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "properties/law/reading.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::law {

namespace {

Relation unchanged(const Run& base, std::vector<RowMatch> rows) {
    Relation relation;
    relation.rows = std::move(rows);
    // A mean of all keys, or of all values, is taken of hidden ones too.
    const Numerics& n = base.trial().numerics();
    relation.promise = same_bits_if(n.deterministic && !n.centred_keys && !n.centred_values);
    return relation;
}

/// Which of the overwritten keys the row reads, by halving: log2 of their number in further runs,
/// made only once a violation is certain. Several where no half alone changes the row.
std::vector<std::int64_t> keys_read(const Run& base, const KeySet& keys, Filling filling,
                                    const RowMatch& row) {
    const std::int64_t head_kv = row.first.head / group_size(base.problem());
    std::vector<std::int64_t> suspects = keys.of(row.first.batch, head_kv);
    const auto changes = [&](const std::vector<std::int64_t>& part) {
        KeySet some(base.problem());
        for (const std::int64_t key : part) some.add(row.first.batch, head_kv, key);
        const Run changed(base.trial(), base.problem(),
                          overwritten(base.trial(), base.problem(), base.inputs(), some, filling));
        return compare_runs(base, changed, unchanged(base, {row})).violated();
    };
    if (suspects.size() == 1 && !changes(suspects)) return {};
    while (suspects.size() > 1) {
        const auto middle = suspects.begin() + static_cast<std::ptrdiff_t>(suspects.size() / 2);
        std::vector<std::int64_t> low(suspects.begin(), middle), high(middle, suspects.end());
        if (changes(low))
            suspects = std::move(low);
        else if (changes(high))
            suspects = std::move(high);
        else
            break;
    }
    return suspects;
}

std::string leak(const Run& base, const KeySet& keys, Filling filling, const RowMatch& row) {
    const std::vector<std::int64_t> read = keys_read(base, keys, filling, row);
    const std::string query = name_of(base.problem(), row.first);
    if (read.empty())
        return query + " depends on keys of another head or sequence, which it cannot see";
    if (read.size() == 1)
        return fmt::format("{} reads key {}, {}", query, read.front(),
                           base.visibility().reason(row.first, read.front()));
    return fmt::format("{} depends on keys {} to {} together, which it cannot see", query,
                       read.front(), read.back());
}

/// Queries to take as anchors, one list entry a sequence: all of few, else the first, the last and
/// two random ones.
std::vector<std::vector<std::int64_t>> choose_anchors(const Run& base) {
    constexpr std::int64_t few_queries = 4;
    const Problem& problem = base.problem();
    const Visibility visibility = base.visibility();
    const std::int64_t rounds = std::min(problem.len_q, few_queries);
    std::vector<std::vector<std::int64_t>> anchors;
    for (std::int64_t round = 0; round < rounds; ++round) {
        auto& of_sequence = anchors.emplace_back();
        for (std::int64_t b = 0; b < problem.batch; ++b) {
            const std::int64_t queries = visibility.length_q(b);
            std::int64_t anchor = round;
            if (problem.len_q > few_queries && queries > 0 && round == 1) anchor = queries - 1;
            if (problem.len_q > few_queries && queries > 0 && round > 1)
                anchor = base.trial().random_below(
                    stream_of("hidden.anchor"),
                    static_cast<std::uint64_t>(round * problem.batch + b), queries);
            of_sequence.push_back(anchor);
        }
    }
    return anchors;
}

}  // namespace

KeySet::KeySet(const Problem& problem)
    : heads_(problem.heads_kv),
      keys_(problem.len_kv),
      chosen_(static_cast<std::size_t>(problem.batch * heads_ * keys_)) {}

void KeySet::add(std::int64_t batch, std::int64_t head_kv, std::int64_t key) {
    chosen_[static_cast<std::size_t>((batch * heads_ + head_kv) * keys_ + key)] = 1;
}

bool KeySet::has(std::int64_t batch, std::int64_t head_kv, std::int64_t key) const {
    return chosen_[static_cast<std::size_t>((batch * heads_ + head_kv) * keys_ + key)] != 0;
}

bool KeySet::empty() const noexcept {
    return std::find(chosen_.begin(), chosen_.end(), 1) == chosen_.end();
}

std::vector<std::int64_t> KeySet::of(std::int64_t batch, std::int64_t head_kv) const {
    std::vector<std::int64_t> keys;
    for (std::int64_t j = 0; j < keys_; ++j)
        if (has(batch, head_kv, j)) keys.push_back(j);
    return keys;
}

double filling_value(const Trial& trial, Filling filling, Role role, Precision format,
                     std::uint64_t element) {
    const std::uint64_t stream = stream_of("hidden.filling") + static_cast<std::uint64_t>(role);
    const double sign = trial.random_bits(stream, element) % 2 == 0 ? 1 : -1;
    const bool poisoned =
        filling == (role == Role::k ? Filling::nonfinite_keys : Filling::nonfinite_values);
    if (poisoned) {
        const std::int64_t kind = trial.random_below(stream + 1000, element, 3);
        return kind == 0 ? std::numeric_limits<double>::quiet_NaN() : sign * infinite;
    }
    switch (filling) {
        case Filling::huge:
            return sign * 1e4;
        case Filling::largest:
            return sign * traits(format).max_finite;
        default:
            return trial.random_normal(stream, element);
    }
}

namespace {

/// The largest number of each key with which no step of a kernel that is asked for nothing beside
/// infinities overflows: one that adds -inf to the score of a hidden key makes NaN of it then, and
/// of what may exceed the largest number of a declared format nothing is claimed. Scores are at
/// most sum_c |q_c| times it, a turn no more than double that, before or behind a scale and a cap
/// that may be taken in base 2; an eighth leaves room for the roundings.
double room_beside_infinities(const Trial& trial, const Problem& problem, const Tensor& q) {
    if (trial.dialect().nonfinite != Nonfinite::unspecified) return infinite;
    const bound::KernelModel m = bound::resolve(problem, trial.numerics());
    constexpr double log2e = 1.45;  // and a little more
    double factor = log2e * std::max(1.0, std::abs(m.scale));
    if (m.softcap > 0) factor *= std::max(1.0, 1 / m.softcap);
    double most = 0;
    const std::int64_t channels = q.shape()[3];
    for (std::int64_t begin = 0; begin < q.size(); begin += channels) {
        double sum = 0;
        for (std::int64_t c = 0; c < channels; ++c) sum += std::abs(q.get(begin + c));
        if (std::isfinite(sum)) most = std::max(most, sum);
    }
    const double of_steps = std::min({m.max_finite, m.score_max, m.bias_max}) / (most * factor);
    return std::min(of_steps, m.fed_max) / 8;
}

}  // namespace

TensorSet overwritten(const Trial& trial, const Problem& problem, const TensorSet& inputs,
                      const KeySet& keys, Filling filling) {
    TensorSet result = inputs;
    const double room = filling == Filling::huge
                            ? room_beside_infinities(trial, problem, inputs[Role::q])
                            : infinite;
    for (const Role role : {Role::k, Role::v}) {
        Tensor& tensor = result[role];
        const std::int64_t channels = tensor.shape()[3];
        for (std::int64_t b = 0; b < problem.batch; ++b)
            for (std::int64_t g = 0; g < problem.heads_kv; ++g)
                for (std::int64_t j = 0; j < problem.len_kv; ++j) {
                    if (!keys.has(b, g, j)) continue;
                    const std::int64_t begin = tensor.flat(b, g, j, 0);
                    for (std::int64_t flat = begin; flat < begin + channels; ++flat)
                        tensor.set(
                            flat, std::clamp(filling_value(trial, filling, role, problem.format_kv,
                                                           static_cast<std::uint64_t>(flat)),
                                             -room, room));
                }
    }
    return result;
}

KeySet hidden_from(const Run& base, const std::vector<std::int64_t>& anchors,
                   std::optional<Hiding> by) {
    const Problem& problem = base.problem();
    const Visibility visibility = base.visibility();
    const std::int64_t group = group_size(problem);
    KeySet keys(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b) {
        const std::int64_t anchor = anchors[static_cast<std::size_t>(b)];
        if (anchor >= visibility.length_q(b)) continue;
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t j = 0; j < problem.len_kv; ++j) {
                bool hidden = true;
                for (std::int64_t h = g * group; h < (g + 1) * group && hidden; ++h) {
                    const Row row{b, h, anchor};
                    hidden = by ? visibility.hides(*by, row, j) : !visibility.sees(row, j);
                }
                if (hidden) keys.add(b, g, j);
            }
    }
    return keys;
}

std::vector<RowMatch> rows_blind_to(const Run& base, const KeySet& keys) {
    const Problem& problem = base.problem();
    const Visibility visibility = base.visibility();
    std::vector<RowMatch> rows = defined_rows(base);
    std::erase_if(rows, [&](const RowMatch& match) {
        const std::int64_t head_kv = match.first.head / group_size(problem);
        for (std::int64_t j = 0; j < problem.len_kv; ++j)
            if (keys.has(match.first.batch, head_kv, j) && visibility.sees(match.first, j))
                return true;
        return false;
    });
    return rows;
}

Judgement change_nothing(const Run& base, const KeySet& keys, Filling filling) {
    Relation relation = unchanged(base, rows_blind_to(base, keys));
    if (relation.rows.empty()) return nothing_compared("every row sees one of the keys");
    relation.sentence = [&](const RowMatch& row) { return leak(base, keys, filling, row); };
    const Run changed(base.trial(), base.problem(),
                      overwritten(base.trial(), base.problem(), base.inputs(), keys, filling));
    return compare_runs(base, changed, relation);
}

Judgement non_interference(const Run& base, std::optional<Hiding> by,
                           std::span<const Filling> fillings) {
    std::int64_t elements = 0;
    double worst = 0;
    for (const auto& anchors : choose_anchors(base)) {
        const KeySet keys = hidden_from(base, anchors, by);
        if (keys.empty()) continue;
        for (const Filling filling : fillings) {
            Judgement verdict = change_nothing(base, keys, filling);
            if (verdict.violated()) return verdict;
            elements += verdict.elements;
            worst = std::max(worst, verdict.worst_ratio);
        }
    }
    return nothing_compared(elements, worst, "no key of this case is hidden that way");
}

Judgement padded_queries_change_nothing(const Run& base, Filling filling) {
    const Problem& problem = base.problem();
    const Visibility visibility = base.visibility();
    TensorSet inputs = base.inputs();
    Tensor& q = inputs[Role::q];
    bool changed = false;
    for (const Row& row : all_rows(problem)) {
        if (visibility.is_query(row)) continue;
        changed = true;
        for (std::int64_t c = 0; c < problem.dim_qk; ++c) {
            const std::int64_t flat = q.flat(row.batch, row.head, row.query, c);
            q.set(flat, filling_value(base.trial(), filling, Role::k, problem.format_q,
                                      static_cast<std::uint64_t>(flat)));
        }
    }
    if (!changed) return nothing_compared("no query lies past its sequence's end");
    Relation relation = unchanged(base, defined_rows(base));
    relation.sentence = [&](const RowMatch& match) {
        return name_of(problem, match.first) +
               " depends on queries that lie past their sequence's end";
    };
    return compare_runs(base, Run(base.trial(), problem, std::move(inputs)), relation);
}

}  // namespace attest::law
