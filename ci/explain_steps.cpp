#include "ci/explain_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ci/number.hpp"
#include "properties/diagnosis/evidence.hpp"
#include "properties/diagnosis/picture.hpp"

namespace attest::ci {

namespace {

constexpr std::int64_t weights_read_max = 256;  // keys: one call of the kernel for dim_v of them

void compare(const Tensor& observed, const std::vector<bound::ExpectedElement>& expected,
             Precision format, Divergence& d) {
    for (std::size_t n = 0; n < expected.size(); ++n) {
        const double seen = observed.get(static_cast<std::int64_t>(n));
        ++d.of;
        d.worst_ratio = std::max(d.worst_ratio, bound::error_ratio(seen, expected[n], format));
        if (bound::judge(seen, expected[n], format) == bound::Agreement::disagrees)
            d.elements.push_back(static_cast<std::int64_t>(n));
    }
}

// "0-3, 7" of a set of keys.
std::string ranges_text(const std::vector<std::int64_t>& keys) {
    if (keys.empty()) return "none";
    std::string text;
    for (std::size_t n = 0; n < keys.size();) {
        std::size_t last = n;
        while (last + 1 < keys.size() && keys[last + 1] == keys[last] + 1) ++last;
        text += (text.empty() ? "" : ", ") + std::to_string(keys[n]);
        if (last > n) text += fmt::format("-{}", keys[last]);
        n = last + 1;
    }
    return text;
}

Step step(std::string name, std::string expected, std::string observed, std::string note = {}) {
    const bool differs = expected != observed;
    return {std::move(name), std::move(expected), std::move(observed), std::move(note), differs};
}

}  // namespace

bool HeadView::visible(std::int64_t i, std::int64_t j) const {
    return row(i).scores[static_cast<std::size_t>(j)] > -infinite;
}

Divergence find_divergence(const kernel::Manifest& manifest, const Problem& problem,
                           const TensorSet& inputs, const TensorSet& observed) {
    Divergence d;
    d.truth = oracle::attend(problem, manifest.dialect, manifest.numerics, inputs);
    compare(observed[Role::o], d.truth.output, problem.format_o, d);
    if (!d.elements.empty() || !observed.has(Role::lse)) return d;
    const Divergence outputs = d;
    d.of = 0;
    compare(observed[Role::lse], d.truth.lse, diagnosis::lse_format(problem), d);
    d.lse = !d.elements.empty();
    if (!d.lse) d.of += outputs.of;
    return d;
}

HeadView view_head(search::Kernel& kernel, const Case& tried, const TensorSet& inputs,
                   const TensorSet& observed, const Divergence& divergence) {
    HeadView v;
    v.problem = tried.problem;
    const Problem& p = v.problem;
    const std::int64_t flat = divergence.elements.empty() ? 0 : divergence.elements.front();
    const std::int64_t dim = divergence.lse ? 1 : value_dim(p);
    v.channel = flat % dim;
    v.query = flat / dim % p.len_q;
    v.head = flat / dim / p.len_q % p.heads_q;
    v.batch = flat / dim / p.len_q / p.heads_q;
    v.output = observed[Role::o].at(v.batch, v.head, v.query, v.channel);
    if (observed.has(Role::lse)) {
        const double unit =
            kernel.manifest().dialect.lse_base == LseBase::two ? std::numbers::ln2 : 1.0;
        v.lse = unit * observed[Role::lse].get((v.batch * p.heads_q + v.head) * p.len_q + v.query);
    }
    oracle::RowDetails rows(p, kernel.manifest().dialect, inputs);
    for (std::int64_t i = 0; i < p.len_q; ++i) v.rows.push_back(rows.row(v.batch, v.head, i));
    if (p.len_kv <= weights_read_max) {
        if (auto weights = diagnosis::read_weights(kernel, tried, v.batch, v.head))
            v.weights = std::move(*weights);
        Case zero = tried;
        zero.values.tensors[Role::q] = {Fill::zeros, {}};
        if (auto read = diagnosis::read_weights(kernel, zero, v.batch, v.head))
            v.flat = std::move(*read);
    }
    for (std::int64_t j = p.len_kv - 1; j >= 0 && !v.weights.empty(); --j)
        if (value_text(v.weight(v.query, j)) !=
            value_text(v.row(v.query).weights[static_cast<std::size_t>(j)]))
            v.key = j;
    return v;
}

std::vector<Step> steps_of(const HeadView& v, const Divergence& d) {
    std::vector<Step> steps;
    const oracle::RowDetail& row = v.row(v.query);
    const std::size_t q = static_cast<std::size_t>(v.query), k = static_cast<std::size_t>(v.key);
    // Weights are read off with unit vectors for values: where the log-sum-exp is right they tell
    // of these, and nothing of scores.
    const bool scored = v.lse && value_text(row.lse) == value_text(*v.lse);
    if (!v.flat.empty()) {
        std::vector<std::int64_t> may, reads;
        for (std::int64_t j = 0; j < v.problem.len_kv; ++j) {
            const bool dropped =
                v.problem.dropout.p > 0 && row.weights[static_cast<std::size_t>(j)] == 0;
            if (v.visible(v.query, j) && !dropped) may.push_back(j);
            if (v.flat[q][static_cast<std::size_t>(j)] != 0) reads.push_back(j);
        }
        steps.push_back(
            step(scored ? "values read" : "visible keys", ranges_text(may), ranges_text(reads)));
    }
    const std::string place = std::to_string(v.query) + "," + std::to_string(v.key);
    if (!v.weights.empty() && v.lse && !scored && v.problem.dropout.p == 0) {
        // log P = S - L, so the scores are seen wherever the weight is not zero.
        double maximum = -infinite;
        for (const double weight : v.weights[q]) maximum = std::max(maximum, std::log(weight));
        const double weight = v.weights[q][k];
        steps.push_back(step("score s[" + place + "]",
                             v.visible(v.query, v.key) ? value_text(row.scores[k]) : "hidden",
                             weight > 0 ? value_text(std::log(weight) + *v.lse) : "hidden"));
        steps.push_back(step("row maximum m", value_text(row.max), value_text(maximum + *v.lse)));
        steps.push_back(step("row sum l", value_text(row.sum), value_text(std::exp(-maximum))));
    }
    if (!v.weights.empty())
        steps.push_back(step("weight p[" + place + "]", value_text(row.weights[k]),
                             value_text(v.weights[q][k])));
    if (!d.lse) {
        const bound::ExpectedElement& e =
            d.truth.output[static_cast<std::size_t>(d.elements.front())];
        const auto [expected, observed] = value_texts(e.value, v.output);
        steps.push_back(step("output", expected, observed, "bound: " + bound_text(e.bound)));
    }
    if (v.lse) steps.push_back(step("log-sum-exp", value_text(row.lse), value_text(*v.lse)));
    return steps;
}

}  // namespace attest::ci
