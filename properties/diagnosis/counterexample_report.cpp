#include "properties/diagnosis/counterexample_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "properties/diagnosis/call_listener.hpp"
#include "properties/diagnosis/misread.hpp"
#include "properties/diagnosis/stray_read.hpp"
#include "properties/diagnosis/unfollowed.hpp"
#include "properties/search/confirm.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::int64_t weights_max = 8;  // rows and columns
constexpr std::int64_t map_max = 128;    // rows and columns; larger ones are taken in blocks
constexpr std::int64_t map_products = 4'000'000;  // about 10 ms of the reference

// A death breaks no element; the sentence says it all.
law::Violation death_of(const search::Counterexample& c) {
    law::Violation v;
    v.problem = c.fault ? c.fault->sentence : c.verdict.reason.text;
    v.bound_kind = law::BoundKind::declared;
    return v;
}

std::optional<std::int64_t> ulps_of(const law::Violation& v, const Problem& problem) {
    if (!std::isfinite(v.expected) || !std::isfinite(v.observed) || v.expected == 0 ||
        v.observed == 0 || std::signbit(v.expected) != std::signbit(v.observed))
        return std::nullopt;
    const Precision format = v.tensor == Role::o                  ? problem.format_o
                             : problem.format_q == Precision::f64 ? Precision::f64
                                                                  : Precision::f32;
    return ulps_between(round_to(v.expected, format), round_to(v.observed, format), format);
}

// Weights of batch 0, head 0 of the smallest case, as the reference and as the kernel has them.
std::optional<HeadWeights> weights_of(search::Kernel& kernel, const Case& smallest) {
    const Problem& p = smallest.problem;
    if (p.len_q > weights_max || p.len_kv > weights_max) return std::nullopt;
    auto observed = read_weights(kernel, smallest, 0, 0);
    if (!observed) return std::nullopt;
    HeadWeights weights{{}, std::move(*observed)};
    const TensorSet inputs = make_inputs(smallest);
    oracle::RowDetails rows(p, kernel.manifest().dialect, inputs);
    for (std::int64_t i = 0; i < p.len_q; ++i) weights.expected.push_back(rows.row(i).weights);
    return weights;
}

int level_of(double ratio) {
    if (ratio <= 1) return 0;
    if (!(ratio < 1e5)) return 6;
    return std::clamp(1 + static_cast<int>(std::floor(std::log10(ratio))), 1, 6);
}

// Every head's levels, one after the other.
std::vector<int> levels_of(const Tensor& o, const bound::Expected& truth, Precision format) {
    std::vector<int> levels;
    for (std::int64_t n = 0; n < o.size(); ++n)
        levels.push_back(level_of(
            bound::error_ratio(o.get(n), truth.output[static_cast<std::size_t>(n)], format)));
    return levels;
}

// The head that is furthest off.
std::int64_t worst_head(const std::vector<int>& levels, std::int64_t head_size) {
    std::int64_t worst = 0, most = -1;
    const auto heads = static_cast<std::int64_t>(levels.size()) / head_size;
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto begin = levels.begin() + h * head_size;
        const std::int64_t sum = std::accumulate(begin, begin + head_size, std::int64_t{0});
        if (sum <= most) continue;
        most = sum;
        worst = h;
    }
    return worst;
}

std::optional<ErrorMap> map_of(search::Kernel& kernel, const Case& found) {
    const Problem& p = found.problem;
    if (products(p) > map_products) return std::nullopt;
    const TensorSet inputs = make_inputs(found);
    const worker::CallResult result = kernel.forward(p, inputs);
    if (result.outcome != worker::Outcome::ok || !result.outputs.has(Role::o)) return std::nullopt;
    const kernel::Manifest& manifest = kernel.manifest();
    const bound::Expected truth = oracle::attend(p, manifest.dialect, manifest.numerics, inputs);
    const std::vector<int> levels = levels_of(result.outputs[Role::o], truth, p.format_o);
    const std::int64_t dim = value_dim(p), head_size = p.len_q * dim;
    const std::int64_t worst = worst_head(levels, head_size);
    const std::int64_t tall = (p.len_q + map_max - 1) / map_max,
                       broad = (dim + map_max - 1) / map_max;
    ErrorMap map{worst / p.heads_q, worst % p.heads_q, {}};
    map.levels.assign(static_cast<std::size_t>((p.len_q + tall - 1) / tall),
                      std::string(static_cast<std::size_t>((dim + broad - 1) / broad), '0'));
    for (std::int64_t i = 0; i < p.len_q; ++i)
        for (std::int64_t c = 0; c < dim; ++c) {
            const int level = levels[static_cast<std::size_t>(worst * head_size + i * dim + c)];
            char& cell =
                map.levels[static_cast<std::size_t>(i / tall)][static_cast<std::size_t>(c / broad)];
            cell = std::max(cell, static_cast<char>('0' + level));
        }
    return map;
}

// Of a race one replay that failed is none that always does.
void replay_more(search::Kernel& kernel, search::Counterexample& c) {
    search::Replays& alone = c.confirmed.alone;
    const law::Property* law = law::find_property(c.law);
    if (alone.of != 1 || law == nullptr) return;
    const search::Replays more = search::replay_alone(
        kernel, *law, c.smallest, {c.outcome, c.fault.has_value()}, {.until_both = true});
    alone.of += more.of;
    alone.failed += more.failed;
}

}  // namespace

bool failed_now_and_then(const search::Confirmed& confirmed) {
    return confirmed.how == search::Confirmation::schedule ||
           confirmed.alone.failed < confirmed.alone.of;
}

CounterexampleReport counterexample_report(const search::LawResult& result, search::Kernel* kernel,
                                           bool races, const NamedDeviations& named) {
    CounterexampleReport report;
    report.example = *result.counterexample;
    const search::Counterexample& c = report.example;
    if (!c.verdict.violation) report.example.verdict.violation = death_of(c);
    report.ulps = ulps_of(report.violation(), c.smallest.problem);
    report.boundary = find_boundary(result.records, &c.smallest);
    if (kernel == nullptr || report.died()) return report;
    if (races) {
        replay_more(*kernel, report.example);
        if (failed_now_and_then(c.confirmed)) return report;
    }
    report.diagnosis = diagnose(*kernel, c, result.records, named, races);
    if (const auto& evidence = report.diagnosis.evidence)
        for (const Evidence& e : evidence->wrong) report.boundary.hear(e.asked.problem);
    Diagnosis& d = report.diagnosis;
    if (d.evidence && (!d.known || d.general))
        d.strays = dies_of_stray_read(*kernel, c, d.evidence->wrong);
    if (!d.known) {
        d.misread = misread(*kernel, c.smallest, d.backward ? Pass::backward : Pass::forward);
        if (d.misread.empty() && !d.backward) d.misread = unfollowed(*kernel, c.smallest);
    }
    try {
        report.pictures = pictures_of(*kernel, c.smallest);
        report.weights = weights_of(*kernel, c.smallest);
        report.map = map_of(*kernel, c.found.tried);
    } catch (const BadInput&) {
        // A relative of the case that means nothing; the pictures are an addition.
    }
    return report;
}

}  // namespace attest::diagnosis
