#include "ci/audit.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "ci/profile.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/search/clock.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/glob.hpp"
#include "properties/search/judge.hpp"
#include "properties/search/ledger.hpp"
#include "properties/search/session_kernel.hpp"
#include "properties/search/shrinker.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::ci {

namespace {

/// A kernel, what it takes, and the cases of a law in their order.
class AuditBench {
public:
    explicit AuditBench(const std::string& kernel, const std::atomic<int>* interrupted = nullptr)
        : session_(kernel::parse_kernel_spec(kernel), {}),
          profile_(load_profile("quick")),
          interrupted_(interrupted) {
        std::vector<std::string> narrowed;
        capability_ = search::probed_capability(session_, narrowed);
    }

    search::Kernel& kernel() { return session_; }
    bool interrupted() const { return interrupted_ != nullptr && *interrupted_ > 0; }
    const search::Capability& capability() const { return capability_; }
    bool applies(const law::Property& law) const {
        return !search::why_not_applicable(law, capability_);
    }
    std::optional<Case> drawn(const law::Property& law, std::uint64_t seed, std::int64_t number,
                              std::int64_t attempt) const {
        return search::draw({law, capability_, profile_}, seed, number, attempt);
    }

    /// The records up to the first violation: it is the last one, if there is one.
    std::vector<search::CaseRecord> until_violated(const law::Property& law, std::uint64_t seed,
                                                   std::int64_t cases) {
        std::vector<search::CaseRecord> records;
        for (std::int64_t number = 0; number < cases && !interrupted(); ++number)
            for (std::int64_t attempt = 0; attempt < attempts; ++attempt) {
                const auto tried = drawn(law, seed, number, attempt);
                if (!tried) continue;
                search::Judged judged = search::judge_case(session_, law, *tried, number);
                if (judged.refused || judged.vacuous) continue;
                records.push_back(std::move(judged.record));
                if (search::failure_kind(records.back())) return records;
                break;
            }
        return records;
    }

