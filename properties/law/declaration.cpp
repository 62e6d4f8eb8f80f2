// A law's declaration as text, for the digest of the catalogue.

#include <string_view>
#include <type_traits>

#include "properties/law/catalogue.hpp"
#include "reference/problem/case.hpp"

namespace attest::law {

namespace {

/// Shapes up to what a precondition asks for at least.
std::vector<Problem> plain_problems() {
    std::vector<Problem> all;
    for (const std::int64_t batch : {1, 2})
        for (const auto& [heads_q, heads_kv] : {std::pair{1, 1}, {2, 1}, {2, 2}})
            for (const std::int64_t len_q : {0, 1, 2, 3})
                for (const std::int64_t len_kv : {0, 1, 2, 3, 5})
                    for (const auto& [dim_qk, dim_v] : {std::pair{1, 0}, {1, 2}, {4, 0}, {4, 1}})
                        all.push_back({.batch = batch,
                                       .heads_q = heads_q,
                                       .heads_kv = heads_kv,
                                       .len_q = len_q,
                                       .len_kv = len_kv,
                                       .dim_qk = dim_qk,
                                       .dim_v = dim_v});
    return all;
}

constexpr const char* with_features[] = {
    "tq3 tk3 causal",
    "tq3 tk5 causal",
    "tq5 tk3 causal",
    "tq3 tk5 window 0 -1",
    "tq3 tk5 window 4 -1",
    "tq3 tk5 window -1 0",
    "tq3 tk5 window -1 2",
    "tq3 tk5 causal window 1 -1",
    "b2 hq2 hkv2 tq3 tk5 mask bool",
    "b2 hq2 hkv2 tq3 tk5 mask bool shared batch",
    "b2 hq2 hkv2 tq3 tk5 mask bool shared heads",
    "b2 hq2 hkv2 tq3 tk5 mask bool shared queries",
    "b2 hq2 hkv2 tq3 tk5 mask additive",
    "b2 tq3 tk5 lens_q 2,3",
    "b2 tq3 tk5 lens_q 0,3",
    "b2 tq3 tk5 lens_kv 4,5",
    "b2 tq3 tk5 lens_kv 1,5",
    "b2 tq3 tk5 lens_kv 0,5",
    "tq5 tk5 docs_q 2,3 docs_kv 2,3",
    "tq5 tk5 docs_q 2,3 docs_kv 0,5",
    "tq5 tk5 causal docs_q 3,2 docs_kv 2,3",
    "tq1 tk5 cache 4",
    "tq2 tk5 cache 3",
    "tq5 tk5 cache 0",
    "b2 tq2 tk5 cache 3 lens_kv 3,5",
    "tq2 tk5 cache 3 page 2",
    "tq3 tk5 softcap 2",
    "tq3 tk5 sink",
    "tq3 tk3 alibi",
    "tq3 tk3 d4 rope half",
    "tq3 tk3 d4 rope interleaved",
    "tq3 tk5 dropout 0.5",
    "tq3 tk5 scale 0.5",
    "tq3 tk5 splits 2",
    "tq3 tk5 bf16",
    "tq3 tk5 f16 out f32",
    "tq3 tk5 no_lse",
};

/// Appends a value so that no two lists of values have one text.
class Writer {
public:
    template <typename T>
    void operator()(const T& value) {
        if constexpr (std::is_enum_v<T> || std::is_integral_v<T>)
            text_ += std::to_string(static_cast<std::int64_t>(value)) + ' ';
        else
            write(value);
    }
    std::string take() { return std::move(text_); }

private:
    void write(const std::string& words) {
        text_ += std::to_string(words.size()) + ':' + words + '\n';
    }
    void write(FeatureSet set) { (*this)(set.bits()); }
    template <typename T>
    void write(const std::vector<T>& values) {
        (*this)(values.size());
        for (const T& value : values) (*this)(value);
    }
    void write(const PlantedDeviation& deviation) { write(deviation.id); }
    void write(Pooled (*pool)(const Samples&)) {
        write(std::string(pool == nullptr ? "" : "pooled"));
    }
    void write(bool (*admits)(const Problem&)) {
        if (admits == nullptr) return write(std::string("any"));
        std::string answers;
        for (const Problem& p : precondition_problems()) answers += admits(p) ? '1' : '0';
        write(answers);
    }

    std::string text_;
};

}  // namespace

std::span<const Problem> precondition_problems() {
    static const std::vector<Problem> problems = [] {
        std::vector<Problem> all = plain_problems();
        for (const char* line : with_features) all.push_back(parse_case(line).problem);
        return all;
    }();
    return problems;
}

std::string declaration_text(const Property& law) {
    Writer writer;
    each_field(law, [&](const auto& field) { writer(field); });
    return writer.take();
}

}  // namespace attest::law
