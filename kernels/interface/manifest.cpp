#include "kernels/interface/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "kernels/interface/manifest_takes.hpp"

namespace attest::kernel {
namespace {

using manifest_words::word_of;

/// "f16", or in the words of a line "f32 kv f16 out f32".
Formats formats_of(Section& top, const Json& item) {
    std::istringstream words(item.text);
    std::string word, of;
    words >> word;
    Json one = item;
    one.text = word;
    Formats formats = top.chosen(one, "formats", manifest_words::format_words);
    while (words >> of) {
        words >> word;
        if (!words || (of != "kv" && of != "out"))
            top.fail(item,
                     "formats: \"" + printable(item.text) + "\" is not in the words of a line",
                     "f16, or f32 kv f16, or f16 out f32, or f32 kv f16 out f16");
        one.text = word;
        (of == "kv" ? formats.kv : formats.o) =
            top.chosen(one, "formats", manifest_words::format_words);
    }
    return formats;
}

void read_formats(const JsonSource& source, Section& top, const Json& root, Manifest& m) {
    const Json* formats = top.list("formats");
    if (formats == nullptr || formats->items.empty()) {
        const Json& at = formats == nullptr ? root : *formats;
        source.fail(at.begin, at.begin + 1,
                    formats == nullptr ? "formats is missing" : "formats is empty",
                    "at least one of f64, f32, f16, bf16");
    }
    for (const Json& item : formats->items) {
        const Formats format = formats_of(top, item);
        if (std::find(m.formats.begin(), m.formats.end(), format) != m.formats.end())
            top.fail(item, "formats names this twice", "remove one of the two");
        m.formats.push_back(format);
    }
}

void read_listed(Section& top, Manifest& m) {
    m.features = read_features(top, "features");
    if (m.features.has(Feature::paged) && !m.features.has(Feature::cache))
        top.fail(*top.find("features"), "features names paged without cache",
                 "pages are a kind of cache: name both");
    if (m.features.has(Feature::ring) &&
        !m.features.contains(FeatureSet(Feature::cache, Feature::window)))
        top.fail(*top.find("features"), "features names ring without cache, or without window",
                 "a ring is a cache of the keys that a window reaches: name all three");
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

/// d_lse is an input of backward, of the shape of what forward returns.
void check_lse_gradient(Section& top, const Manifest& m) {
    if (!m.features.has(Feature::d_lse) || (m.features.has(Feature::lse) && !m.gradients.empty()))
        return;
    top.fail(
        *top.find("features"), "features names d_lse without lse, or without gradients",
        "backward is given the gradient of a log-sum-exp that forward returns: name all three");
}

void read_sources(Section section, const Json& listed, Manifest& m) {
    constexpr std::size_t digits = 64;  // of a SHA-256
    for (const JsonMember& one : listed.members) {
        const Json& digest = *section.find(one.key);
        const bool hexadecimal =
            digest.text.find_first_not_of("0123456789abcdef") == std::string::npos;
        if (digest.kind != Json::Kind::string || digest.text.size() != digits || !hexadecimal)
            section.fail(digest, "sources." + one.key + " is no SHA-256", "64 digits 0-9 a-f");
        m.sources[one.key] = digest.text;
    }
}

void read_dialect(Section section, Dialect& d) {
    section.choose("causal", manifest_words::causal_words, d.causal);
    section.choose("empty_row", manifest_words::empty_row_words, d.empty_row);
    section.choose("softcap", manifest_words::softcap_words, d.softcap);
    section.choose("window_ends", manifest_words::window_words, d.window_ends);
    section.choose("lse_base", manifest_words::lse_base_words, d.lse_base);
    section.choose("nonfinite", manifest_words::nonfinite_words, d.nonfinite);
    section.choose("empty_lse", manifest_words::empty_lse_words, d.empty_lse);
    section.finish();
}

/// An exp that is off by a quarter of itself: of more the bounds compare nothing.
constexpr double exp_ulp_most = 0x1p22;

void read_numerics(Section section, Numerics& n, std::int64_t& dropout_levels) {
    section.choose("accumulate", manifest_words::accumulate_words, n.accumulate);
    section.choose("weights", manifest_words::number_words, n.weights);
    section.choose("output", manifest_words::number_words, n.output);
    section.positive_real("exp_ulp", n.exp_ulp, exp_ulp_most);
    for (const manifest_words::RoundedStep& step : manifest_words::steps)
        section.choose(step.key, manifest_words::number_words, n.*step.format);
    section.choose("operands", manifest_words::operand_words, n.operands);
    section.positive_real("epsilon", n.epsilon, 1);
    section.flag("centred_keys", n.centred_keys);
    section.flag("centred_values", n.centred_values);
    section.count("tile", n.tile);
    section.count("sum_chunk", n.sum_chunk);
    section.choose("sum_weights", manifest_words::sum_words, n.sum_weights);
    section.flag("deterministic", n.deterministic);
    section.flag("batch_invariant", n.batch_invariant);
    section.flag("concurrent", n.concurrent);
    section.choose("gradient_weights", manifest_words::number_words, n.gradient_weights);
    section.choose("gradient_scores", manifest_words::number_words, n.gradient_scores);
    section.flag("gradient_structure", n.gradient_structure);
    section.flag("deterministic_backward", n.deterministic_backward);
    section.flag("flush_subnormals", n.flush_subnormals);
    section.flag("matrix_unit", n.matrix_unit);
    section.count("dropout_levels", dropout_levels);
    section.finish();
}

/// A feature that nothing is asked without and that is never asked for leaves no problem.
void require_listed(Section& top, const Manifest& m) {
    const FeatureSet had = (m.features | inherent_features(m.takes))
                               .with(Feature::mixed_formats);  // as the formats are listed
    for (int f = 0; f < feature_count; ++f) {
        const auto feature = static_cast<Feature>(f);
        if (m.takes.always.has(feature) && !had.has(feature))
            top.fail(
                *top.find("takes"),
                fmt::format("takes.always names {}, which features does not list", name(feature)),
                "what is not listed is never asked for");
    }
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
    read_listed(top, m);
    read_gradients(top, m);
    check_lse_gradient(top, m);
    if (const Json* takes = top.find("takes")) {
        read_takes(source, *takes, m.takes);
        const Formats& first = m.formats.front();
        if (m.takes.always.has(Feature::mixed_formats) && m.formats.size() == 1 &&
            first == Formats(first.q))
            top.fail(*takes, "takes.always names mixed_formats, and one format alone is listed",
                     "list every format that is mixed");
    }
    if (m.takes.always != FeatureSet{}) require_listed(top, m);
    if (const Json* d = top.find("dialect")) {
        read_dialect(Section(source, *d, "dialect"), m.dialect);
    }
    if (const Json* n = top.find("numerics")) {
        read_numerics(Section(source, *n, "numerics"), m.numerics, m.dropout_levels);
        // A mean of all keys takes what is no number into every row.
        if (m.numerics.centred_keys || m.numerics.centred_values)
            m.dialect.nonfinite = Nonfinite::unspecified;
    }
    if (const Json* s = top.find("sources")) read_sources(Section(source, *s, "sources"), *s, m);
    top.finish();
    return m;
}

FeatureSet inherent_features(const Manifest& m, const Problem& p) {
    const FeatureSet inherent = inherent_features(m.takes, p);
    const Formats formats(p.format_q, p.format_kv, p.format_o);
    const bool listed = std::find(m.formats.begin(), m.formats.end(), formats) != m.formats.end();
    return listed ? inherent.with(Feature::mixed_formats) : inherent;
}

namespace {

/// Whether the rows of a tensor lie so far apart that all of its pages could not be copied.
bool lies_apart(const Problem& p) {
    constexpr std::int64_t copied_max = 1 << 20;
    return std::max({p.layout_q.row_pad, p.layout_k.row_pad, p.layout_v.row_pad,
                     p.layout_o.row_pad}) > copied_max;
}

}  // namespace

std::optional<std::string> refusal(const Manifest& m, const Problem& p) {
    if (m.memory == Memory::cuda && lies_apart(p))
        return "its tensors are copied to a device whole, which rows so far apart do not allow";
    if (p.want_grad && m.gradients.empty()) return "its manifest lists no gradients";
    if (p.want_grad && gradients_unjudged(m.numerics)) return coarse_gradients;
    const FeatureSet used = features_of(p), inherent = inherent_features(m, p);
    for (int f = 0; f < feature_count; ++f) {
        const auto feature = static_cast<Feature>(f);
        if (used.has(feature) && !(m.features | inherent).has(feature))
            return fmt::format("its manifest does not list the feature {}", name(feature));
    }
    for (const Precision format : {p.format_q, p.format_kv, p.format_o}) {
        const auto has = [format](const Formats& f) { return f.q == format; };
        if (!inherent.has(Feature::mixed_formats) &&
            std::none_of(m.formats.begin(), m.formats.end(), has))
            return fmt::format("its manifest does not list the format {}", name(format));
    }
    return refusal(m.takes, p);
}

std::string words(const Formats& formats) {
    std::string text(name(formats.q));
    if (formats.kv != formats.q) text.append(" kv ").append(name(formats.kv));
    if (formats.o != formats.q) text.append(" out ").append(name(formats.o));
    return text;
}

std::string to_json(const Manifest& m) {
    using nlohmann::json;  // its objects keep their keys sorted
    json formats = json::array();
    for (const Formats& one : m.formats) formats.push_back(words(one));
    json out = {{"name", m.name},
                {"version", m.version},
                {"formats", formats},
                {"memory", word_of(manifest_words::memory_words, m.memory)},
                {"simulated", m.simulated},
                {"features", feature_names(m.features)},
                {"takes", takes_json(m.takes)}};
    out["gradients"] = json::array();
    for (const Role role : m.gradients)
        out["gradients"].push_back(word_of(manifest_words::gradient_words, role));
    out["dialect"] = {{"causal", word_of(manifest_words::causal_words, m.dialect.causal)},
                      {"empty_row", word_of(manifest_words::empty_row_words, m.dialect.empty_row)},
                      {"softcap", word_of(manifest_words::softcap_words, m.dialect.softcap)},
                      {"window_ends", word_of(manifest_words::window_words, m.dialect.window_ends)},
                      {"lse_base", word_of(manifest_words::lse_base_words, m.dialect.lse_base)},
                      {"nonfinite", word_of(manifest_words::nonfinite_words, m.dialect.nonfinite)},
                      {"empty_lse", word_of(manifest_words::empty_lse_words, m.dialect.empty_lse)}};
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
        {"concurrent", m.numerics.concurrent},
        {"centred_keys", m.numerics.centred_keys},
        {"centred_values", m.numerics.centred_values},
        {"dropout_levels", m.dropout_levels},
        {"gradient_weights", word_of(manifest_words::number_words, m.numerics.gradient_weights)},
        {"gradient_scores", word_of(manifest_words::number_words, m.numerics.gradient_scores)},
        {"gradient_structure", m.numerics.gradient_structure},
        {"deterministic_backward", m.numerics.deterministic_backward},
        {"flush_subnormals", m.numerics.flush_subnormals},
        {"matrix_unit", m.numerics.matrix_unit}};
    // What is rounded nowhere, and the epsilon of no sum, have no word.
    for (const manifest_words::RoundedStep& step : manifest_words::steps)
        if (m.numerics.*step.format != NumberFormat::unrounded)
            out["numerics"][std::string(step.key)] =
                word_of(manifest_words::number_words, m.numerics.*step.format);
    if (m.numerics.operands != Operands::unrounded)
        out["numerics"]["operands"] = word_of(manifest_words::operand_words, m.numerics.operands);
    if (m.numerics.epsilon > 0) out["numerics"]["epsilon"] = m.numerics.epsilon;
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace attest::kernel
