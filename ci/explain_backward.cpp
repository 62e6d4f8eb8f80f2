#include "ci/explain_backward.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ci/explain_tables.hpp"
#include "ci/number.hpp"
#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/tally.hpp"
#include "reference/oracle/gradients.hpp"

namespace attest::ci {

namespace {

using diagnosis::BackwardEvidence;

/// One number of the kernel's inside, as far as its gradients tell it.
struct Seen {
    double value = std::numeric_limits<double>::quiet_NaN();
    bool known = false, differs = false;
};

/// One head: rows of keys.
struct BackwardView {
    const BackwardEvidence& call;
    Role role = Role::d_q;
    std::int64_t flat = 0, elements = 0, of = 0;  ///< of the first that differs
    std::int64_t batch = 0, head = 0, query = 0, key = 0;
    std::int64_t first = 0;                            ///< the first query that is shown
    std::vector<oracle::RowDetail> rows{};             ///< [len_q]
    std::vector<std::vector<Seen>> weight{}, slope{};  ///< of the queries shown; slope: dX

    const Problem& problem() const { return call.asked.problem; }
    double p(std::int64_t i, std::int64_t j) const {
        return rows[static_cast<std::size_t>(i)].weights[static_cast<std::size_t>(j)];
    }
    double dp(std::int64_t i, std::int64_t j) const {
        return call.call->score(batch, head, i, j).dp.value;
    }
    double d_lse(std::int64_t i) const { return call.call->row(batch, head, i).d_lse.value; }
    double d(std::int64_t i) const { return call.call->row(batch, head, i).delta.value - d_lse(i); }
    double ds(std::int64_t i, std::int64_t j) const {
        return p(i, j) == 0 ? 0 : p(i, j) * (dp(i, j) - d(i));
    }
    const Seen* of_table(const std::vector<std::vector<Seen>>& table, std::int64_t i,
                         std::int64_t j) const {
        const std::size_t row = static_cast<std::size_t>(i - first);
        if (i < first || row >= table.size()) return nullptr;
        const Seen& seen = table[row][static_cast<std::size_t>(j)];
        return seen.known ? &seen : nullptr;
    }
};

std::int64_t count_outside(const BackwardEvidence& e, Role role, std::int64_t& first) {
    std::int64_t count = 0;
    for (std::int64_t n = e.observed[role].size() - 1; n >= 0; --n)
        if (diagnosis::outside(e.observed[role].get(n), e.truth[role][static_cast<std::size_t>(n)],
                               law::gradient_format(e.asked.problem, role))) {
            first = n;
            ++count;
        }
    return count;
}

/// Whose gradient it is, as far as its place says.
void place_element(BackwardView& v) {
    const Problem& p = v.problem();
    const std::vector<std::int64_t> at = law::gradient_at(p, v.role, v.flat).index;
    if (v.role == Role::d_sinks || v.role == Role::d_slopes) {
        v.head = at[0];
        return;
    }
    v.batch = at[0];
    v.head = v.role == Role::d_k || v.role == Role::d_v ? at[1] * group_size(p) : at[1];
    if (v.role == Role::d_q || v.role == Role::d_mask)
        v.query = at[2];
    else
        v.key = at[2];
    if (v.role == Role::d_mask) v.key = at[3];
}

/// Of a key's gradient: the first query of its group's heads that sees the key.
void find_query_of_key(BackwardView& v) {
    const Problem& p = v.problem();
    for (std::int64_t h = v.head; h < v.head + group_size(p); ++h)
        for (std::int64_t i = 0; i < p.len_q; ++i)
            if (v.call.call->score(v.batch, h, i, v.key).visible) {
                v.head = h;
                v.query = i;
                return;
            }
}

/// Backward with dO and dLSE in one row alone: dV is P_ij dO_i then, and dK is scale dX_ij q_i. A
/// unit vector shows P, the row of the case dX.
std::optional<BackwardEvidence> probe(search::Kernel& kernel, const BackwardView& v, std::int64_t i,
                                      bool unit) {
    BackwardEvidence e = v.call;
    const Tensor& given = v.call.asked.inputs[Role::d_o];
    Tensor alone(given.type(), given.shape());
    if (unit) alone.put(v.batch, v.head, i, 0, 1);
    for (std::int64_t c = 0; !unit && c < value_dim(v.problem()); ++c)
        alone.put(v.batch, v.head, i, c, given.at(v.batch, v.head, i, c));
    e.asked.inputs.put(Role::d_o, std::move(alone));
    if (e.asked.inputs.has(Role::d_lse)) {
        Tensor& d_lse = e.asked.inputs[Role::d_lse];
        const double own = d_lse.at(v.batch, v.head, i, 0);
        d_lse = Tensor(d_lse.type(), d_lse.shape());
        d_lse.put(v.batch, v.head, i, 0, own);
    }
    const Role role = unit ? Role::d_v : Role::d_k;
    worker::CallResult result = kernel.backward(e.asked.problem, e.asked.inputs, {role});
    if (result.outcome != worker::Outcome::ok || !result.outputs.has(role)) return std::nullopt;
    e.observed = std::move(result.outputs);
    e.truth = oracle::attend_gradients(e.asked.problem, e.asked.dialect, e.asked.numerics,
                                       e.asked.inputs);
    return e;
}

void read_row(search::Kernel& kernel, BackwardView& v, std::int64_t i) {
    const Problem& p = v.problem();
    const std::size_t keys = static_cast<std::size_t>(p.len_kv);
    v.weight.emplace_back(keys);
    v.slope.emplace_back(keys);
    const std::int64_t h_kv = v.head / group_size(p);
    const auto read = [&](bool unit, std::vector<Seen>& row, std::int64_t channel, double factor) {
        const auto e = probe(kernel, v, i, unit);
        if (!e || factor == 0) return;
        const Role role = unit ? Role::d_v : Role::d_k;
        for (std::size_t j = 0; j < keys; ++j) {
            const std::int64_t at =
                e->observed[role].flat(v.batch, h_kv, static_cast<std::int64_t>(j), channel);
            const double seen = e->observed[role].get(at);
            row[j] = {seen / factor, true,
                      diagnosis::outside(seen, e->truth[role][static_cast<std::size_t>(at)],
                                         law::gradient_format(p, role))};
        }
    };
    read(true, v.weight.back(), 0, 1);
    if (p.rope.style != RopeStyle::none) return;  // dK is turned: no channel is dX times a number
    const std::vector<double>& q = v.call.call->row(v.batch, v.head, i).query;
    const auto largest = std::ranges::max_element(q, {}, [](double x) { return std::abs(x); });
    read(false, v.slope.back(), largest - q.begin(), effective_scale(p) * *largest);
}

BackwardView view_of(search::Kernel& kernel, const BackwardEvidence& e) {
    BackwardView v{.call = e};
    for (const Role role : gradient_roles) {
        if (!e.observed.has(role)) continue;
        std::int64_t first = 0;
        const std::int64_t outside = count_outside(e, role, first);
        v.of += e.observed[role].size();
        v.elements += outside;
        if (outside > 0 && role == e.wrong.front()) {
            v.role = role;
            v.flat = first;
        }
    }
    place_element(v);
    if (v.role == Role::d_k || v.role == Role::d_v) find_query_of_key(v);
    const Problem& p = v.problem();
    oracle::RowDetails rows(p, e.asked.dialect, e.asked.inputs);
    for (std::int64_t i = 0; i < p.len_q; ++i) v.rows.push_back(rows.row(v.batch, v.head, i));
    v.first = std::clamp<std::int64_t>(v.query - explain_rows / 2, 0,
                                       std::max<std::int64_t>(p.len_q - explain_rows, 0));
    for (std::int64_t i = v.first; i < std::min(p.len_q, v.first + explain_rows); ++i)
        read_row(kernel, v, i);
    // The first pair that differs, where one does.
    for (const auto* table : {&v.slope, &v.weight})
        for (std::int64_t i = v.first + std::ssize(*table) - 1; i >= v.first; --i)
            for (std::int64_t j = p.len_kv - 1; j >= 0; --j)
                if (const Seen* seen = v.of_table(*table, i, j); seen != nullptr && seen->differs) {
                    v.query = i;
                    v.key = j;
                }
    return v;
}

std::vector<ExplainTable> backward_tables(const Screen& s, const BackwardView& v) {
    const auto number = [&v](auto of) {
        return [of, &v](std::int64_t i, std::int64_t j) { return fixed(of(v, i, j)); };
    };
    const auto seen = [&v, &s](const std::vector<std::vector<Seen>>& table) {
        return [&v, &s, &table](std::int64_t i, std::int64_t j) {
            const Seen* x = v.of_table(table, i, j);
            if (x == nullptr) return s.dim("?");
            return x->differs ? s.bad(fixed(x->value)) : fixed(x->value);
        };
    };
    std::vector<ExplainTable> list{
        {"P expected",
         number([](const BackwardView& w, std::int64_t i, std::int64_t j) { return w.p(i, j); })},
        {"P observed", seen(v.weight)},
        {"dP = dO V'",
         number([](const BackwardView& w, std::int64_t i, std::int64_t j) { return w.dp(i, j); })},
        {"dS expected",
         number([](const BackwardView& w, std::int64_t i, std::int64_t j) { return w.ds(i, j); })}};
    if (v.problem().rope.style == RopeStyle::none)
        list.push_back(
            {v.problem().softcap > 0 ? "dS cap' observed" : "dS observed", seen(v.slope)});
    return list;
}

std::vector<Step> backward_steps(const BackwardView& v) {
    const auto step = [](const std::string& name, const std::string& expected, const Seen* seen) {
        return Step{name,
                    expected,
                    seen == nullptr ? "not readable" : fixed(seen->value),
                    {},
                    seen != nullptr && seen->differs};
    };
    const std::string place = "[" + std::to_string(v.query) + "," + std::to_string(v.key) + "]";
    std::vector<Step> steps;
    steps.push_back(
        step("weight P" + place, fixed(v.p(v.query, v.key)), v.of_table(v.weight, v.query, v.key)));
    steps.push_back(step("dP" + place, fixed(v.dp(v.query, v.key)), nullptr));
    const bool given = v.call.asked.inputs.has(Role::d_lse);
    const std::string row = "[" + std::to_string(v.query) + "]";
    if (given) steps.push_back(step("dLSE" + row, fixed(v.d_lse(v.query)), nullptr));
    const Seen* ds = v.of_table(v.slope, v.query, v.key);
    const double p = v.p(v.query, v.key);
    // dS = P (dP - D): D, where the rest is right.
    Seen delta;
    if (ds != nullptr && p > 0 && v.problem().softcap == 0)
        delta = {v.dp(v.query, v.key) - ds->value / p, true, ds->differs};
    const Seen* weight = v.of_table(v.weight, v.query, v.key);
    const bool readable = delta.known && weight != nullptr && !weight->differs;
    steps.push_back(step("delta D" + row + (given ? " less dLSE" : ""), fixed(v.d(v.query)),
                         readable ? &delta : nullptr));
    if (readable) steps.back().note = "if dP is right";
    steps.push_back(step("dS" + place, fixed(v.ds(v.query, v.key)), ds));
    const bound::ExpectedElement& e = v.call.truth[v.role][static_cast<std::size_t>(v.flat)];
    const auto [expected, observed] = value_texts(e.value, v.call.observed[v.role].get(v.flat));
    steps.push_back({"gradient", expected, observed, "bound: " + bound_text(e.bound), true});
    return steps;
}

}  // namespace

bool explain_backward(Screen& s, search::Kernel& kernel, const Case& tried) {
    if (!tried.problem.want_grad || kernel.manifest().gradients.empty()) return false;
    const auto evidence = diagnosis::backward_evidence_of(kernel, tried);
    if (!evidence || evidence->wrong.empty()) return false;
    const BackwardView v = view_of(kernel, *evidence);
    draw_tables(s, backward_tables(s, v), v.problem(), v.query, v.key);
    s.line(s.bold("first diverging element") + "   " +
           law::element_name(v.problem(), law::gradient_at(v.problem(), v.role, v.flat)) + ", in " +
           std::string(name(v.role)));
    s.line();
    draw_steps(s, backward_steps(v));
    s.line("  " + count_text(v.elements) + " of " + counted(v.of, "element") + " differ");
    return true;
}

}  // namespace attest::ci
