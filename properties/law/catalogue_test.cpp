#include "properties/law/catalogue.hpp"

#include <gtest/gtest.h>

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

Property good() {
    Property law;
    law.id = "masking.causal";
    law.statement = law.statement_short = "Nothing behind the mask is read.";
    law.why = law.source = "a test";
    law.file = "properties/masking.cpp";
    law.check = [](const Trial&) { return holds(1); };
    law.turned_red_by = {planted::causal_mask_ignored()};
    return law;
}

template <typename Edit>
void expect_refused(Edit edit) {
    Property law = good();
    edit(law);
    EXPECT_THROW(require_well_declared(std::vector{law}), InternalError);
}

TEST(Catalogue, AWellDeclaredLawPasses) {
    EXPECT_NO_THROW(require_well_declared(std::vector{good()}));
    EXPECT_EQ(good().family(), "masking");
    EXPECT_EQ(good().law(), "causal");
}

TEST(Catalogue, AnEmptyOneIsRefused) {
    EXPECT_THROW(require_well_declared(std::vector<Property>{}), InternalError);
}

TEST(Catalogue, FaultyDeclarationsAreRefused) {
    expect_refused([](Property& law) { law.id = "causal"; });
    expect_refused([](Property& law) { law.id += "-left"; });
    expect_refused([](Property& law) { law.id = "Masking.causal"; });
    expect_refused([](Property& law) { law.check = nullptr; });
    expect_refused([](Property& law) { law.why.clear(); });
    expect_refused([](Property& law) { law.turned_red_by.clear(); });
    expect_refused([](Property& law) { law.turned_red_by.push_back({.id = "does_nothing"}); });
    expect_refused([](Property& law) { law.turned_red_by[0].id = "No word"; });
    expect_refused([](Property& law) { law.needs.batch_invariant = true; });
    expect_refused([](Property& law) { law.cases.square = law.cases.len_q_one = true; });
    expect_refused([](Property& law) { law.statement_short = std::string(61, 'x'); });
    EXPECT_THROW(require_well_declared(std::vector{good(), good()}), InternalError);
}

TEST(Catalogue, WidthCountsColumnsNotBytes) {
    Property law = good();
    law.statement_short.clear();
    for (int i = 0; i < 60; ++i) law.statement_short += "\u03c3";
    EXPECT_NO_THROW(require_well_declared(std::vector{law}));
}

}  // namespace
}  // namespace attest
