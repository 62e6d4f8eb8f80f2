// What there is: laws, kernels, mutants, profiles, fixtures.

#include <unistd.h>

#include <algorithm>

#include "ci/case_source.hpp"
#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/fixture.hpp"
#include "ci/number.hpp"
#include "ci/profile.hpp"
#include "ci/screen.hpp"
#include "ci/suggest.hpp"
#include "kernels/interface/builtin_catalogue.hpp"
#include "properties/law/property.hpp"
#include "properties/search/glob.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

std::string features_text(FeatureSet set) {
    std::string text;
    for (int n = 0; n < feature_count; ++n)
        if (set.has(static_cast<Feature>(n)))
            text.append(text.empty() ? "" : ", ").append(name(static_cast<Feature>(n)));
    return text;
}

std::string needs_text(const law::Property& law) {
    std::string text = law.needs.backward ? "backward" : "forward";
    if (law.needs.d_q) text += ", dQ";
    if (law.needs.d_k) text += ", dK";
    if (law.needs.d_v) text += ", dV";
    if (law.needs.lse) text += ", log-sum-exp";
    if (law.needs.deterministic) text += ", claims deterministic";
    if (law.needs.batch_invariant) text += ", claims batch_invariant";
    if (law.needs.concurrent) text += ", claims concurrent";
    if (law.needs.simulated) text += ", simulated threads";
    if (law.needs.structure)
        text += law.needs.backward ? ", declares how it rounds" : ", declares its tile";
    if (const std::string more = features_text(law.cases.require); !more.empty())
        text += ", " + more;
    std::string any;
    for (const FeatureSet set : law.cases.require_any)
        any += (any.empty() ? "" : " or ") + features_text(set);
    return any.empty() ? text : text + ", " + any;
}

std::string cases_text(const law::Property& law) {
    const law::CaseSpace& c = law.cases;
    std::string text = c.square ? "Tq = Tk" : c.len_q_one ? "Tq = 1" : "any lengths";
    if (c.cost > 1) text += ", a case as dear as " + count_text(c.cost) + " of one run";
    if (c.several_tiles) text += ", a quarter of them of one run's scores, in several tiles";
    const std::pair<const char*, std::int64_t> limits[] = {{"lengths", c.len_max},
                                                           {"head dimensions", c.dim_max},
                                                           {"sequences", c.batch_max},
                                                           {"scores", c.scores_max}};
    std::string own;
    for (const auto& [what, most] : limits)
        if (most > 0)
            own += (own.empty() ? "; " : ", ") + std::string(what) + " to " + count_text(most);
    if (!own.empty()) text += own + ", whatever the profile: " + c.limited_because;
    if (!c.kinds.empty()) {
        text += "; values";
        for (const ValueKind kind : c.kinds) text.append(" ").append(name(kind));
    }
    return text;
}

std::string compares_text(const law::Property& law) {
    switch (law.compares) {
        case law::Compares::bound:
            return "within derived bounds";
        case law::Compares::bits:
            return "to the bit";
        case law::Compares::statistic:
            return "a statistic with a stated false-positive rate";
        case law::Compares::property:
            break;
    }
    return "a property of the output itself";
}

bool shown(const CommandOptions& o, std::string_view id) {
    return search::selected(o.match, id);
}

// A family or a glob, where a law was to be named.
void refuse_part(const std::string& part) {
    const std::string glob = part.find('*') == std::string::npos ? part + ".*" : part;
    for (const law::Property& law : law::catalogue())
        if (search::matches(glob, law.id))
            throw BadInput("list laws " + part + ": no law of this name",
                           {"--match \"" + glob + "\" shows a part"});
}

int list_one_law(Screen& s, const std::string& id) {
    if (law::find_property(id) == nullptr) refuse_part(id);
    const law::Property* law = &law_named(id, "");
    std::string catches;
    for (const kernel::Mutant& mutant : kernel::museum())
        if (std::find(mutant.must.begin(), mutant.must.end(), law->id) != mutant.must.end())
            catches.append(catches.empty() ? "" : " ").append(mutant.id);
    s.line(s.bold(law->id));
    s.line();
    s.fact("statement", law->statement, 11);
    s.fact("why", law->why, 11);
    s.fact("source", law->source, 11);
    s.fact("needs", needs_text(*law), 11);
    s.fact("cases", cases_text(*law), 11);
    s.fact("compares", compares_text(*law), 11);
    if (!catches.empty()) s.fact("catches", catches, 11);
    s.fact("file", law->file, 11);
    return exit_holds;
}

