#include "kernels/interface/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/interface/manifest_words.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/text.hpp"

namespace attest::kernel {
namespace {

using manifest_words::Choice;
using manifest_words::word_of;

/// One JSON object read strictly: every key that is not asked for is an error.
class Section {
public:
    Section(const JsonSource& source, const Json& object, std::string name)
        : source_(source), object_(object), name_(std::move(name)) {
        if (object.kind != Json::Kind::object) {
            fail(object, name_.empty() ? "a manifest is an object" : name_ + " is not an object",
                 "an object {...}");
        }
    }

    const Json* find(std::string_view key) {
        known_.push_back(key);
        return object_.find(key);
    }

    template <typename Value, std::size_t n>
    void choose(std::string_view key, const manifest_words::Choice<Value> (&choices)[n],
                Value& out) {
        if (const Json* v = find(key)) out = chosen(*v, key, choices);
    }

    template <typename Value, std::size_t n>
    Value chosen(const Json& v, std::string_view key,
                 const manifest_words::Choice<Value> (&choices)[n]) {
        std::vector<std::string_view> allowed;
        for (const auto& choice : choices) {
            // A word may be written as a number where it is one: "lse_base": 2.
            const bool word = v.kind == Json::Kind::string || v.kind == Json::Kind::number;
            if (word && v.text == choice.word) return choice.value;
            allowed.push_back(choice.word);
        }
        fail_value(v, key, "one of " + joined(allowed, ", "));
    }

    void count(std::string_view key, std::int64_t& out) {
        const Json* v = find(key);
        if (v == nullptr) return;
        const auto number = parse_integer<std::int64_t>(v->text);
        if (v->kind != Json::Kind::number || !number || *number < 0) {
            fail_value(*v, key, "a whole number, 0 where nothing is declared");
        }
        out = *number;
    }

    void flag(std::string_view key, bool& out) {
        const Json* v = find(key);
        if (v == nullptr) return;
        if (v->kind != Json::Kind::boolean) fail_value(*v, key, "true or false");
        out = v->boolean;
    }

    void positive_real(std::string_view key, double& out) {
        const Json* v = find(key);
        if (v == nullptr) return;
        const std::optional<double> number = parse_decimal(v->text);
        if (v->kind != Json::Kind::number || !number || !(*number > 0) || !std::isfinite(*number)) {
            fail_value(*v, key, "a number above 0, such as 2 or 0.98");
        }
        out = *number;
    }

    std::string required_text(std::string_view key) {
        const Json* v = find(key);
        if (v == nullptr) {
            source_.fail(object_.begin, object_.begin + 1, fmt::format("{} is missing", path(key)),
                         "name, version and formats are required");
        }
        if (v->kind != Json::Kind::string || v->text.empty()) {
            fail_value(*v, key, "a text, not empty");
        }
        return v->text;
    }

    /// A list of texts; null where the key is absent.
    const Json* list(std::string_view key) {
        const Json* v = find(key);
        if (v == nullptr) return nullptr;
        if (v->kind != Json::Kind::array) fail_value(*v, key, "a list of texts");
        for (const Json& item : v->items) {
            if (item.kind != Json::Kind::string) fail_value(item, key, "a list of texts");
        }
        return v;
    }

    /// After everything was asked for: what is left is a mistake.
    void finish() const {
        for (const JsonMember& m : object_.members) {
            if (std::find(known_.begin(), known_.end(), m.key) != known_.end()) continue;
            source_.fail(m.begin, m.end,
                         fmt::format("no key {} is known{}", path(printable(m.key)),
                                     attest::suggestion(m.key, known_)),
                         "one of " + joined(known_, ", "));
        }
    }

    [[noreturn]] void fail(const Json& at, const std::string& what,
                           const std::string& remedy) const {
        source_.fail(at, what, remedy);
    }

private:
    std::string path(std::string_view key) const {
        return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
    }
    [[noreturn]] void fail_value(const Json& v, std::string_view key,
                                 const std::string& remedy) const {
        const std::string_view written = source_.text.substr(v.begin, v.end - v.begin);
        const std::string shown = v.kind == Json::Kind::object  ? "an object"
                                  : v.kind == Json::Kind::array ? "a list"
                                                                : printable(written);
        fail(v, fmt::format("{} is {}", path(key), shown), remedy);
    }

