#include "properties/diagnosis/step_experiment.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "properties/diagnosis/evidence.hpp"
#include "properties/diagnosis/plain_calls.hpp"

namespace attest::diagnosis {

namespace {

void fill(TensorSet& inputs, Role role, double value) {
    if (!inputs.has(role)) return;
    Tensor& t = inputs[role];
    for (std::int64_t n = 0; n < t.size(); ++n)
        if (std::isfinite(t.get(n))) t.set(n, value);
}

// Products and sums of whole numbers up to 3 over 8 channels are whole and at most 72, with a bias
// or slope of 1 over 5 keys at most 77: each is a number of bfloat16 and of f16, and so is half of
// it, so that queries, scores and biases are what they are in whichever format they are kept.
std::optional<Evidence> of_whole_numbers(search::Kernel& kernel, const Case& smallest,
                                         double scale) {
    Case whole = smallest;
    Problem& p = whole.problem;
    p.softcap = 0;
    p.rope = {};
    p.scale = scale;
    p.dim_qk = std::min<std::int64_t>(p.dim_qk, 8);
    if (!p.cache.present && p.mask.lens_kv.empty() && p.mask.documents_kv.empty()) {
        p.len_q = p.len_kv = 5;
    }
    whole.values = {ValueKind::small_int, 1, {}};
    return evidence_of(kernel, whole, [](const Problem&, TensorSet& inputs) {
        for (const Role role : {Role::mask, Role::alibi_slopes, Role::sinks}) fill(inputs, role, 1);
    });
}

bool shown_right(const std::optional<Evidence>& e) {
    return e && !e->wrong();
}

/// Scores 0 and these, values 1 and zeros: the answer tells the sum l of the weights, as exp of
/// the log-sum-exp and as 1 / O, however exp was taken.
std::optional<Evidence> of_scores_below(search::Kernel& kernel, const Case& smallest,
                                        std::vector<double> scores) {
    scores.insert(scores.begin(), 0.0);
    std::vector<double> values(scores.size());
    values.front() = 1;
    Case c = plain(kernel, smallest, static_cast<std::int64_t>(scores.size()), 1);
    c.problem.scale = 1.0;
    c.values.tensors[Role::q] = {Fill::ones, {}};
    c.values.tensors[Role::k] = {Fill::explicit_values, scores};
    c.values.tensors[Role::v] = {Fill::explicit_values, values};
    return evidence_of(kernel, c);
}

std::optional<double> sum_by_output(const std::optional<Evidence>& e) {
    if (!e || e->asked.problem.format_o != Precision::f32) return std::nullopt;
    return 1 / e->observed[Role::o].get(0);
}

std::optional<double> sum_of_weights(const std::optional<Evidence>& e) {
    if (!e || !e->observed.has(Role::lse)) return sum_by_output(e);
    return std::exp(e->observed[Role::lse].get(0));
}

constexpr double depths[] = {0.75, 1.5, 2.25, 3.0};

// That some l lies so near to a number of f16 by chance has probability 2^-20 / 2^-11, of bfloat16
// less.
bool sum_is_no_member(search::Kernel& kernel, const Case& smallest, Precision format) {
    return std::ranges::any_of(depths, [&](double x) {
        const auto l = sum_of_weights(of_scores_below(kernel, smallest, {-x}));
        return l && !(std::abs(round_to(*l, format) - *l) <= sum_slack * *l);
    });
}

// An exp of its own, in sums that are right and so of no narrower format, gives l = 1 + w(x) and 1
// + w(x) + w(y) of the same w, which is not exp for every x; and 1 for one key.
bool no_other_exp(search::Kernel& kernel, const Case& smallest) {
    bool shows = false;
    double before = 0;
    for (const double x : depths) {
        const auto one = sum_by_output(of_scores_below(kernel, smallest, {-x}));
        if (!one) return false;
        const double w = *one - 1;
        shows = shows || std::abs(w - std::exp(-x)) > 4 * sum_slack;
        const double y = x - 0.75;
        const auto both = sum_by_output(of_scores_below(kernel, smallest, {-x, -y}));
        const double other = y == 0 ? 1 : before;
        if (!both || !(std::abs(*both - 1 - w - other) <= 4 * sum_slack * *both)) return true;
        before = w;
    }
    return !shows;
}

// Weights of e^-60 add nothing to one of 1, however far they are off by a share of themselves.
bool wrong_beside_nothing(search::Kernel& kernel, const Case& smallest) {
    constexpr std::size_t keys = 255;
    const auto e = of_scores_below(kernel, smallest, std::vector<double>(keys, -60.0));
    return e && e->wrong();
}

// Of n equal weights n O is the sum of the values itself, a number of the format where it was
// rounded to it, whatever scores and sums of weights are kept in. By chance one of 64 channels lies
// so near to one with probability 2^-20 / 2^-11.
bool value_sums_are_members(search::Kernel& kernel, const Case& smallest, Precision format) {
    const auto e = of_equal_weights(kernel, smallest, format);
    if (!e || !e->wrong() || e->asked.problem.format_o != Precision::f32) return false;
    const Tensor& output = e->observed[Role::o];
    for (std::int64_t n = 0; n < output.size(); ++n) {
        const double sum = equal_keys * output.get(n);
        if (!(std::abs(round_to(sum, format) - sum) <= sum_slack * std::abs(sum))) return false;
    }
    return true;
}

/// A plain call of more queries whose tensors are changed.
std::optional<Evidence> of_changed(search::Kernel& kernel, const Case& smallest,
                                   const std::function<void(Role, Tensor&)>& change) {
    constexpr std::int64_t queries = 32;
    Case c = plain(kernel, smallest, 2, 64);
    c.problem.len_q = queries;
    return evidence_of(kernel, c, [&](const Problem&, TensorSet& inputs) {
        for (const Role role : {Role::q, Role::k, Role::v}) change(role, inputs[role]);
    });
}

// Numbers of bfloat16 are ones of f16 too, and so are they times the scale of 1 / 8: rounded
// queries are what they were. Their scores are of no narrow format.
std::optional<Evidence> of_members(search::Kernel& kernel, const Case& smallest) {
    return of_changed(kernel, smallest, [](Role, Tensor& t) {
        for (std::int64_t n = 0; n < t.size(); ++n) t.set(n, round_to(t.get(n), Precision::bf16));
    });
}

// The second key's vector is the first's negated: their mean is 0, and to centre changes nothing.
std::optional<Evidence> of_mean_zero(search::Kernel& kernel, const Case& smallest, Role centred) {
    return of_changed(kernel, smallest, [centred](Role role, Tensor& t) {
        if (role != centred) return;
        for (std::int64_t n = 0; n < t.size() / 2; ++n) t.set(t.size() / 2 + n, -t.get(n));
    });
}

// A single key of value 1 gives 1 / (1 + e), four equal ones 4 / (4 + e).
bool no_epsilon(search::Kernel& kernel, const Case& smallest) {
    const auto one = sum_by_output(of_scores_below(kernel, smallest, {}));
    const auto four = sum_by_output(of_scores_below(kernel, smallest, {0, 0, 0}));
    if (!one || !four) return false;
    return *one == 1 || std::abs((*one - 1) - (*four - 4)) > 4 * sum_slack;
}

/// n keys of equal weight, of which the first alone has values: n O for each channel, 1 / n of a
/// power of two being exact. None where O is not in f32.
std::vector<double> of_first_of(search::Kernel& kernel, const Case& smallest, std::int64_t keys) {
    Case c = plain(kernel, smallest, keys, 1);
    c.problem.splits = smallest.problem.splits;
    c.problem.dim_v = 64;
    c.values.tensors[Role::q] = {Fill::zeros, {}};
    const auto e = evidence_of(kernel, c, [](const Problem& p, TensorSet& inputs) {
        Tensor& v = inputs[Role::v];
        for (std::int64_t n = p.dim_v; n < v.size(); ++n) v.set(n, 0);
    });
    if (!e || !e->wrong() || e->asked.problem.format_o != Precision::f32) return {};
    std::vector<double> values;
    for (std::int64_t n = 0; n < c.problem.dim_v; ++n)
        values.push_back(static_cast<double>(keys) * e->observed[Role::o].get(n));
    return values;
}

// The part that holds the first of n keys gives its value, over a power of two or not, rounded; the
// others give 0. That a right output is near to 64 numbers of the format by chance is as likely as
// 2^-9 to the power of 64. One key may be answered without parts.
bool a_part_is_rounded(search::Kernel& kernel, const Case& smallest, Precision format) {
    return std::ranges::any_of(std::initializer_list<std::int64_t>{1, 64}, [&](std::int64_t n) {
        const std::vector<double> values = of_first_of(kernel, smallest, n);
        return !values.empty() && std::ranges::all_of(values, [&](double x) {
            return std::abs(round_to(x, format) - x) <= sum_slack * std::abs(x);
        });
    });
}

// Of so few equal weights, in one part the sum of the values is rounded, or their mean: once.
bool rounded_before_its_end(search::Kernel& kernel, const Case& smallest, Precision format) {
    const auto e = of_equal_weights(kernel, smallest, format);
    if (!e || !e->wrong() || e->asked.problem.format_o != Precision::f32) return false;
    const Tensor &v = e->asked.inputs[Role::v], &output = e->observed[Role::o];
    for (std::int64_t c = 0; c < output.size(); ++c) {
        double sum = 0;
        for (std::int64_t j = 0; j < equal_keys; ++j) sum += v.at(0, 0, j, c);
        const double seen = equal_keys * output.get(c);
        const auto is = [&](double told) {
            return std::abs(seen - told) <= 4 * sum_slack * std::abs(sum);
        };
        if (!is(round_to(sum, format)) && !is(equal_keys * round_to(sum / equal_keys, format)))
            return true;
    }
    return false;
}

/// Which steps such words name.
bool of_scores(std::string_view id) {
    return id.starts_with("step_scores_") || id.starts_with("step_query_");
}
bool of_terms(std::string_view id) {
    return id.starts_with("step_bias_") || id.starts_with("step_rotation_");
}
bool of_sums(std::string_view id) {
    return id.starts_with("step_accumulate_");
}

}  // namespace

bool step_refuted(search::Kernel& kernel, const Case& smallest, const std::string& id) {
    const auto one_key = [&] { return evidence_of(kernel, plain(kernel, smallest, 1, 64)); };
    const auto few_keys = [&] { return evidence_of(kernel, plain(kernel, smallest, 3, 64)); };
    if (of_sums(id)) {
        const Precision format = id.ends_with("bf16") ? Precision::bf16 : Precision::f16;
        if (wrong_on_members(kernel, smallest, format)) return true;
        if (value_sums_are_members(kernel, smallest, format)) return false;
        const std::optional<Evidence> members = of_members(kernel, smallest);
        const bool products_right =
            members && members->observed.has(Role::lse) && !members->lse_wrong;
        if (products_right && shown_right(of_equal_weights(kernel, smallest, Precision::bf16)))
            return true;
        return shown_right(few_keys()) ||
               (shown_right(one_key()) && sum_is_no_member(kernel, smallest, format));
    }
    if (id.starts_with("step_exp_")) {
        const std::optional<Evidence> one = one_key();
        return (one && one->wrong()) || no_other_exp(kernel, smallest) ||
               wrong_beside_nothing(kernel, smallest) ||
               !sum_is_no_member(kernel, smallest, Precision::f16);
    }
    if (id.starts_with("step_centred_")) {
        const Role centred = id.ends_with("keys") ? Role::k : Role::v;
        const std::optional<Evidence> same = of_mean_zero(kernel, smallest, centred);
        return same && same->wrong();
    }
    if (id.starts_with("step_epsilon")) return no_epsilon(kernel, smallest);
    if (id.starts_with("step_partials_")) {
        const Precision format = id.ends_with("bf16") ? Precision::bf16 : Precision::f16;
        return wrong_on_members(kernel, smallest, format) ||
               !a_part_is_rounded(kernel, smallest, format) ||
               rounded_before_its_end(kernel, smallest, format);
    }
    // Scores in f32 show where they are large alone.
    if (of_scores(id) && !id.ends_with("f32")) {
        if (shown_right(few_keys())) return true;
        const std::optional<Evidence> members = of_members(kernel, smallest);
        const bool query = id.starts_with("step_query_");
        if (members && (query ? members->wrong() : !members->wrong())) return true;
    }
    if (!of_scores(id) && !of_terms(id)) return false;
    // The root of a scale of 1/2 is no number of any format: whoever divides it is seen.
    for (const double scale : {1.0, 0.5}) {
        const std::optional<Evidence> whole = of_whole_numbers(kernel, smallest, scale);
        if (whole && whole->wrong()) return true;
    }
    return false;
}

}  // namespace attest::diagnosis
