// The canonical JSON of a case: one line, sorted keys, only what differs from the defaults. A text
// has one name because it is the only text of its case.

#include <algorithm>
#include <map>
#include <span>

#include "reference/problem/case.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/names.hpp"
#include "reference/problem/text.hpp"
#include "reference/problem/validity.hpp"

namespace attest {
namespace {

std::string quoted(std::string_view text) {
    return '"' + std::string(text) + '"';
}

template <typename Numbers, typename Print>
std::string array(const Numbers& numbers, Print print_one) {
    std::string text = "[";
    for (const auto& number : numbers) {
        if (text.size() > 1) text += ',';
        text += print_one(number);
    }
    return text + "]";
}

/// An object whose members are added where they differ from the default; std::map sorts them.
class ObjectWriter {
public:
    void raw(const char* key, std::string json) { members_[key] = std::move(json); }
    void add(const char* key, std::int64_t value, std::int64_t plain) {
        if (value != plain) raw(key, std::to_string(value));
    }
    void add(const char* key, bool value, bool plain) {
        if (value != plain) raw(key, value ? "true" : "false");
    }
    void add(const char* key, double value, double plain) {
        if (value != plain) raw(key, quoted(hex_real(value)));
    }
    void add(const char* key, std::uint64_t value, std::uint64_t plain) {
        if (value != plain) raw(key, quoted(std::to_string(value)));
    }
    void add(const char* key, const std::vector<std::int64_t>& lens) {
        if (!lens.empty()) raw(key, array(lens, [](auto len) { return std::to_string(len); }));
    }
    template <typename Enum>
    void add(const char* key, Enum value, Enum plain, std::span<const std::string_view> names) {
        if (value != plain) raw(key, quoted(names[static_cast<std::size_t>(value)]));
    }
    std::string text() const {
        std::string out = "{";
        for (const auto& [key, json] : members_) {
            if (out.size() > 1) out += ',';
            out.append(quoted(key)).append(":").append(json);
        }
        return out += "}";
    }

private:
    std::map<std::string, std::string> members_;
};

std::string mask_json(const MaskTensor& mask) {
    ObjectWriter w;
    w.add("kind", mask.kind, MaskKind::none, mask_kind_names());
    const bool shared[] = {mask.shared_batch, mask.shared_heads, mask.shared_queries};
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < 3; ++i)
        if (shared[i]) names.push_back(shared_axis_names()[i]);
    if (!names.empty()) w.raw("shared", array(names, quoted));
    return w.text();
}

std::string rope_json(const Rope& rope) {
    ObjectWriter w;
    w.add("style", rope.style, RopeStyle::none, rope_style_names());
    w.add("base", rope.base, Rope{}.base);
    w.add("dims", rope.dims, std::int64_t{0});
    w.add("offset", rope.offset, std::int64_t{0});
    return w.text();
}

std::string cache_json(const Cache& cache) {
    ObjectWriter w;
    w.raw("len", std::to_string(cache.len));
    w.add("page_size", cache.page_size, std::int64_t{0});
    w.add("ring", cache.ring, false);
    w.add("keys_rotated", cache.keys_rotated, false);
    return w.text();
}

void add_layout(ObjectWriter& w, const char* key, const Layout& layout) {
    if (layout == Layout{}) return;
    ObjectWriter inner;
    inner.add("order", layout.order, AxisOrder::bhtd, axis_order_names());
    inner.add("row_pad", layout.row_pad, std::int64_t{0});
    inner.add("offset", layout.offset, std::int64_t{0});
    w.raw(key, inner.text());
}

std::string problem_json(const Problem& p) {
    const Problem plain;
    ObjectWriter w;
    w.add("batch", p.batch, plain.batch);
    w.add("heads_q", p.heads_q, plain.heads_q);
    w.add("heads_kv", p.heads_kv, plain.heads_kv);
    w.add("len_q", p.len_q, plain.len_q);
    w.add("len_kv", p.len_kv, plain.len_kv);
    w.add("dim_qk", p.dim_qk, plain.dim_qk);
    w.add("dim_v", p.dim_v, plain.dim_v);
    if (p.scale) w.raw("scale", quoted(hex_real(*p.scale)));
    w.add("causal", p.mask.causal, false);
    if (p.mask.window != Window{})
        w.add("window", std::vector<std::int64_t>{p.mask.window.left, p.mask.window.right});
    if (p.mask.tensor != MaskTensor{}) w.raw("mask", mask_json(p.mask.tensor));
    w.add("lens_q", p.mask.lens_q);
    w.add("lens_kv", p.mask.lens_kv);
    w.add("documents_q", p.mask.documents_q);
    w.add("documents_kv", p.mask.documents_kv);
    w.add("softcap", p.softcap, plain.softcap);
    w.add("sink", p.sink, false);
    w.add("alibi", p.alibi, false);
    if (p.rope != Rope{}) w.raw("rope", rope_json(p.rope));
    if (p.dropout != Dropout{}) {
        ObjectWriter inner;
        inner.add("p", p.dropout.p, 0.0);
        inner.add("seed", p.dropout.seed, std::uint64_t{0});
        w.raw("dropout", inner.text());
    }
    if (p.cache.present) w.raw("cache", cache_json(p.cache));
    w.add("splits", p.splits, plain.splits);
    w.add("format_q", p.format_q, plain.format_q, precision_names());
    w.add("format_kv", p.format_kv, plain.format_kv, precision_names());
    w.add("format_o", p.format_o, plain.format_o, precision_names());
    add_layout(w, "layout_q", p.layout_q);
    add_layout(w, "layout_k", p.layout_k);
    add_layout(w, "layout_v", p.layout_v);
    add_layout(w, "layout_o", p.layout_o);
    w.add("want_lse", p.want_lse, plain.want_lse);
    w.add("want_grad", p.want_grad, plain.want_grad);
    return w.text();
}

std::string values_json(const Values& v) {
    ObjectWriter w;
    w.add("kind", v.kind, ValueKind::normal, value_kind_names());
    w.add("seed", v.seed, std::uint64_t{0});
    for (const auto& [role, tensor] : v.tensors) {
        if (tensor.fill == Fill::drawn) continue;
        const bool listed = tensor.fill == Fill::explicit_values;
        w.raw(std::string(name(role)).c_str(),
              listed ? array(tensor.values, [](double x) { return quoted(hex_real(x)); })
                     : quoted(name(tensor.fill)));
    }
    return w.text();
}

}  // namespace

std::string to_json(const Case& c) {
    ObjectWriter w;
    const std::string problem = problem_json(canonical(c.problem)), values = values_json(c.values);
    if (problem != "{}") w.raw("problem", problem);
    if (values != "{}") w.raw("values", values);
    return w.text();
}

}  // namespace attest
