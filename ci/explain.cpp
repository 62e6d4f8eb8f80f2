// One case in full: the scores, the mask and the weights of one head as the reference has them,
// beside what the kernel computes, and the first step at which the two part.

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "ci/case_source.hpp"
#include "ci/check_screen.hpp"
#include "ci/commands.hpp"
#include "ci/escape.hpp"
#include "ci/exit_code.hpp"
#include "ci/explain_backward.hpp"
#include "ci/explain_steps.hpp"
#include "ci/explain_tables.hpp"
#include "ci/number.hpp"
#include "ci/screen.hpp"
#include "ci/session_options.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/law/dropout_mask.hpp"
#include "properties/search/kernel_trial.hpp"
#include "properties/search/session_kernel.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::ci {

namespace {

std::vector<ExplainTable> tables(const Screen& s, const HeadView& v) {
    const std::string none = s.dim(s.symbol("·", "."));
    std::vector<ExplainTable> list{
        {"scores",
         [&v](std::int64_t i, std::int64_t j) {
             const double score = v.row(i).scores[static_cast<std::size_t>(j)];
             return fixed(score);
         }},
        {"mask, declared",
         [&v, &s, none](std::int64_t i, std::int64_t j) {
             return v.visible(i, j) ? s.symbol("■", "#") : none;
         }},
        {"weights expected", [&v, none](std::int64_t i, std::int64_t j) {
             return v.visible(i, j) ? fixed(v.row(i).weights[static_cast<std::size_t>(j)]) : none;
         }}};
    if (!v.weights.empty())
        list.push_back({"weights observed", [&v, &s, none](std::int64_t i, std::int64_t j) {
                            const double seen = v.weight(i, j);
                            const std::string text = seen == 0 ? none : fixed(seen);
                            const std::string right =
                                v.visible(i, j)
                                    ? fixed(v.row(i).weights[static_cast<std::size_t>(j)])
                                    : none;
                            return text == right ? text : s.bad(text);
                        }});
    return list;
}

std::string element_text(const Problem& p, bool lse, std::int64_t flat) {
    const std::int64_t dim = lse ? 1 : value_dim(p);
    const std::int64_t c = flat % dim, i = flat / dim % p.len_q,
                       h = flat / dim / p.len_q % p.heads_q, b = flat / dim / p.len_q / p.heads_q;
    std::string text = (lse ? "LSE[b" : "O[b") + std::to_string(b) + " h" + std::to_string(h) +
                       " q" + std::to_string(i);
    return text + (lse ? "]" : " c" + std::to_string(c) + "]");
}

void draw_differing(Screen& s, const Problem& p, const Divergence& d) {
    std::string names;
    for (std::size_t n = 0; n < d.elements.size() && n < 3; ++n)
        names += (names.empty() ? "" : ", ") + element_text(p, d.lse, d.elements[n]);
    if (d.elements.size() > 3) names += ", ...";
    s.line("  " + count_text(static_cast<std::int64_t>(d.elements.size())) + " of " +
           counted(d.of, "element") + (d.elements.size() == 1 ? " differs: " : " differ: ") +
           names);
}

void draw_diagnosis(Screen& s, search::SessionKernel& kernel, const Case& tried) {
    search::Counterexample c;
    c.smallest = c.found.tried = tried;
    const diagnosis::Diagnosis d = diagnosis::diagnose(kernel, c, {});
    if (d.known)
        s.line("  it computes " + d.says + ": all " + counted(d.of, "element") +
                   " agree within the bound",
               4);
    else
        s.line("  what it computes is not known; " + count_text(d.tried) +
                   " known deviations tried, none accepted",
               4);
    if (!d.declared.empty()) s.line("  it declares " + d.declared, 4);
    s.line();
}

void end_explaining(Screen& s, search::SessionKernel& kernel, const Case& tried,
                    const std::string& replay) {
    draw_diagnosis(s, kernel, tried);
    s.to_copy("next:", replay, 6);
    write_out(s.text());
}

worker::CallResult refusal(std::string reason) {
    worker::CallResult result;
    result.outcome = worker::Outcome::refused;
    result.reason = std::move(reason);
    return result;
}

// The exit code: of the outcomes some say nothing against the kernel.
int draw_no_answer(Screen& s, const worker::CallResult& result) {
    using enum worker::Outcome;
    const worker::Outcome how = result.outcome;
    const bool wrong = how == error || how == crash || how == hang || how == memory;
    const std::string mark =
        s.symbol(wrong ? "✕ " : "◐ ", wrong ? "x " : "? ") + std::string(name(how));
    // Some reasons begin with the word itself.
    const std::string says = clean(result.fault ? result.fault->sentence : result.reason),
                      again = std::string(name(how)) + ": ";
    s.line((wrong ? s.bad(mark) : s.warn(mark)) + "  " +
           (says.starts_with(again) ? says.substr(again.size()) : says));
    return wrong ? exit_violated : exit_inconclusive;
}

// A law may fail on calls it makes of the case, each of which is right or is another call.
int explain_law(Screen& s, search::SessionKernel& kernel, const NamedCase& named,
                const CommandOptions& options) {
    const std::string id = options.law.empty() ? named.law : options.law;
    if (id.empty()) return exit_holds;
    const law::Property& law = law_named(id);
    search::CaseRecord record = search::try_case(kernel, law, named.tried);
    if (named.law.empty())  // as replay has it
        record.verdict = law::graded(std::move(record.verdict), search::Profile().fails);
    if (record.verdict.decision != law::Decision::violated) {
        const auto& doubt = record.verdict.doubt;
        s.line(doubt ? id + " is suspected of this case: " + clean(doubt->problem)
                     : id + " " + std::string(name(record.verdict.decision)) + " of this case");
        return exit_holds;
    }
    s.line(s.bad(id + " is violated") +
           " all the same, by calls that it makes of this case: " + law.statement);
    if (record.verdict.violation) {
        s.fact("problem", s.bold(clean(record.verdict.violation->problem)));
        draw_element(s, element_words(*record.verdict.violation));
    }
    return exit_violated;
}

std::string fill_text(const Case& c) {
    std::string text = "values " + std::string(name(c.values.kind));
    for (const auto& [role, values] : c.values.tensors)
        text += ", " + std::string(name(role)) + " " + std::string(name(values.fill));
    return text;
}

}  // namespace