bool list_laws(Screen& s, const CommandOptions& o) {
    const bool wide = s.style().wide();
    const std::string needs = wide ? s.pad(s.dim("needs"), 37) : "";
    s.line(s.pad(s.dim("law"), 28) + needs + s.dim("statement"));
    std::int64_t count = 0;
    std::string last;
    for (const law::Property& law : law::catalogue()) {
        if (!shown(o, law.id)) continue;
        ++count;
        last = law.id;
        const std::string middle = wide ? s.pad(s.dim(s.cut(needs_text(law), 35)), 37) : "";
        const int used = 28 + (wide ? 37 : 0);
        s.line(s.pad(law.id, 27) + " " + middle +
               s.cut(law.statement_short, s.style().width - used));
    }
    s.line();
    s.line(count_text(count) + " of " +
           counted(static_cast<std::int64_t>(law::catalogue().size()), "law") +
           (last.empty() ? "" : ".  One in full: " + s.command("attest list laws " + last)));
    return count > 0;
}

bool list_kernels(Screen& s, const CommandOptions& o) {
    bool any = false;
    for (const kernel::BuiltinEntry& kernel : kernel::builtin_catalogue())
        if (shown(o, kernel.id) && !(o.match.empty() && kernel.id.starts_with("mutant:"))) {
            any = true;
            s.line(s.pad(kernel.id, 27) + "  " + clean(kernel.summary), 29);
        }
    s.line();
    s.line("also ./lib.so, ./lib.so#1, ./file.json, python:module:function, exec:./program");
    return any;
}

bool list_mutants(Screen& s, const CommandOptions& o) {
    std::int64_t count = 0;
    for (const kernel::Mutant& mutant : kernel::museum()) {
        if (!shown(o, mutant.id)) continue;
        ++count;
        std::string must;
        for (const std::string_view law : mutant.must)
            must.append(must.empty() ? "" : ", ").append(law);
        s.line(s.pad(s.bold(mutant.id), 6) + s.pad(std::string(mutant.bug_class), 4) +
                   std::string(mutant.change),
               10);
        s.line(s.dim("          " + (mutant.equivalent ? "equivalent: no law may be violated"
                                                       : "caught by " + must)),
               10);
    }
    s.line();
    s.line(count_text(count) + " of " +
           count_text(static_cast<std::int64_t>(kernel::museum().size())) +
           ".  One judged: " + s.command("attest check mutant:M001"));
    return count > 0;
}

bool list_profiles(Screen& s, const CommandOptions& o) {
    bool any = false;
    for (const auto& [profile, summary] : builtin_profiles())
        if (shown(o, profile.name)) {
            any = true;
            s.line(s.pad(s.bold(profile.name), 10) +
                       s.pad_left(count_text(profile.cases_per_law), 6) + " cases a law   " +
                       summary,
                   31);
        }
    return any;
}

bool list_fixtures(Screen& s, const CommandOptions& o) {
    bool any = false;
    for (const auto& [name, fixture] : builtin_fixtures())
        if (shown(o, name)) {
            any = true;
            s.line(s.pad(s.bold(name), 24) + "  " + print(fixture.tried), 26);
        }
    s.line();
    s.line("one under every law: " + s.command("attest replay NAME --kernel cpu_flash"));
    return any;
}

}  // namespace

int list_command(const CommandOptions& o) {
    Screen s(style_of(STDOUT_FILENO, o.colour, o.ascii));
    const std::string what = o.arguments.empty() ? "laws" : o.arguments.front();
    if (o.arguments.size() == 2 && what != "laws")
        throw BadInput("one argument too many for list " + what + ": " + o.arguments[1],
                       {"--match \"" + o.arguments[1] + "\" shows a part"});
    bool any = true;
    if (o.arguments.size() == 2)
        list_one_law(s, o.arguments[1]);
    else if (what == "laws")
        any = list_laws(s, o);
    else if (what == "kernels")
        any = list_kernels(s, o);
    else if (what == "mutants")
        any = list_mutants(s, o);
    else if (what == "profiles")
        any = list_profiles(s, o);
    else if (what == "fixtures")
        any = list_fixtures(s, o);
    else
        throw BadInput("list " + what + ": no such list" +
                           suggestion(what, {"laws", "kernels", "mutants", "profiles", "fixtures"}),
                       {"one of laws, kernels, mutants, profiles, fixtures"});
    if (!any) {
        std::string globs;
        for (const std::string& glob : o.match) globs += (globs.empty() ? "" : ", ") + glob;
        throw BadInput("--match \"" + globs + "\" matches none of the " + what,
                       {"attest list " + what + " shows them"});
    }
    write_out(s.text());
    return exit_holds;
}

}  // namespace attest::ci
