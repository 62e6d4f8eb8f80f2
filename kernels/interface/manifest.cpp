#include "kernels/interface/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/interface/manifest_section.hpp"

namespace attest::kernel {
namespace {

using manifest_words::Choice;
using manifest_words::word_of;

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
    if (features == nullptr) return;
    std::vector<std::string_view> known;
    for (int f = 0; f < feature_count; ++f) known.push_back(name(static_cast<Feature>(f)));
    for (const Json& item : features->items) {
        const std::optional<Feature> feature = parse_feature(item.text);
        if (feature)
            m.features = m.features.with(*feature);
        else if (!foreign(item.text))
            top.fail_word(item, "features", known);
    }
    if (m.features.has(Feature::paged) && !m.features.has(Feature::cache))
        top.fail(*features, "features names paged without cache",
                 "pages are a kind of cache: name both");
}

void read_gradients(Section& top, Manifest& m) {
    const Json* gradients = top.list("gradients");
    if (gradients == nullptr) return;
    for (const Json& item : gradients->items) {
        const Role role = top.chosen(item, "gradients", manifest_words::gradient_words);
        if (std::find(m.gradients.begin(), m.gradients.end(), role) != m.gradients.end())
            top.fail(item, "gradients names this twice", "remove one of the two");
        m.gradients.push_back(role);
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
    section.choose("gradient_weights", manifest_words::number_words, n.gradient_weights);
    section.choose("gradient_scores", manifest_words::number_words, n.gradient_scores);
    section.flag("deterministic_backward", n.deterministic_backward);
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
    read_gradients(top, m);
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

std::optional<std::string> refusal(const Manifest& m, const Problem& p) {
    if (p.want_grad && m.gradients.empty()) return "its manifest lists no gradients";
    for (int f = 0; f < feature_count; ++f) {
        const auto feature = static_cast<Feature>(f);
        if (features_of(p).has(feature) && !m.features.has(feature))
            return fmt::format("its manifest does not list the feature {}", name(feature));
    }
    for (const Precision format : {p.format_q, p.format_kv, p.format_o})
        if (std::find(m.formats.begin(), m.formats.end(), format) == m.formats.end())
            return fmt::format("its manifest does not list the format {}", name(format));
    const auto beyond = [](std::int64_t value, std::int64_t most) {
        return most > 0 && value > most;
    };
    if (beyond(std::max(p.dim_qk, value_dim(p)), m.limits.dim_max))
        return fmt::format("its dimensions end at {}", m.limits.dim_max);
    if (beyond(std::max(p.len_q, p.len_kv), m.limits.len_max))
        return fmt::format("its lengths end at {}", m.limits.len_max);
    return std::nullopt;
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
    out["features"] = json::array();
    for (int f = 0; f < feature_count; ++f)
        if (m.features.has(static_cast<Feature>(f)))
            out["features"].push_back(std::string(name(static_cast<Feature>(f))));
    out["gradients"] = json::array();
    for (const Role role : m.gradients)
        out["gradients"].push_back(word_of(manifest_words::gradient_words, role));
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
        {"gradient_weights", word_of(manifest_words::number_words, m.numerics.gradient_weights)},
        {"gradient_scores", word_of(manifest_words::number_words, m.numerics.gradient_scores)},
        {"deterministic_backward", m.numerics.deterministic_backward},
        {"flush_subnormals", m.numerics.flush_subnormals},
        {"matrix_unit", m.numerics.matrix_unit}};
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace attest::kernel
