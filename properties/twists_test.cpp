// Each law turns red for what it exists for: a truthful kernel that twists its question one way.
// The museum (kernels/mutants) does the same with real kernels; here are the twists it has none
// for.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "properties/law/compare.hpp"
#include "properties/truthful_test.hpp"

namespace attest {
namespace {

using testing::Question;
using testing::TruthfulKernel;
using testing::try_law;
using testing::Twist;

struct Planted {
    std::string law;
    std::string name;
    Twist twist;
};

void PrintTo(const Planted& planted, std::ostream* out) {
    *out << planted.name;
}

void edit(Tensor& tensor, double (*change)(double, std::int64_t)) {
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, change(tensor.get(i), i));
}

/// Every key and value of a sequence read from the next sequence of the batch.
void next_sequence(Question& q) {
    std::vector<std::int64_t> next;
    for (std::int64_t b = 0; b < q.problem.batch; ++b) next.push_back((b + 1) % q.problem.batch);
    q.inputs[Role::v] = gather(q.inputs[Role::v], 0, next);
}

std::vector<Planted> planted() {
    return {
        {"masking.document", "documents_ignored",
         [](Question& q) {
             q.problem.mask.documents_q.clear();
             q.problem.mask.documents_kv.clear();
         }},
        {"masking.alignment", "other_alignment",
         [](Question& q) { q.dialect.causal = CausalAlignment::top_left; }},
        {"masking.window", "window_one_wider",
         [](Question& q) {
             if (q.problem.mask.window.left >= 0) ++q.problem.mask.window.left;
         }},
        {"masking.empty_row", "empty_rows_are_nan",
         [](Question& q) { q.dialect.empty_row = EmptyRow::nan; }},
        {"masking.broadcast", "shared_masks_read_as_all_visible",
         [](Question& q) {
             const MaskTensor& m = q.problem.mask.tensor;
             if (m.shared_batch || m.shared_heads || m.shared_queries) q.problem.mask.tensor = {};
         }},
        {"masking.padding", "query_lengths_ignored",
         [](Question& q) {
             if (!q.problem.cache.present) q.problem.mask.lens_q.clear();
         }},
        {"masking.influence", "last_key_forgotten",
         [](Question& q) {
             Tensor& v = q.inputs[Role::v];
             const Shape s = v.shape();
             for (std::int64_t b = 0; b < s[0]; ++b)
                 for (std::int64_t h = 0; h < s[1]; ++h)
                     for (std::int64_t c = 0; c < s[3]; ++c) v.put(b, h, s[2] - 1, c, 0);
         }},
        {"heads.grouped", "heads_by_modulo",
         [](Question& q) {
             std::vector<std::int64_t> heads;
             for (std::int64_t h = 0; h < q.problem.heads_q; ++h)
                 heads.push_back(h % q.problem.heads_kv);
             q.problem.heads_kv = q.problem.heads_q;
             for (const Role role : {Role::k, Role::v})
                 q.inputs[role] = gather(q.inputs[role], 1, heads);
         }},
        {"heads.isolation", "values_of_the_next_sequence", next_sequence},
        {"equivariance.batch", "first_sequence_scaled",
         [](Question& q) {
             if (q.problem.batch > 1)
                 for (std::int64_t i = 0; i < q.inputs[Role::v].size() / q.problem.batch; ++i)
                     q.inputs[Role::v].set(i, 2 * q.inputs[Role::v].get(i));
         }},
        {"heads.cross", "scale_by_the_value_dimension",
         [](Question& q) {
             q.problem.scale = 1 / std::sqrt(static_cast<double>(value_dim(q.problem)));
         }},
        {"equivariance.broken", "causal_mask_ignored",
         [](Question& q) { q.problem.mask.causal = false; }},
        {"equivariance.features", "first_channel_doubled",
         [](Question& q) {
             edit(q.inputs[Role::q], [](double x, std::int64_t i) { return i % 4 ? x : 2 * x; });
         }},
        {"position.rope_style", "other_pairing",
         [](Question& q) {
             if (q.problem.rope.style == RopeStyle::half)
                 q.problem.rope.style = RopeStyle::interleaved;
             else if (q.problem.rope.style == RopeStyle::interleaved)
                 q.problem.rope.style = RopeStyle::half;
         }},
        {"position.rope_norm", "rotation_shrinks_the_query",
         [](Question& q) {
             if (q.problem.rope.style != RopeStyle::none)
                 edit(q.inputs[Role::q], [](double x, std::int64_t) { return x / 2; });
         }},
        {"position.rope_relative", "base_depends_on_the_offset",
         [](Question& q) { q.problem.rope.base += static_cast<double>(q.problem.rope.offset); }},
        {"position.alibi", "slopes_with_the_wrong_sign",
         [](Question& q) {
             if (q.problem.alibi)
                 edit(q.inputs[Role::alibi_slopes], [](double x, std::int64_t) { return -x; });
         }},
        {"decode.offset", "steps_hardly_rotated",
         [](Question& q) {
             if (q.problem.cache.present) q.problem.rope.base *= 1e6;
         }},
        {"hygiene.arguments_matter", "soft_cap_ignored",
         [](Question& q) { q.problem.softcap = 0; }},
        {"hygiene.layout", "padded_rows_read_wrong",
         [](Question& q) {
             if (q.problem.layout_k.row_pad > 0)
                 edit(q.inputs[Role::k], [](double x, std::int64_t) { return -x; });
         }},
        {"hygiene.nonfinite", "nan_read_as_zero",
         [](Question& q) {
             for (const Role role : {Role::q, Role::k, Role::v})
                 edit(q.inputs[role], [](double x, std::int64_t) { return std::isnan(x) ? 0 : x; });
         }},
        {"hygiene.degenerate", "one_key_counts_twice",
         [](Question& q) {
             if (q.problem.len_kv == 1)
                 edit(q.inputs[Role::v], [](double x, std::int64_t) { return 2 * x; });
         }},
    };
}

class Twisted : public ::testing::TestWithParam<Planted> {};

TEST_P(Twisted, TheLawTurnsRed) {
    const Property* law = find_property(GetParam().law);
    ASSERT_NE(law, nullptr);
    TruthfulKernel kernel({}, GetParam().twist);
    const auto tried = try_law(kernel, *law, 60);
    EXPECT_GT(tried.violated, 0) << "of " << tried.judged << " judged";
    TruthfulKernel straight({});
    EXPECT_EQ(try_law(straight, *law, 60).violated, 0);
}

INSTANTIATE_TEST_SUITE_P(Laws, Twisted, ::testing::ValuesIn(planted()),
                         [](const auto& one) { return one.param.name; });

/// Remembers its first answer of a shape.
class MemoisingKernel final : public Subject {
public:
    const Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& problem, std::string* reason) override {
        return kernel_.supports(problem, reason);
    }
    CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        for (const auto& [known, answer] : answers_)
            if (known == problem) return answer;
        answers_.emplace_back(problem, kernel_.forward(problem, inputs));
        return answers_.back().second;
    }
    void restart() override { answers_.clear(); }
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    TruthfulKernel kernel_{Dialect{}};
    std::vector<std::pair<Problem, CallResult>> answers_;
};

TEST(StaleState, ARememberedAnswerIsNamed) {
    MemoisingKernel kernel;
    const auto tried = try_law(kernel, *find_property("hygiene.stale_state"), 20);
    EXPECT_GT(tried.violated, 0);
    EXPECT_NE(tried.example.find("returns an earlier call's output"), std::string::npos)
        << tried.example;
}

}  // namespace
}  // namespace attest
