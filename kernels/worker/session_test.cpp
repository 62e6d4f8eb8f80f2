// What goes in comes out: every interface, every layout, both sides of the guards, to the bit.

#include "kernels/worker/session.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <limits>

#include "kernels/worker/example_kernels_test.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

Problem small_problem() {
    Problem p;
    p.batch = 2;
    p.heads_q = 4;
    p.heads_kv = 2;
    p.len_q = 5;
    p.len_kv = 9;
    p.dim_qk = 11;
    p.dim_v = 6;
    p.mask.causal = true;
    return p;
}

/// Both sides: an even and an odd call.
void expect_right(Session& session, const Problem& problem) {
    const ChosenKeys choice = make_choice(problem);
    std::string reason;
    ASSERT_TRUE(session.supports(choice.problem, &reason)) << reason;
    for (int side = 0; side < 2; ++side) {
        EXPECT_EQ(wrong(choice, session.forward(choice.problem, choice.inputs)), "")
            << print(choice.problem) << " side " << side;
    }
}

class EveryInterface : public testing::TestWithParam<const char*> {
protected:
    static kernel::KernelSpec spec() {
        const std::string text = GetParam();
        if (text.starts_with("./")) return kernel::parse_kernel_spec(example(text.substr(2)));
        if (text.starts_with("exec:"))
            return kernel::parse_kernel_spec("exec:" + example(text.substr(5)));
        if (text.starts_with("python:")) {
            // The worker's folder is the current one, and the first that Python searches.
            EXPECT_EQ(::chdir(example("").c_str()), 0);
        }
        return kernel::parse_kernel_spec(text);
    }
};

TEST_P(EveryInterface, AnswersToTheBit) {
    Session session(spec(), {});
    expect_right(session, small_problem());
}

TEST_P(EveryInterface, ReadsEveryLayout) {
    Session session(spec(), {});
    for (AxisOrder order : {AxisOrder::bhtd, AxisOrder::bthd, AxisOrder::tbhd, AxisOrder::bhdt}) {
        for (std::int64_t pad : {0, 3}) {
            for (std::int64_t offset : {0, 1}) {
                const Layout layout{order, pad, offset};
                Problem p = small_problem();
                p.layout_q = p.layout_k = p.layout_v = p.layout_o = layout;
                expect_right(session, p);
            }
        }
    }
}

TEST_P(EveryInterface, GrowsAndShrinksFromCallToCall) {
    Session session(spec(), {});
    for (std::int64_t len : {1, 24, 3, 32, 1, 24}) {
        Problem p = small_problem();
        p.len_q = p.len_kv = p.dim_qk = len;
        expect_right(session, p);
    }
}

TEST_P(EveryInterface, RefusesWithAReason) {
    Session session(spec(), {});
    Problem p = small_problem();
    p.splits = 2;
    std::string reason;
    EXPECT_FALSE(session.supports(p, &reason));
    EXPECT_FALSE(reason.empty());
    const CallResult result = session.forward(p, {});
    EXPECT_EQ(result.outcome, Outcome::refused);
    EXPECT_EQ(result.reason, reason);
}

TEST_P(EveryInterface, EmptyAxesAreFine) {
    Session session(spec(), {});
    Problem p = small_problem();
    p.mask.causal = false;
    p.len_kv = 0;
    TensorSet inputs;
    inputs.put(Role::q, Tensor(ElementType::f32, {p.batch, p.heads_q, p.len_q, p.dim_qk}));
    inputs.put(Role::k, Tensor(ElementType::f32, {p.batch, p.heads_kv, 0, p.dim_qk}));
    inputs.put(Role::v, Tensor(ElementType::f32, {p.batch, p.heads_kv, 0, p.dim_v}));
    for (int side = 0; side < 2; ++side) {
        const CallResult result = session.forward(p, inputs);
        ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
        EXPECT_FALSE(result.outputs_unwritten);
        for (double o : result.outputs[Role::o].to_doubles()) EXPECT_EQ(o, 0);
        for (double l : result.outputs[Role::lse].to_doubles()) {
            EXPECT_EQ(l, -std::numeric_limits<double>::infinity());
        }
    }
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
    std::string text = info.param;
    for (char& c : text) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    return text;
}

INSTANTIATE_TEST_SUITE_P(Worker, EveryInterface,
                         testing::Values("cpu_naive", "./libplugin.so",
                                         "python:numpy_attention:forward", "exec:plain_program.py"),
                         test_name);

TEST(Session, CarriesEveryFormat) {
    for (const char* kernel : {"cpu_naive", "python:numpy_attention:forward"}) {
        ASSERT_EQ(::chdir(example("").c_str()), 0);
        Session session(kernel::parse_kernel_spec(kernel), {});
        for (Precision format : {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}) {
            Problem p = small_problem();
            p.format_q = p.format_kv = p.format_o = format;
            expect_right(session, p);
        }
    }
}

// Every other call has a place for it, and no kernel is handed one.
TEST(Session, TheMaskThatWasDroppedByIsAnOptionalOutput) {
    Session session(kernel::parse_kernel_spec("cpu_naive"), {});
    Problem p = small_problem();
    p.dropout = {.p = 0.25, .seed = 3};
    TensorSet inputs = make_inputs({p, {}});
    inputs.put(Role::dropout_keep, Tensor(ElementType::u8, *shape_of(p, Role::dropout_keep)));
    TensorSet first;
    for (int side = 0; side < 2; ++side) {
        const CallResult result = session.forward(p, inputs);
        ASSERT_EQ(result.outcome, Outcome::ok) << result.reason;
        EXPECT_FALSE(result.fault || result.outputs_unwritten);
        EXPECT_EQ(result.outputs.has(Role::dropout_keep), side == 0);
        if (side == 0) first = result.outputs;
        EXPECT_EQ(result.outputs[Role::o], first[Role::o]);
    }
    std::int64_t kept = 0;
    const Tensor& keep = first[Role::dropout_keep];
    for (std::int64_t at = 0; at < keep.size(); ++at) kept += keep.bits(at) == 1 ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(keep.size()), 0.75, 0.1);
}

TEST(Session, LaysSequencesIntoPages) {
    Session session(kernel::parse_kernel_spec("cpu_naive"), {});
    for (AxisOrder order : {AxisOrder::bhtd, AxisOrder::bthd}) {
        Problem p = small_problem();
        p.cache = {.present = true, .len = p.len_kv - p.len_q, .page_size = 4};
        p.layout_k.order = order;
        expect_right(session, p);
    }
}

}  // namespace
}  // namespace attest::worker