    static constexpr std::int64_t attempts = 16;

private:
    search::SessionKernel session_;
    search::Profile profile_;
    search::Capability capability_;
    const std::atomic<int>* interrupted_;
};

/// No more than a run makes of this law. A call of simulated threads takes a hundred times as long.
/// No law may see an equivalent: each is half as good as named by its row, where that is
/// affordable.
std::int64_t cases_of(const law::Property& law, const BugAudit& bug, bool simulated,
                      const AuditOptions& options) {
    const bool named = std::ranges::find(bug.must, law.id) != bug.must.end();
    const std::int64_t most = named            ? options.cases
                              : simulated      ? options.cases_simulated
                              : bug.equivalent ? (options.cases + 1) / 2
                                               : options.cases_elsewhere;
    return search::numbers_of(law, {.end = most}, false).end;
}

LawOnBug try_law(AuditBench& bench, const law::Property& law, const BugAudit& bug,
                 const AuditOptions& options, std::vector<search::CaseRecord>& first) {
    LawOnBug sum;
    sum.law = law.id;
    const std::int64_t cases = cases_of(law, bug, bench.capability().simulated, options);
    for (std::int64_t s = 0; s < options.seeds; ++s) {
        const auto begin = std::chrono::steady_clock::now();
        auto records =
            bench.until_violated(law, options.seed + static_cast<std::uint64_t>(s), cases);
        sum.seconds = std::max(sum.seconds, search::seconds_since(begin));
        sum.cases = std::max(sum.cases, static_cast<std::int64_t>(records.size()));
        if (records.empty() || !search::failure_kind(records.back())) break;
        if (sum.seen++ == 0) first = std::move(records);
    }
    return sum;
}

std::vector<double> values_of(const bound::Expected& expected) {
    std::vector<double> values;
    for (const bound::ExpectedElement& e : expected.output) values.push_back(e.value);
    return values;
}

/// Cases of the first law, outputs against the truth, as others would draw them: normal numbers.
PeerCount ask_peers(AuditBench& bench, const AuditOptions& options) {
    PeerCount sum;
    const law::Property& law = law::catalogue().front();
    AuditBench plain("cpu_naive");
    const kernel::Manifest& manifest = bench.kernel().manifest();
    for (std::int64_t number = 0; number < options.peer_cases; ++number) {
        std::optional<Case> tried =
            bench.drawn(law, options.seed, number, AuditBench::attempts - 1);
        if (!tried) continue;
        tried->values.kind = ValueKind::normal;
        std::string reason;
        if (!bench.kernel().supports(tried->problem, &reason) ||
            !plain.kernel().supports(tried->problem, &reason))
            continue;
        const TensorSet inputs = make_inputs(*tried);
        const auto run = [&](AuditBench& on) {
            on.kernel().begin_case(0);
            return on.kernel().forward(tried->problem, inputs);
        };
        const worker::CallResult observed = run(bench), naive = run(plain);
        ++sum.cases;
        std::array<bool, peer_rule_count> accepted{};
        if (observed.outcome == worker::Outcome::ok && naive.outcome == worker::Outcome::ok) {
            const auto truth = values_of(
                oracle::attend(tried->problem, manifest.dialect, manifest.numerics, inputs));
            const auto its = observed.outputs[Role::o].to_doubles();
            const auto plainly = naive.outputs[Role::o].to_doubles();
            const bool bf16 = tried->problem.format_o == Precision::bf16;
            accepted = accepted_by_peers({truth, its, plainly, bf16});
        }
        for (std::size_t rule = 0; rule < peer_rule_count; ++rule)
            sum.rejected[rule] += accepted[rule] ? 0 : 1;
    }
    return sum;
}

void ask_diagnosis(BugAudit& sum, AuditBench& bench, const kernel::Mutant& mutant,
                   const law::Property& law, const std::vector<search::CaseRecord>& records) {
    search::ShrinkLimits limits;
    limits.evaluations = 600;
    search::Shrinker shrinker(bench.kernel(), law, bench.capability(), limits, {});
    const auto told = diagnosis::diagnose(bench.kernel(), shrinker.shrink(records.back()), records);
    sum.says = told.known ? told.id : "";
    if (!mutant.diagnosis.empty())
        sum.told = !told.known ? Told::silent
                   : told.id == mutant.diagnosis || diagnosis::defect_of(told) == mutant.diagnosis
                       ? Told::right
                       : Told::wrong;
}

}  // namespace

std::string_view name(Told told) {
    constexpr std::string_view names[] = {"", "right", "silent", "wrong"};  // not asked: nothing
    return names[static_cast<std::size_t>(told)];
}

std::optional<BugAudit> audit(const kernel::Mutant& mutant, const AuditOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    BugAudit sum;
    sum.bug = mutant.id;
    sum.bug_class = mutant.bug_class;
    sum.kernel = mutant.kernel;
    sum.equivalent = mutant.equivalent;
    sum.must.assign(mutant.must.begin(), mutant.must.end());
    sum.seeds = options.seeds;
    AuditBench bench("mutant:" + sum.bug, options.interrupted);
    for (const law::Property& law : law::catalogue()) {
        if (!search::selected(options.match, law.id)) continue;
        if (!bench.applies(law)) continue;
        std::vector<search::CaseRecord> first;
        sum.laws.push_back(try_law(bench, law, sum, options, first));
        if (!first.empty() && !sum.must.empty() && law.id == sum.must.front())
            ask_diagnosis(sum, bench, mutant, law, first);
    }
    sum.peers = ask_peers(bench, options);
    sum.seconds = search::seconds_since(begin);
    return bench.interrupted() ? std::nullopt : std::optional(std::move(sum));
}

RightAudit audit_right(const std::string& kernel, const AuditOptions& options) {
    AuditBench bench(kernel);
    return {kernel, ask_peers(bench, options)};
}

}  // namespace attest::ci
