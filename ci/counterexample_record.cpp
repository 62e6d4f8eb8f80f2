#include "ci/counterexample_record.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ci/law_record.hpp"
#include "ci/number.hpp"
#include "properties/diagnosis/boundary.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/picture.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

constexpr std::size_t steps_max = 64;    // report.md: so many are kept
constexpr std::int64_t weights_max = 8;  // rows and columns
constexpr std::int64_t map_max = 128;    // rows and columns; larger ones are taken in blocks
constexpr std::int64_t map_products = 4'000'000;  // about 10 ms of the reference

Record value_record(double value, const std::string& decimal) {
    return {{"hex", hex_text(value)}, {"decimal", decimal}};
}

Record ulps_of(const Violation& v, const Problem& problem) {
    if (!std::isfinite(v.expected) || !std::isfinite(v.observed) || v.expected == 0 ||
        v.observed == 0 || std::signbit(v.expected) != std::signbit(v.observed))
        return nullptr;
    const Precision format = v.tensor == Role::o                  ? problem.format_o
                             : problem.format_q == Precision::f64 ? Precision::f64
                                                                  : Precision::f32;
    const std::int64_t ulps =
        ulps_between(round_to(v.expected, format), round_to(v.observed, format), format);
    return ulps;
}

void add_violation(Record& out, const Counterexample& c) {
    Violation v;
    if (c.verdict.violation) {
        v = *c.verdict.violation;
    } else {
        v.problem = c.fault ? c.fault->sentence : c.verdict.reason.text;
        v.bound_kind = BoundKind::declared;
    }
    const auto [expected, observed] = value_texts(v.expected, v.observed);
    out["problem"] = v.problem;
    out["at"] = {{"tensor", name(v.tensor)}, {"index", v.index}, {"name", v.element_name}};
    out["expected"] = value_record(v.expected, expected);
    out["observed"] = value_record(v.observed, observed);
    out["bound"] = value_record(v.bound, bound_text(v.bound));
    out["bound"]["kind"] = name(v.bound_kind);
    out["ratio"] = real(v.ratio);
    out["ulps"] = ulps_of(v, c.smallest.problem);
}

Record shrink_record(const Counterexample& c) {
    Record steps = Record::array();
    // The last steps are the telling ones.
    const std::size_t first = c.steps.size() > steps_max ? c.steps.size() - steps_max : 0;
    for (std::size_t n = first; n < c.steps.size(); ++n)
        steps.push_back({{"evaluation", c.steps[n].evaluation},
                         {"pass", c.steps[n].pass},
                         {"change", c.steps[n].change},
                         {"line", c.steps[n].line},
                         {"scores", c.steps[n].scores}});
    return {{"evaluations", c.evaluations},
            {"accepted", c.accepted},
            {"seconds", c.shrink_seconds},
            {"confirmed", c.confirmed},
            {"steps", steps}};
}

Record boundary_record(const Boundary& b) {
    return {{"says", b.says},
            {"found", b.found},
            {"inside", {{"failed", b.inside_failed}, {"of", b.inside}}},
            {"outside", {{"failed", b.outside_failed}, {"of", b.outside}}},
            {"axes", b.axes},
            {"points", b.points}};
}

Record diagnosis_record(const Diagnosis& d) {
    Record out{{"known", d.known}, {"agree", d.agree}, {"of", d.of},
               {"cases", d.cases}, {"tried", d.tried}, {"next", nullptr}};
    if (!d.id.empty()) out["id"] = d.id;
    if (d.tells != Tells::nothing) out["tells"] = name(d.tells);
    if (!d.says.empty()) out["says"] = d.says;
    if (!d.declared.empty()) out["declared"] = d.declared;
    if (!d.next_id.empty()) out["next"] = {{"id", d.next_id}, {"agree", d.next_agree}};
    return out;
}

Record picture_records(Subject& kernel, const Case& smallest) {
    Record out = Record::array();
    for (const Picture& picture : pictures_of(kernel, smallest))
        out.push_back({{"line", picture.line},
                       {"rows", picture.may.size()},
                       {"cols", picture.may.empty() ? 0 : picture.may.front().size()},
                       {"may", picture.may},
                       {"reads", picture.reads}});
    return out;
}

// Weights of batch 0, head 0 of the smallest case, as the reference and as the kernel has them.
Record weights_record(Subject& kernel, const Case& smallest) {
    const Problem& p = smallest.problem;
    if (p.len_q > weights_max || p.len_kv > weights_max) return nullptr;
    const auto seen = read_weights(kernel, smallest, 0, 0);
    if (!seen) return nullptr;
    const TensorSet inputs = make_inputs(smallest);
    Record expected = Record::array(), observed = Record::array();
    for (std::int64_t i = 0; i < p.len_q; ++i) {
        const RowDetail row = row_detail(p, kernel.manifest().dialect, inputs, 0, 0, i);
        Record right = Record::array(), own = Record::array();
        for (std::size_t j = 0; j < row.weights.size(); ++j) {
            right.push_back(hex_text(row.weights[j]));
            own.push_back(hex_text((*seen)[static_cast<std::size_t>(i)][j]));
        }
        expected.push_back(right);
        observed.push_back(own);
    }
    return {{"expected", expected}, {"observed", observed}};
}