int explain_command(const CommandOptions& options) {
    if (options.arguments.empty())
        throw BadInput("explain: no case named",
                       {"attest explain CASE, such as a stored id or a line"});
    const NamedCase named = find_case(options.arguments.front(), options.out);
    if (!options.law.empty()) law_named(options.law);
    const kernel::KernelSpec spec = kernel_for(named, options);
    search::SessionKernel kernel(spec, session_options(options));
    const Case tried = search::asked_of(kernel.manifest().features, named.tried);
    const Problem& p = tried.problem;

    Screen s(style_of(STDOUT_FILENO, options.colour, options.ascii));
    s.line(s.bold("attest explain") + "  " + clean(kernel.manifest().name) + " " +
           clean(kernel.manifest().version) +
           (spec.text == kernel.manifest().name ? "" : "  " + s.dim(clean(spec.text))));
    s.line();
    const double scale = effective_scale(p);
    s.line(s.bold(print(p)) + "   scale " + value_text(scale) + " (" + hex_text(scale) + ")", 2);
    s.line(s.dim(fill_text(tried)), 2);
    s.line();

    TensorSet inputs = make_inputs(tried);
    std::string reason;
    const bool supported = kernel.supports(p, &reason);
    const worker::CallResult result = supported ? kernel.forward(p, inputs) : worker::CallResult{};
    if (!supported || result.outcome != worker::Outcome::ok) {
        const int code = draw_no_answer(s, supported ? result : refusal(std::move(reason)));
        write_out(s.text());
        return code;
    }
    if (p.dropout.p > 0)
        inputs.put(Role::dropout_keep,
                   law::read_mask(search::KernelTrial(kernel, tried), p, inputs).keep);
    const Divergence divergence = find_divergence(kernel.manifest(), p, inputs, result.outputs);
    // A call of no sequence or no query has no output.
    const bool empty = divergence.truth.output.empty();
    const HeadView view =
        empty ? HeadView() : view_head(kernel, tried, inputs, result.outputs, divergence);
    const std::string replay = "attest replay " + shell_word(clean(options.arguments.front())) +
                               " --kernel " + shell_word(clean(spec.text)) +
                               out_option(options.out);
    // Nobody hands backward a mask: its steps are not told apart from that of another mask.
    const bool backward = !empty && p.dropout.p == 0 && divergence.elements.empty() &&
                          explain_backward(s, kernel, tried);
    if (!backward && !empty) draw_tables(s, tables(s, view), p, view.query, view.key);
    if (backward) {
        end_explaining(s, kernel, tried, replay);
        return exit_violated;
    }
    if (divergence.elements.empty()) {
        s.line(empty ? "no query, and so no output to show"
                     : "every element agrees with the reference within its bound, the worst at " +
                           ratio_text(divergence.worst_ratio) + " of it");
        const int code =
            explain_law(s, kernel, {tried, named.law, named.kernel, named.before}, options);
        write_out(s.text());
        return code;
    }
    s.line(s.bold("first diverging element") + "   " +
           element_text(p, divergence.lse, divergence.elements.front()));
    s.line();
    draw_steps(s, steps_of(view, divergence));
    draw_differing(s, p, divergence);
    end_explaining(s, kernel, tried, replay);
    return exit_violated;
}

}  // namespace attest::ci
