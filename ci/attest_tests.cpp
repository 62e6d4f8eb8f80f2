// The GoogleTest driver: one test a law and built-in kernel, one a planted bug, all registered at
// run time from the catalogue and the museum. An empty catalogue is a failure, not "0 tests,
// PASSED".

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "ci/golden.hpp"
#include "ci/judged.hpp"
#include "ci/number.hpp"
#include "kernels/interface/builtin_catalogue.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/search/session_kernel.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {
namespace {

constexpr std::int64_t equivalent_cases = 12, equivalent_cases_simulated = 3;

JudgedLengths lengths_of(std::string_view kernel) {
    return kernel.starts_with("simt_") ? JudgedLengths::simulated : JudgedLengths::profile;
}

/// One law on one correct kernel.
class LawTest : public testing::Test {
public:
    LawTest(const law::Property& law, const kernel::BuiltinEntry& kernel)
        : law_(law), kernel_(kernel.id), cases_(kernel.cases) {}
    void TestBody() override {
        const search::LawResult result =
            judge_law(kernel_, law_.id, {.cases = cases_, .lengths = lengths_of(kernel_)});
        RecordProperty("cases", static_cast<int>(result.cases));
        RecordProperty("worst_ratio", ratio_text(result.verdict.worst_ratio));
        switch (result.verdict.decision) {
            case law::Decision::holds:
                return;
            case law::Decision::violated:
                RecordProperty("replay", replay_text(result, kernel_));
                ADD_FAILURE() << violation_text(result, kernel_);
                return;
            case law::Decision::inconclusive:
                ADD_FAILURE() << law_.id << " is inconclusive: " << result.verdict.reason.text;
                return;
            default:
                GTEST_SKIP() << result.verdict.reason.text;
        }
    }

private:
    const law::Property& law_;
    std::string kernel_;
    std::int64_t cases_;
};

/// One planted bug: its laws must see it, and the kernel it was made from must pass the same cases.
class MutantTest : public testing::Test {
public:
    explicit MutantTest(const kernel::Mutant& mutant) : mutant_(mutant) {}
    void TestBody() override {
        const std::string kernel = "mutant:" + std::string(mutant_.id);
        const Severity every = Severity::every_class;  // a suspicion counts here, and accuses too
        RecordProperty("change", std::string(mutant_.change));
        if (mutant_.equivalent) {
            const JudgedLengths lengths = lengths_of(mutant_.kernel);
            const std::int64_t few =
                lengths == JudgedLengths::simulated ? equivalent_cases_simulated : equivalent_cases;
            for (const search::LawResult& result :
                 judge_laws(kernel, {}, {few, every, lengths}).laws)
                EXPECT_NE(result.verdict.decision, law::Decision::violated)
                    << violation_text(result, kernel);
            return;
        }
        ASSERT_FALSE(mutant_.must.empty()) << "a planted bug names the laws that must catch it";
        const std::int64_t cases = load_profile("quick").cases_per_law;
        std::set<std::string> said;
        std::size_t judged = 0;
        for (const std::string_view law : mutant_.must) {
            const search::LawResult result = judge_law(kernel, std::string(law), {cases, every});
            if (result.verdict.decision == law::Decision::not_run) continue;
            ++judged;
            EXPECT_EQ(result.verdict.decision, law::Decision::violated)
                << law << " must catch " << mutant_.id << ": " << mutant_.change << " ("
                << result.cases << " cases; " << result.verdict.reason.text << ")";
            if (!result.counterexample) continue;
            // The same cases: those after which enough was known of the mutant.
            const search::LawResult right =
                judge_law(std::string(mutant_.kernel), std::string(law), {result.cases, every});
            EXPECT_NE(right.verdict.decision, law::Decision::violated)
                << violation_text(right, std::string(mutant_.kernel));
            // The dearest part: done until one of the laws' counterexamples says what is expected.
            if (mutant_.diagnosis.empty() || said.contains(std::string(mutant_.diagnosis)))
                continue;
            search::SessionKernel session(kernel::parse_kernel_spec(kernel), {});
            const diagnosis::Diagnosis d =
                diagnosis::diagnose(session, *result.counterexample, result.records);
            said.insert(d.known ? diagnosis::defect_of(d) : "not known (next " + d.next_id + ")");
            if (d.known) said.insert(d.id);
        }
        // One of tens of thousands of calls a case takes minutes to shrink.
        if (judged == 0) GTEST_SKIP() << "quick leaves out " << *mutant_.must.begin();
        if (mutant_.diagnosis.empty()) return;
        EXPECT_TRUE(said.contains(std::string(mutant_.diagnosis)))
            << "the diagnosis must be " << mutant_.diagnosis << ", said "
            << fmt::format("{}", fmt::join(said, ", "));
    }

private:
    const kernel::Mutant& mutant_;
};

/// A built-in kernel says its own name: in a plug-in it is found by a number.
class NameTest : public testing::Test {
public:
    explicit NameTest(std::string id) : id_(std::move(id)) {}
    void TestBody() override {
        try {
            const search::SessionKernel session(kernel::parse_kernel_spec(id_), {});
            EXPECT_EQ(session.manifest().name, id_);
        } catch (const BadInput& absent) {
            // Not every machine has a GPU, or the compiler for one.
            if (!id_.starts_with("cuda_")) throw;
            GTEST_SKIP() << absent.what();
        }
    }

private:
    std::string id_;
};

/// GoogleTest's filter, by which ctest picks one test, reads a colon as the end of a pattern.
std::string test_name(std::string kernel) {
    std::replace(kernel.begin(), kernel.end(), ':', '_');
    return kernel;
}

void register_tests() {
    for (const law::Property& law : law::catalogue()) {
        const int line = declaration_line(law, repository_directory());
        for (const kernel::BuiltinEntry& kernel : kernel::builtin_catalogue()) {
            if (kernel.cases == 0) continue;
            testing::RegisterTest(
                law.family().c_str(), (law.law() + "/" + test_name(kernel.id)).c_str(), nullptr,
                nullptr, law.file.c_str(), line,
                [&law, &kernel]() -> testing::Test* { return new LawTest(law, kernel); });
        }
    }
    for (const kernel::BuiltinEntry& kernel : kernel::builtin_catalogue())
        testing::RegisterTest("manifest", test_name(kernel.id).c_str(), nullptr, nullptr,
                              "kernels/interface/builtin.hpp", 1,
                              [&kernel]() -> testing::Test* { return new NameTest(kernel.id); });
    for (const kernel::Mutant& mutant : kernel::museum())
        testing::RegisterTest("museum", std::string(mutant.id).c_str(), nullptr, nullptr,
                              "kernels/mutants/planted.hpp", 1,
                              [&mutant]() -> testing::Test* { return new MutantTest(mutant); });
}

}  // namespace
}  // namespace attest::ci

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    // Memory that a case's tensors leave is the next case's: given back, it is cleared page by
    // page, which was a third of the time of some tests.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (attest::law::catalogue().empty() || attest::kernel::museum().empty()) {
        std::fprintf(stderr, "attest_tests: the catalogue is empty: no law was linked\n");
        return 1;
    }
    attest::ci::register_tests();
    return RUN_ALL_TESTS();
}
