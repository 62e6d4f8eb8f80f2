#include "properties/law/catalogue.hpp"

#include <gtest/gtest.h>

#include "reference/problem/errors.hpp"
#include "reference/problem/validity.hpp"

namespace attest::law {
namespace {

Property good() {
    Property law;
    law.id = "masking.causal";
    law.statement = law.statement_short = "Nothing behind the mask is read.";
    law.why = law.source = "a test";
    law.file = "properties/masking.cpp";
    law.check = [](const Given&) -> Plan { return Judge([](const Trial&) { return holds(1); }); };
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
    expect_refused([](Property& law) { law.cases.cost = 0; });
    expect_refused([](Property& law) { law.cases.len_max = 32; });
    expect_refused([](Property& law) { law.cases.limited_because = "of nothing"; });
    expect_refused([](Property& law) { law.statement_short = std::string(61, 'x'); });
    EXPECT_THROW(require_well_declared(std::vector{good(), good()}), InternalError);
}

TEST(Catalogue, WidthCountsColumnsNotBytes) {
    Property law = good();
    law.statement_short.clear();
    for (int i = 0; i < 60; ++i) law.statement_short += "\u03c3";
    EXPECT_NO_THROW(require_well_declared(std::vector{law}));
}

/// Anything an aggregate's field may be made of.
struct Anything {
    template <typename T>
    operator T() const;
};

template <typename T, typename... Fields>
consteval std::size_t field_count() {
    if constexpr (requires { T{Fields{}..., Anything{}}; })
        return field_count<T, Fields..., Anything>();
    else
        return sizeof...(Fields);
}

template <typename T>
void change(T& field) {
    if constexpr (std::is_same_v<T, bool>)
        field = !field;
    else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>)
        field = static_cast<T>(static_cast<std::int64_t>(field) + 1);
    else if constexpr (std::is_same_v<T, FeatureSet>)
        field = field.has(Feature::rope) ? field.without(Feature::rope) : field.with(Feature::rope);
    else if constexpr (std::is_same_v<T, Pooled (*)(const Samples&)>)
        field = [](const Samples&) { return Pooled{}; };
    else if constexpr (std::is_pointer_v<T>)
        field = [](const Problem& p) { return p.rope.style == RopeStyle::none; };
    else if constexpr (std::is_same_v<T, std::string>)
        field += 'x';
    else
        field.emplace_back();
}

TEST(Catalogue, EveryFieldOfALawIsInItsText) {
    Property law = good();
    const std::string text = declaration_text(law);
    std::size_t told = 0;
    each_field(law, [&](auto& field) {
        const auto was = field;
        change(field);
        EXPECT_NE(declaration_text(law), text) << "field " << told;
        field = was;
        EXPECT_EQ(declaration_text(law), text);
        ++told;
    });
    // All but the check; needs and cases stand for their fields.
    EXPECT_EQ(told, field_count<Property>() - 3 + field_count<Needs>() + field_count<CaseSpace>());
}

TEST(Catalogue, NoTwoDeclarationsHaveOneText) {
    Property one = good(), other = good();
    one.why = "a";
    one.source = "bc";
    other.why = "ab";
    other.source = "c";
    EXPECT_NE(declaration_text(one), declaration_text(other));
    one = other = good();
    one.cases.formats = {Precision::f32};
    other.cases.kinds = {static_cast<ValueKind>(Precision::f32)};
    EXPECT_NE(declaration_text(one), declaration_text(other));
}

TEST(Catalogue, PreconditionsAreAskedOfValidProblems) {
    EXPECT_GT(precondition_problems().size(), 400u);
    for (const Problem& p : precondition_problems())
        EXPECT_FALSE(find_contradiction(p)) << print(p);
}

}  // namespace
}  // namespace attest::law