    const JsonSource& source_;
    const Json& object_;
    std::string name_;
    std::vector<std::string_view> known_;
};

void read_formats(const JsonSource& source, Section& top, const Json& root, Manifest& m) {
    const Json* formats = top.list("formats");
    if (formats == nullptr || formats->items.empty()) {
        const Json& at = formats == nullptr ? root : *formats;
        source.fail(at.begin, at.begin + 1,
                    formats == nullptr ? "formats is missing" : "formats is empty",
                    "at least one of f64, f32, f16, bf16");
    }
    for (const Json& item : formats->items) {
        const Precision format = top.chosen(item, "formats", manifest_words::format_words);
        for (Precision other : m.formats) {
            if (other == format)
                top.fail(item, "formats names this twice", "remove one of the two");
        }
        m.formats.push_back(format);
    }
}

void read_features(Section& top, Manifest& m) {
    const Json* features = top.list("features");
    m.features_declared = features != nullptr;
    if (features == nullptr) return;
    for (const Json& item : features->items) {
        // The vocabulary only ever grows: a name of a later version is kept, and never drawn.
        if (const std::optional<Feature> feature = parse_feature(item.text)) {
            m.features = m.features.with(*feature);
        } else {
            m.features_unknown.push_back(item.text);
        }
    }
}

void read_dialect(Section section, Dialect& d) {
    section.choose("causal", manifest_words::causal_words, d.causal);
    section.choose("empty_row", manifest_words::empty_row_words, d.empty_row);
    section.choose("softcap", manifest_words::softcap_words, d.softcap);
    section.choose("window_ends", manifest_words::window_words, d.window_ends);
    section.choose("lse_base", manifest_words::lse_base_words, d.lse_base);
    section.choose("nonfinite", manifest_words::nonfinite_words, d.nonfinite);
    section.finish();
}

void read_numerics(Section section, Numerics& n) {
    section.choose("accumulate", manifest_words::accumulate_words, n.accumulate);
    section.choose("weights", manifest_words::number_words, n.weights);
    section.choose("output", manifest_words::number_words, n.output);
    section.positive_real("exp_ulp", n.exp_ulp);
    section.count("tile", n.tile);
    section.count("sum_chunk", n.sum_chunk);
    section.choose("sum_weights", manifest_words::sum_words, n.sum_weights);
    section.flag("deterministic", n.deterministic);
    section.flag("batch_invariant", n.batch_invariant);
    section.flag("flush_subnormals", n.flush_subnormals);
    section.flag("matrix_unit", n.matrix_unit);
    section.finish();
}

}  // namespace

Manifest parse_manifest(std::string_view json, std::string_view source_name) {
    const std::string name = fmt::format("{}: manifest", source_name);
    const JsonSource source{json, name};
    const Json root = parse_json(source);
    Section top(source, root, "");
    Manifest m;
    m.name = top.required_text("name");
    m.version = top.required_text("version");
    read_formats(source, top, root, m);
    top.choose("memory", manifest_words::memory_words, m.memory);
    top.flag("simulated", m.simulated);
    read_features(top, m);
    if (const Json* limits = top.find("limits")) {
        Section section(source, *limits, "limits");
        section.count("dim_max", m.limits.dim_max);
        section.count("len_max", m.limits.len_max);
        section.finish();
    }
    if (const Json* d = top.find("dialect")) {
        read_dialect(Section(source, *d, "dialect"), m.dialect);
    }
    if (const Json* n = top.find("numerics")) {
        read_numerics(Section(source, *n, "numerics"), m.numerics);
    }
    top.finish();
    return m;
}

/// The features that there were when the ABI was first written down. A kernel that declares none
/// may be as old, and could not see a later one's field: those are offered where they are named.
constexpr FeatureSet first_features() {
    FeatureSet set;
    for (int f = 0; f <= static_cast<int>(Feature::mixed_formats); ++f)
        set = set.with(static_cast<Feature>(f));
    return set;
}

FeatureSet offered_features(const Manifest& manifest) noexcept {
    if (!manifest.features_declared) return first_features();
    const FeatureSet offered = manifest.features | FeatureSet(Feature::lse, Feature::scale,
                                                              Feature::layout, Feature::dim_v);
    const bool end_aligned = manifest.dialect.causal == CausalAlignment::bottom_right;
    return end_aligned ? offered.with(Feature::cache) : offered;
}

std::string to_json(const Manifest& m) {
    using nlohmann::json;  // its objects keep their keys sorted
    json formats = json::array();
    for (Precision p : m.formats) formats.push_back(word_of(manifest_words::format_words, p));
    json out = {{"name", m.name},
                {"version", m.version},
                {"formats", formats},
                {"memory", word_of(manifest_words::memory_words, m.memory)},
                {"simulated", m.simulated},
                {"limits", {{"dim_max", m.limits.dim_max}, {"len_max", m.limits.len_max}}}};
    if (m.features_declared) {
        json features = json::array();
        for (int f = 0; f < feature_count; ++f) {
            if (m.features.has(static_cast<Feature>(f))) {
                features.push_back(std::string(name(static_cast<Feature>(f))));
            }
        }
        for (const std::string& unknown : m.features_unknown) features.push_back(unknown);
        out["features"] = features;
    }
    out["dialect"] = {{"causal", word_of(manifest_words::causal_words, m.dialect.causal)},
                      {"empty_row", word_of(manifest_words::empty_row_words, m.dialect.empty_row)},
                      {"softcap", word_of(manifest_words::softcap_words, m.dialect.softcap)},
                      {"window_ends", word_of(manifest_words::window_words, m.dialect.window_ends)},
                      {"lse_base", word_of(manifest_words::lse_base_words, m.dialect.lse_base)},
                      {"nonfinite", word_of(manifest_words::nonfinite_words, m.dialect.nonfinite)}};
    out["numerics"] = {
        {"accumulate", word_of(manifest_words::accumulate_words, m.numerics.accumulate)},
        {"weights", word_of(manifest_words::number_words, m.numerics.weights)},
        {"output", word_of(manifest_words::number_words, m.numerics.output)},
        {"exp_ulp", m.numerics.exp_ulp},
        {"tile", m.numerics.tile},
        {"sum_chunk", m.numerics.sum_chunk},
        {"sum_weights", word_of(manifest_words::sum_words, m.numerics.sum_weights)},
        {"deterministic", m.numerics.deterministic},
        {"batch_invariant", m.numerics.batch_invariant},
        {"flush_subnormals", m.numerics.flush_subnormals},
        {"matrix_unit", m.numerics.matrix_unit}};
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace attest::kernel
