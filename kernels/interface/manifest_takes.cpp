#include "kernels/interface/manifest_takes.hpp"

#include <algorithm>

namespace attest::kernel {
namespace {

using manifest_words::word_of;

std::int64_t whole(const JsonSource& source, const Json& value) {
    const auto number = parse_integer<std::int64_t>(value.text);
    if (value.kind != Json::Kind::number || !number)
        source.fail(value, "this is no whole number",
                    "64, [64, 128] or {\"least\": 16, \"most\": 256, \"multiple\": 16}");
    return *number;
}

void require_within(const JsonSource& source, const Json& value, std::int64_t number,
                    const QuantityRow& of) {
    if (number < of.least || number > of.most)
        source.fail(value, fmt::format("no problem has {} of these", number),
                    fmt::format("from {} to {}", of.least, of.most));
}

std::vector<std::int64_t> wholes(const JsonSource& source, const Json& list) {
    if (list.items.empty()) source.fail(list, "this list is empty", "leave the key out: any");
    std::vector<std::int64_t> numbers;
    for (const Json& item : list.items) numbers.push_back(whole(source, item));
    return numbers;
}

NumberSet numbers_of(const JsonSource& source, const Json& value, const std::string& name,
                     const QuantityRow& of) {
    NumberSet numbers;
    if (value.kind == Json::Kind::array)
        numbers.only = wholes(source, value);
    else if (value.kind != Json::Kind::object)
        numbers.only = {whole(source, value)};
    for (const std::int64_t number : numbers.only) require_within(source, value, number, of);
    if (!numbers.only.empty()) return numbers;
    Section section(source, value, name);
    if (const Json* v = section.find("least")) numbers.least = whole(source, *v);
    if (const Json* v = section.find("most")) numbers.most = whole(source, *v);
    if (const Json* v = section.find("multiple")) {
        numbers.multiple = whole(source, *v);
        if (numbers.multiple < 1) source.fail(*v, "a multiple of this is no length", "from 1 up");
    }
    section.finish();
    if (numbers.least) require_within(source, value, *numbers.least, of);
    if (numbers.most && *numbers.most < of.least) require_within(source, value, *numbers.most, of);
    if (numbers.most && !numbers.has(numbers.nearest(*numbers.most)))
        source.fail(value,
                    numbers.least && *numbers.least > *numbers.most ? "least is above most"
                                                                    : "no number is all of this",
                    "least, most and a multiple between them");
    return numbers;
}

DimPair dims_of(const JsonSource& source, const Json& value) {
    if (value.kind != Json::Kind::array || value.items.size() != 2)
        source.fail(value, "this is no pair of dimensions", "[[128, 128], [192, 128]]: q and v");
    const auto pair = wholes(source, value);
    const QuantityRow& dim = quantities()[static_cast<std::size_t>(Quantity::dim_qk)];
    for (const std::int64_t one : pair) require_within(source, value, one, dim);
    return {pair[0], pair[1]};
}

template <typename Value, std::size_t n>
std::vector<Value> listed(Section& section, std::string_view key,
                          const manifest_words::Choice<Value> (&choices)[n]) {
    std::vector<Value> values;
    if (const Json* list = section.list(key))
        for (const Json& item : list->items) values.push_back(section.chosen(item, key, choices));
    return values;
}

nlohmann::json json_of(const NumberSet& numbers) {
    if (numbers.only.size() == 1) return numbers.only.front();
    if (!numbers.only.empty()) return numbers.only;
    nlohmann::json out = nlohmann::json::object();
    if (numbers.least) out["least"] = *numbers.least;
    if (numbers.most) out["most"] = *numbers.most;
    if (numbers.multiple > 1) out["multiple"] = numbers.multiple;
    return out;
}

}  // namespace

void read_takes(const JsonSource& source, const Json& object, Takes& takes) {
    Section section(source, object, "takes");
    for (const QuantityRow& row : quantities()) {
        const Json* v = section.find(row.key);
        if (v == nullptr) continue;
        if (row.quantity == Quantity::rope_dims && v->kind == Json::Kind::string &&
            v->text == "all")
            takes.turns_all = true;
        else
            takes[row.quantity] = numbers_of(source, *v, fmt::format("takes.{}", row.key), row);
    }
    section.choose("queries", manifest_words::queries_words, takes.queries);
    section.choose("padding", manifest_words::padding_words, takes.padding);
    section.choose("lse", manifest_words::lse_words, takes.lse);
    section.choose("lse_order", manifest_words::lse_order_words, takes.lse_order);
    if (const Json* v = section.find("dims")) {
        if (v->kind != Json::Kind::array || v->items.empty()) dims_of(source, *v);
        for (const Json& item : v->items) takes.dims.push_back(dims_of(source, item));
    }
    if (section.list("mask_shared") != nullptr)
        takes.mask_shared = listed(section, "mask_shared", manifest_words::mask_axis_words);
    takes.rope = listed(section, "rope", manifest_words::rope_words);
    takes.orders = listed(section, "orders", manifest_words::order_words);
    takes.always = read_features(section, "always");
    section.finish();
    // The smallest problem of these must be one that can be made.
    constexpr double scores_most = 0x1p24;
    double scores = 1;
    for (const Quantity each :
         {Quantity::batch, Quantity::heads_kv, Quantity::group, Quantity::len_q, Quantity::len_kv})
        scores *= static_cast<double>(std::max<std::int64_t>(takes[each].nearest(1), 1));
    if (scores > scores_most)
        source.fail(object, fmt::format("the smallest problem of these has {:.3g} scores", scores),
                    "fewer sequences, heads, queries or keys: attest makes none so large");
}

nlohmann::json takes_json(const Takes& takes) {
    nlohmann::json out = nlohmann::json::object();
    for (const QuantityRow& row : quantities())
        if (!takes[row.quantity].any()) out[std::string(row.key)] = json_of(takes[row.quantity]);
    if (takes.turns_all) out["rope_dims"] = "all";
    if (takes.queries != Queries::any)
        out["queries"] = word_of(manifest_words::queries_words, takes.queries);
    if (takes.padding != Padding::any)
        out["padding"] = word_of(manifest_words::padding_words, takes.padding);
    if (takes.lse != LseAsked::any) out["lse"] = word_of(manifest_words::lse_words, takes.lse);
    if (takes.lse_order != LseOrder::output)
        out["lse_order"] = word_of(manifest_words::lse_order_words, takes.lse_order);
    for (const DimPair& pair : takes.dims) out["dims"].push_back({pair.qk, pair.v});
    if (takes.mask_shared != Takes{}.mask_shared) {
        out["mask_shared"] = nlohmann::json::array();
        for (const MaskShared axis : takes.mask_shared)
            out["mask_shared"].push_back(word_of(manifest_words::mask_axis_words, axis));
    }
    for (const RopeStyle style : takes.rope)
        out["rope"].push_back(word_of(manifest_words::rope_words, style));
    for (const AxisOrder order : takes.orders)
        out["orders"].push_back(word_of(manifest_words::order_words, order));
    if (takes.always != FeatureSet{}) out["always"] = feature_names(takes.always);
    return out;
}

FeatureSet read_features(Section& section, std::string_view key) {
    FeatureSet features;
    const Json* list = section.list(key);
    if (list == nullptr) return features;
    std::vector<std::string_view> known;
    for (int f = 0; f < feature_count; ++f) known.push_back(name(static_cast<Feature>(f)));
    for (const Json& item : list->items) {
        const std::optional<Feature> feature = parse_feature(item.text);
        if (feature)
            features = features.with(*feature);
        else if (!foreign(item.text))
            section.fail_word(item, key, known);
    }
    return features;
}

std::vector<std::string> feature_names(FeatureSet features) {
    std::vector<std::string> names;
    for (int f = 0; f < feature_count; ++f)
        if (features.has(static_cast<Feature>(f)))
            names.emplace_back(name(static_cast<Feature>(f)));
    return names;
}

}  // namespace attest::kernel