// 0 within the bound, k for a ratio of 10^(k-1) to 10^k, 6 for more.
int level_of(double ratio) {
    if (ratio <= 1) return 0;
    if (!(ratio < 1e5)) return 6;
    return std::clamp(1 + static_cast<int>(std::floor(std::log10(ratio))), 1, 6);
}

// error/bound of every output of the case as found, of the head that is furthest off.
Record map_record(Subject& kernel, const Case& found) {
    const Problem& p = found.problem;
    if (score_count(p) * (p.dim_qk + value_dim(p)) > map_products) return nullptr;
    const TensorSet inputs = make_inputs(found);
    const CallResult result = kernel.forward(p, inputs);
    if (result.outcome != Outcome::ok || !result.outputs.has(Role::o)) return nullptr;
    const Manifest& manifest = kernel.manifest();
    const Expected truth = attend(p, manifest.dialect, manifest.numerics, inputs);
    const Tensor& o = result.outputs[Role::o];
    const std::int64_t dim = value_dim(p), head_size = p.len_q * dim;
    std::vector<int> levels;
    for (std::int64_t n = 0; n < o.size(); ++n)
        levels.push_back(
            level_of(error_ratio(o.get(n), truth.output[static_cast<std::size_t>(n)], p.format_o)));
    std::int64_t worst = 0, most = -1;
    for (std::int64_t h = 0; h < p.batch * p.heads_q; ++h) {
        std::int64_t sum = 0;
        for (std::int64_t n = 0; n < head_size; ++n)
            sum += levels[static_cast<std::size_t>(h * head_size + n)];
        if (sum > most) {
            most = sum;
            worst = h;
        }
    }
    const std::int64_t tall = (p.len_q + map_max - 1) / map_max,
                       broad = (dim + map_max - 1) / map_max;
    std::vector<std::string> rows(
        static_cast<std::size_t>((p.len_q + tall - 1) / tall),
        std::string(static_cast<std::size_t>((dim + broad - 1) / broad), '0'));
    for (std::int64_t i = 0; i < p.len_q; ++i)
        for (std::int64_t c = 0; c < dim; ++c) {
            const int level = levels[static_cast<std::size_t>(worst * head_size + i * dim + c)];
            char& cell =
                rows[static_cast<std::size_t>(i / tall)][static_cast<std::size_t>(c / broad)];
            cell = std::max(cell, static_cast<char>('0' + level));
        }
    return {{"batch", worst / p.heads_q},
            {"head", worst % p.heads_q},
            {"rows", rows.size()},
            {"cols", rows.empty() ? 0 : rows.front().size()},
            {"levels", rows}};
}

void add_pictures(Record& out, const Counterexample& c, Subject& kernel) {
    try {
        out["picture"] = picture_records(kernel, c.smallest);
        out["weights"] = weights_record(kernel, c.smallest);
        out["map"] = map_record(kernel, c.found.subject);
    } catch (const BadInput&) {
        // A relative of the case that means nothing; the pictures are an addition.
    }
}

}  // namespace

Record counterexample_record(const LawResult& result, Subject* kernel) {
    const Counterexample& c = *result.counterexample;
    Record out{{"record", "counterexample"},
               {"v", 1},
               {"id", short_id(c.id)},
               {"law", c.law},
               {"cause", ""},
               {"line", print(c.smallest)},
               {"case", Record::parse(to_json(c.smallest))},
               {"outcome", name(c.outcome)},
               {"fault", fault_record(c.fault)},
               {"found",
                {{"case_number", std::max<std::int64_t>(0, c.found.number)},
                 {"stored", c.found.number < 0},
                 {"line", print(c.found.subject)},
                 {"seconds", c.found.seconds}}},
               {"shrink", shrink_record(c)},
               {"boundary", boundary_record(find_boundary(result.records, &c.smallest))},
               {"picture", Record::array()},
               {"map", nullptr},
               {"weights", nullptr}};
    add_violation(out, c);
    const bool answers = kernel != nullptr && c.outcome == Outcome::ok && !c.fault;
    out["diagnosis"] =
        diagnosis_record(answers ? diagnose(*kernel, c, result.records) : Diagnosis{});
    if (answers) add_pictures(out, c, *kernel);
    return out;
}

}  // namespace attest
