// The table is whole: a problem that differs from the default in everything goes through each form
// unchanged, and the manual says what the rows say.

#include "reference/problem/fields.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <tuple>

#include "reference/problem/generators_test.hpp"

namespace attest {
namespace {

/// The members of each struct, to the last: one more member does not compile until it stands here.
auto members(const Layout& x) {
    const auto& [order, row_pad, offset] = x;
    return std::tuple(order, row_pad, offset);
}
auto members(const Window& x) {
    const auto& [left, right] = x;
    return std::tuple(left, right);
}
auto members(const MaskTensor& x) {
    const auto& [kind, batch, heads, queries, keys, pattern, tile, floor] = x;
    return std::tuple(kind, batch, heads, queries, keys, pattern, tile, floor);
}
auto members(const Mask& x) {
    const auto& [causal, window, tensor, lens_q, lens_kv, documents_q, documents_kv] = x;
    return std::tuple_cat(std::tuple(causal, lens_q, lens_kv, documents_q, documents_kv),
                          members(window), members(tensor));
}
auto members(const Rope& x) {
    const auto& [style, base, dims, offset] = x;
    return std::tuple(style, base, dims, offset);
}
auto members(const Dropout& x) {
    const auto& [p, seed] = x;
    return std::tuple(p, seed);
}
auto members(const Cache& x) {
    const auto& [present, len, page_size, ring, keys_rotated] = x;
    return std::tuple(present, len, page_size, ring, keys_rotated);
}
auto members(const Problem& x) {
    const auto& [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v, scale, mask, softcap, sink,
                 alibi, alibi_slopes, rope, dropout, cache, splits, format_q, format_kv, format_o,
                 layout_q, layout_k, layout_v, layout_o, want_lse, want_grad, lse_grad] = x;
    return std::tuple_cat(std::tuple(batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v, scale,
                                     softcap, sink, alibi, alibi_slopes, splits, format_q,
                                     format_kv, format_o, want_lse, want_grad, lse_grad),
                          members(mask), members(rope), members(dropout), members(cache),
                          members(layout_q), members(layout_k), members(layout_v),
                          members(layout_o));
}

/// Every value another one than the default, and than its neighbours of the same type.
FieldValue other_value(const FieldValue& plain, std::size_t row) {
    struct Other {
        std::size_t row;
        FieldValue operator()(bool value) const { return !value; }
        FieldValue operator()(std::int64_t value) const {
            return value + 2 + static_cast<std::int64_t>(row);
        }
        FieldValue operator()(std::uint64_t value) const { return value + 2 + row; }
        FieldValue operator()(double value) const { return value + 2 + static_cast<double>(row); }
        FieldValue operator()(const std::optional<double>&) const {
            return std::optional<double>(2 + static_cast<double>(row));
        }
        FieldValue operator()(const std::vector<std::int64_t>&) const {
            return std::vector<std::int64_t>{2, 3 + static_cast<std::int64_t>(row)};
        }
        FieldValue operator()(Enumerator value) const {
            return Enumerator{static_cast<std::uint8_t>(value.index == 0 ? 2 : 0)};
        }
    };
    return std::visit(Other{row}, plain);
}

Problem everything_set() {
    Problem p;
    for (std::size_t row = 0; row < fields().size(); ++row)
        fields()[row].place.set(p, other_value(fields()[row].place.get(p), row));
    return p;
}

TEST(FieldTable, has_a_row_for_every_member) {
    const auto all_differ = [](const auto&... pairs) { return (pairs && ...); };
    const auto set = members(everything_set()), plain = members(Problem{});
    EXPECT_EQ(std::tuple_size_v<decltype(set)>, fields().size());
    EXPECT_TRUE([&]<std::size_t... i>(std::index_sequence<i...>) {
        return all_differ((std::get<i>(set) != std::get<i>(plain))...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(set)>>{}));
}

TEST(FieldTable, names_every_field_once) {
    std::set<std::string_view> heads, words;
    for (const auto group : field_groups()) {
        EXPECT_TRUE(heads.insert(group.front().head()).second) << group.front().key;
        const auto& first = group.front();
        if (first.form == LineForm::name) continue;
        EXPECT_TRUE(words.insert(first.word).second && !first.word.empty()) << first.key;
    }
    for (const Field& field : fields()) EXPECT_FALSE(field.means.empty()) << field.key;
}

/// One group of fields at a time, so that no two contradict each other.
TEST(FieldTable, prints_and_reads_every_field) {
    for (const auto group : field_groups()) {
        Problem p = {.batch = 2, .heads_q = 4, .heads_kv = 4, .len_q = 6, .len_kv = 6, .dim_qk = 8};
        for (const Field& field : group)
            field.place.set(p, other_value(field.place.get(Problem{}), 0));
        const std::string_view head = group.front().head();
        if (head == "len_q" || head == "len_kv") p.mask.lens_q.clear();
        if (head == "heads_q") p.heads_kv = 1;
        if (head == "heads_kv") p.heads_q = 2 * p.heads_kv;
        if (head == "lens_q" || head == "lens_kv") p.len_q = p.len_kv = 9;
        if (head.starts_with("documents")) {
            p.batch = 1, p.len_q = p.len_kv = 5;
            p.mask.documents_q = p.mask.documents_kv = {2, 3};
        }
        if (head == "mask") p.mask.tensor.floor = -2;
        if (head == "alibi_slopes") p.alibi = true;
        if (head == "dropout") p.dropout.p = 0.25;
        if (head == "lse_grad") p.want_grad = true;
        if (head == "rope") p.rope.dims = 4;
        if (head == "cache") {
            p.cache.ring = false, p.len_kv = p.len_q + p.cache.len;
            p.rope.style = RopeStyle::half;
        }
        ASSERT_FALSE(find_contradiction(p)) << head << ": " << find_contradiction(p)->what;
        ASSERT_EQ(canonical(p), p) << head;
        EXPECT_EQ(parse_problem(print(p)), p) << print(p);
        EXPECT_EQ(case_from_json(to_json({p, {}}), "a").problem, p) << to_json({p, {}});
    }
}

TEST(FieldTable, features_name_what_differs) {
    FeatureSet named;
    for (const Field& field : fields())
        for (const FeatureUse& use : {field.use, field.other_use})
            if (use.feature) named = named.with(*use.feature);
    EXPECT_EQ(named, FeatureSet::all());
}

/// The manual's rows, made from the table.
std::string manual() {
    std::string text;
    const auto quoted = [](std::string_view word) {
        std::string code;
        if (!word.empty()) code.append("`").append(word).append("`");
        return code;
    };
    for (const Field& field : fields()) {
        std::string features, words;
        for (const FeatureUse& use : {field.use, field.other_use})
            if (use.feature)
                features += (features.empty() ? "" : ", ") + std::string(name(*use.feature));
        for (const std::string_view word : field.place.names())
            words += (words.empty() ? ": " : ", ") + std::string(word);
        text += "| " + quoted(field.word) + " | `" + std::string(field.key) + "` | " +
                quoted(field.abi.name) + " | " + features + " | " + std::string(field.means) +
                words + " |\n";
    }
    return text;
}

TEST(FieldTable, is_the_manual) {
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "README.md");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(text.find(manual()), text.npos)
        << "README.md beside this file must have these rows:\n"
        << manual();
}

}  // namespace
}  // namespace attest
