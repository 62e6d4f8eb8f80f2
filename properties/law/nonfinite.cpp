// Non-finite numbers go where they are seen. A NaN in a query reaches its own row, a NaN in a key
// the rows that see the key, a NaN or an infinity in one channel of a value that channel of those
// rows; everything else keeps its bits.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "properties/law/hidden.hpp"
#include "properties/law/neighbours.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// One entry overwritten, and whom it reaches: all channels of the rows, or `channel` alone. A NaN
/// stays one; an infinity becomes one under a weight of 0 or beside its opposite.
struct Injection {
    double value = nan;
    TensorSet inputs;
    std::vector<RowMatch> reached, untouched;
    std::int64_t channel = -1;
    std::string what;  ///< "NaN in key 3"
};

std::string where(const Problem& problem, std::int64_t batch, std::int64_t head_kv) {
    std::string text;
    if (problem.heads_kv > 1) text += fmt::format(" of key/value head {}", head_kv);
    if (problem.batch > 1) text += fmt::format(" of sequence {}", batch);
    return text;
}

Injection into_query(const Run& base) {
    const Trial& trial = base.trial();
    const Problem& problem = base.problem();
    const std::uint64_t stream = stream_of("hygiene.nonfinite.q");
    const Row row{trial.random_below(stream, 0, problem.batch),
                  trial.random_below(stream, 1, problem.heads_q),
                  trial.random_below(stream, 2, problem.len_q)};
    Injection injection;
    injection.inputs = base.inputs();
    injection.inputs[Role::q].put(row.batch, row.head, row.query,
                                  trial.random_below(stream, 3, problem.dim_qk), nan);
    const Visibility visibility = base.visibility();
    for (const RowMatch& match : defined_rows(base)) {
        if (!(match.first == row))
            injection.untouched.push_back(match);
        else if (visibility.is_query(row) && !visibility.empty(row))
            injection.reached.push_back(match);
    }
    injection.what = "NaN in " + name_of(problem, row);
    return injection;
}

Injection into_key(const Run& base, Role role, double value) {
    const Trial& trial = base.trial();
    const Problem& problem = base.problem();
    const std::uint64_t stream = stream_of("hygiene.nonfinite.kv") + (role == Role::k ? 0 : 10);
    const std::int64_t batch = trial.random_below(stream, 0, problem.batch);
    const std::int64_t head_kv = trial.random_below(stream, 1, problem.heads_kv);
    const std::int64_t key = trial.random_below(stream, 2, problem.len_kv);
    Injection injection{.value = value};
    injection.inputs = base.inputs();
    Tensor& tensor = injection.inputs[role];
    const std::int64_t channel = trial.random_below(stream, 3, tensor.shape()[3]);
    tensor.put(batch, head_kv, key, channel, value);
    if (role == Role::v) injection.channel = channel;
    const Visibility visibility = base.visibility();
    for (const RowMatch& match : defined_rows(base)) {
        const bool reads = match.first.batch == batch &&
                           match.first.head / group_size(problem) == head_kv &&
                           visibility.sees(match.first, key);
        (reads ? injection.reached : injection.untouched).push_back(match);
    }
    injection.what =
        fmt::format("{} in {} {}{}", std::isnan(value) ? "NaN" : "an infinity",
                    role == Role::k ? "key" : "value", key, where(problem, batch, head_kv));
    return injection;
}

Violation swallowed(const Run& changed, const Row& row, std::int64_t channel,
                    const std::string& what) {
    const bool output = channel < value_dim(changed.problem());
    Violation v;
    v.tensor = output ? Role::o : Role::lse;
    v.index = {row.batch, row.head, row.query};
    if (output) v.index.push_back(channel);
    v.element_name = (output ? "output of " : "log-sum-exp of ") + name_of(changed.problem(), row);
    v.expected = nan;
    v.observed = output ? changed.output().at(row.batch, row.head, row.query, channel)
                        : changed.lse().at(row.batch, row.head, row.query, 0);
    v.problem =
        fmt::format("{} {} {}, which sees it; by design? declare dialect: nonfinite unspecified",
                    what, std::isinf(v.observed) ? "is an infinity in" : "does not reach",
                    name_of(changed.problem(), row));
    v.bound_kind = BoundKind::exact;
    v.ratio = infinite;
    return v;
}

Judgement try_injection(const Run& base, Injection injection) {
    const Run changed(base.trial(), base.problem(), std::move(injection.inputs));
    const std::int64_t channels = value_dim(base.problem());
    const bool one_channel = injection.channel >= 0;
    const auto arrived = [&](double output) {
        return std::isnan(injection.value) ? std::isnan(output) : !std::isfinite(output);
    };
    std::int64_t compared = 0;
    for (const RowMatch& match : injection.reached) {
        const auto [b, h, i] = match.first;
        for (std::int64_t c = 0; c < channels; ++c) {
            if (one_channel && c != injection.channel) continue;
            ++compared;
            if (!arrived(changed.output().at(b, h, i, c)))
                return violated(swallowed(changed, match.first, c, injection.what), compared);
        }
        if (one_channel || !changed.has_lse()) continue;
        ++compared;
        if (!std::isnan(changed.lse().at(b, h, i, 0)))
            return violated(swallowed(changed, match.first, channels, injection.what), compared);
    }
    // The other channels of a row that sees a value are untouched too.
    for (const RowMatch& match : injection.reached) {
        const auto [b, h, i] = match.first;
        for (std::int64_t c = 0; one_channel && c < channels; ++c) {
            const std::int64_t at = changed.output().flat(b, h, i, c);
            if (c == injection.channel || std::isfinite(changed.output().get(at))) continue;
            if (!admitted(base.expected_output(at), base.output_format()).bounded) continue;
            Violation v = swallowed(changed, match.first, c, injection.what);
            v.problem = fmt::format("{} reaches channel {} of {}, which does not read it",
                                    injection.what, c, name_of(base.problem(), match.first));
            v.expected = base.output().get(at);
            return violated(std::move(v), compared);
        }
    }
    Relation relation;
    relation.rows = injection.untouched;
    relation.promise = same_bits_if(base.trial().numerics().deterministic);
    relation.sentence = [&](const RowMatch& match) {
        return fmt::format("{} reaches {}, which cannot see it", injection.what,
                           name_of(base.problem(), match.first));
    };
    Judgement verdict = compare_runs(base, changed, relation);
    verdict.elements += compared;
    return verdict;
}

Judgement judge_nonfinite(const Trial& trial) {
    const Run base(trial);
    std::int64_t elements = 0;
    for (const double value : {nan, infinite, -infinite}) {
        Judgement verdict = try_injection(base, into_key(base, Role::v, value));
        if (verdict.violated()) return verdict;
        elements += verdict.elements;
    }
    // An infinite in K may stand for a weight of zero or of everything: only NaN has one meaning.
    Judgement key = try_injection(base, into_key(base, Role::k, nan));
    if (key.violated()) return key;
    Judgement query = try_injection(base, into_query(base));
    if (query.violated()) return query;
    return nothing_compared(elements + key.elements + query.elements, 0,
                            "no row of this case has an answer to compare");
}

}  // namespace

Plan nonfinite_propagates(const Given& given) {
    if (given.dialect().nonfinite == Nonfinite::unspecified)
        return not_applicable("the kernel leaves non-finite inputs unspecified");
    return judge_nonfinite;
}

}  // namespace attest::law
