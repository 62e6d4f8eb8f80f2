// What is said of a kernel whose defect has no name: which keys its queries read, and which inputs
// its answers follow.

#include "properties/diagnosis/misread.hpp"

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/backward_actor_test.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/unfollowed.hpp"

namespace attest::diagnosis {
namespace {

Answer answering(std::function<Specification(const Specification&)> asked_instead) {
    return [asked_instead](const Specification& s, const bound::Expected&) {
        const Specification own = asked_instead(s);
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    };
}

Answer hiding_too(std::function<bool(const MaskPlace&)> lost) {
    return answering([lost](const Specification& s) { return hiding(s, lost); });
}

// An actor with a log-sum-exp, and a backward that is right for the problem `instead` makes.
class WholeActor : public Actor {
public:
    using Instead = std::function<Specification(const Specification&)>;
    WholeActor(Answer forward, Instead instead)
        : Actor(std::move(forward)), instead_(std::move(instead)), whole_(Actor::manifest()) {
        whole_.features = whole_.features.with(Feature::lse);
        whole_.gradients = {Role::d_q, Role::d_k, Role::d_v};
    }
    const kernel::Manifest& manifest() const noexcept override { return whole_; }
    worker::CallResult backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) override {
        const Specification own = instead_({problem, whole_.dialect, whole_.numerics, inputs});
        const bound::ExpectedGradients numbers =
            oracle::attend_gradients(own.problem, own.dialect, own.numerics, own.inputs);
        worker::CallResult result;
        for (const Role role : wanted) {
            Tensor& t = result.outputs.put(
                role, Tensor(type_of(problem, role), shape_of(problem, role).value()));
            for (std::int64_t n = 0; n < t.size(); ++n)
                t.set(n, numbers[role][static_cast<std::size_t>(n)].value);
        }
        return result;
    }

private:
    Instead instead_;
    kernel::Manifest whole_;
};

const Answer right = [](const Specification&, const bound::Expected& truth) { return truth; };

std::string read_by(const Answer& answer, const char* line) {
    Actor actor(answer);
    return misread(actor, parse_case(line), Pass::forward);
}

TEST(Misread, ARightKernelReadsWhatItSees) {
    WholeActor actor(right, [](const Specification& s) { return s; });
    for (const Case& c : read_stages()) {
        EXPECT_EQ(misread(actor, c, Pass::forward), "") << print(c);
        EXPECT_EQ(unfollowed(actor, c), "") << print(c);
    }
}

TEST(Misread, AKeyThatIsHidden) {
    const Answer no_window = answering([](const Specification& s) {
        Rules rules = rules_of(s);
        rules.window = {};
        return with_rules(s, rules);
    });
    EXPECT_EQ(read_by(no_window, "b1 hq1 hkv1 tq2 tk2 d1 window 0 -1 f32"),
              "query 1 reads key 0, which lies outside the window");
    EXPECT_EQ(read_by(no_window, "b2 hq2 hkv2 tq1 tk4 d1 causal window 0 -1 f32"),
              "query 0 of head 0 of sequence 0 reads key 0 of key head 0, which lies outside the "
              "window (and 2 more); 4 of 4 queries read other keys than they see");
}

TEST(Misread, AKeyThatIsLost) {
    const Answer lost = hiding_too([](const MaskPlace& p) { return p.column == 2; });
    EXPECT_EQ(read_by(lost, "b1 hq1 hkv1 tq1 tk4 d1 f32"),
              "query 0 does not read key 2, which it sees");
    const Answer all = hiding_too([](const MaskPlace& p) { return p.row == 1; });
    EXPECT_EQ(read_by(all, "b1 hq1 hkv1 tq3 tk4 d1 f32"),
              "query 1 does not read any of the 4 keys it sees");
}

TEST(Misread, ValuesOfAnotherHead) {
    const Answer first_head = answering([](const Specification& s) {
        Specification own = s;
        const Tensor& v = s.inputs[Role::v];
        own.inputs.put(Role::v, remake(v.type(), v.shape(),
                                       [&](std::int64_t b, std::int64_t, std::int64_t j,
                                           std::int64_t c) { return v.at(b, 0, j, c); }));
        return own;
    });
    EXPECT_EQ(
        read_by(first_head, "b1 hq2 hkv2 tq1 tk1 d1 f32"),
        "query 0 of head 1 reads the value of key 0 of key head 0, and not the value of key 0 "
        "of key head 1, which it sees");
}

TEST(Misread, WeightsThatAreOtherNumbersMisreadNothing) {
    const Answer twice = [](const Specification&, bound::Expected truth) {
        for (bound::ExpectedElement& e : truth.output) e.value *= 2;
        return truth;
    };
    EXPECT_EQ(read_by(twice, "b1 hq1 hkv1 tq3 tk4 d1 causal f32"), "");
}

TEST(Misread, AKeyThatOnlyBackwardReads) {
    WholeActor actor(right, [](const Specification& s) {
        Rules rules = rules_of(s);
        rules.causal = false;
        return with_rules(s, rules);
    });
    const Case c = parse_case("b1 hq1 hkv1 tq2 tk2 d1 causal f32 grad");
    EXPECT_EQ(misread(actor, c, Pass::forward), "");
    EXPECT_EQ(misread(actor, c, Pass::backward),
              "in backward query 0 reads key 1, which the causal mask hides");
    for (const char* line : lines) {
        WholeActor whole(right, [](const Specification& s) { return s; });
        EXPECT_EQ(misread(whole, parse_case(line), Pass::backward), "") << line;
    }
}

TEST(Unfollowed, ASinkThatTheLseLacks) {
    const Answer without = [](const Specification& s, bound::Expected truth) {
        const auto rows = oracle::row_details(s.problem, s.dialect, s.inputs);
        for (std::size_t n = 0; n < rows.size(); ++n)
            truth.lse[n].value =
                std::log(std::exp(truth.lse[n].value) - std::exp(s.inputs[Role::sinks].get(0)));
        return truth;
    };
    WholeActor actor(without, [](const Specification& s) { return s; });
    EXPECT_EQ(unfollowed(actor, parse_case("b1 hq1 hkv1 tq1 tk1 d1 sink f32")),
              "the log-sum-exp of query 0 does not follow the sink of head 0");
}

TEST(Unfollowed, ASinkOfAnotherHead) {
    const Answer first = answering([](const Specification& s) {
        return with_numbers_of_heads(s, Role::sinks,
                                     [&](std::int64_t) { return s.inputs[Role::sinks].get(0); });
    });
    Actor of_first(first);
    const Case sink = parse_case("b1 hq2 hkv1 tq1 tk1 d1 sink f32");
    EXPECT_EQ(unfollowed(of_first, sink),
              "query 0 of head 1 follows the sink of head 0, and not the sink of head 1");
    EXPECT_EQ(misread(of_first, sink, Pass::forward), "");
}

// The only key of a row has all weight, whatever its score; with a key of zeros beside it, it has
// not.
TEST(Unfollowed, ARowsOwnQueryIsNothingThatItHasNothingToDoWith) {
    const Answer padded = answering([](const Specification& s) { return *with_zero_tail(s, 8); });
    Actor actor(padded);
    EXPECT_EQ(unfollowed(actor, parse_case("b1 hq1 hkv1 tq1 tk1 d2 f32")), "");
}

TEST(Unfollowed, AMaskOfAnotherHead) {
    const Answer first = answering([](const Specification& s) {
        Specification own = s;
        const Tensor& m = s.inputs[Role::mask];
        own.inputs.put(Role::mask, remake(m.type(), m.shape(),
                                          [&](std::int64_t b, std::int64_t, std::int64_t i,
                                              std::int64_t j) { return m.at(b, 0, i, j); }));
        return own;
    });
    Actor actor(first);
    EXPECT_EQ(unfollowed(actor, parse_case("b1 hq2 hkv1 tq1 tk2 d1 mask additive f32")),
              "query 0 of head 1 follows the mask of head 0, and not the mask of head 1");
}

}  // namespace
}  // namespace attest::diagnosis
