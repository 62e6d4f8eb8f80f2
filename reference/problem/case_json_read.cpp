// Reads the JSON of a case, strictly: keys are known and come once, reals are hex strings, 64-bit
// numbers decimal strings, and the problem is one that can be.

#include <algorithm>
#include <span>

#include "reference/problem/case.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/names.hpp"
#include "reference/problem/text.hpp"
#include "reference/problem/validity.hpp"

namespace attest {
namespace {

/// One object's members, read into fields where they are present.
class Fields {
public:
    Fields(const JsonSource& source, const Json& object,
           std::initializer_list<std::string_view> known)
        : source_(source), object_(object) {
        json_keys(source, object, known);
    }
    void read(const char* key, std::int64_t& into) const {
        if (const Json* value = object_.find(key)) into = json_integer(source_, *value);
    }
    void read(const char* key, bool& into) const {
        if (const Json* value = object_.find(key)) into = json_boolean(source_, *value);
    }
    void read(const char* key, double& into) const {
        if (const Json* value = object_.find(key)) into = json_real(source_, *value);
    }
    void read(const char* key, std::uint64_t& into) const {
        if (const Json* value = object_.find(key)) into = json_u64(source_, *value);
    }
    void read(const char* key, std::vector<std::int64_t>& into) const {
        const Json* value = object_.find(key);
        if (value == nullptr) return;
        into.clear();
        for (const Json& item : json_array(source_, *value))
            into.push_back(json_integer(source_, item));
    }
    template <typename Enum>
    void read(const char* key, Enum& into, std::span<const std::string_view> names) const {
        if (const Json* value = object_.find(key)) into = one_of<Enum>(*value, names);
    }
    template <typename Enum>
    Enum one_of(const Json& value, std::span<const std::string_view> names) const {
        const std::string& text = json_string(source_, value);
        const auto found = std::find(names.begin(), names.end(), text);
        if (found == names.end())
            source_.fail(value, printable(text) + " is not known" + suggestion(text, names),
                         "one of " + joined(names, ", "));
        return static_cast<Enum>(found - names.begin());
    }
    const Json* find(const char* key) const { return object_.find(key); }
    const JsonSource& source() const { return source_; }

private:
    const JsonSource& source_;
    const Json& object_;
};

void read_window(const Fields& from, Window& window) {
    const Json* value = from.find("window");
    if (value == nullptr) return;
    std::vector<std::int64_t> limits;
    from.read("window", limits);
    if (limits.size() != 2)
        from.source().fail(*value, "a window has two limits", "write [left, right], -1 for none");
    window = {limits[0], limits[1]};
}

void read_mask(const Fields& from, MaskTensor& mask) {
    const Json* value = from.find("mask");
    if (value == nullptr) return;
    const Fields fields(from.source(), *value, {"kind", "shared"});
    fields.read("kind", mask.kind, mask_kind_names());
    const Json* shared = fields.find("shared");
    if (shared == nullptr) return;
    bool* flags[] = {&mask.shared_batch, &mask.shared_heads, &mask.shared_queries};
    for (const Json& item : json_array(from.source(), *shared))
        *flags[fields.one_of<std::size_t>(item, shared_axis_names())] = true;
}

void read_rope(const Fields& from, Rope& rope) {
    const Json* value = from.find("rope");
    if (value == nullptr) return;
    const Fields fields(from.source(), *value, {"style", "base", "dims", "offset"});
    fields.read("style", rope.style, rope_style_names());
    fields.read("base", rope.base);
    fields.read("dims", rope.dims);
    fields.read("offset", rope.offset);
}

void read_dropout(const Fields& from, Dropout& dropout) {
    const Json* value = from.find("dropout");
    if (value == nullptr) return;
    const Fields fields(from.source(), *value, {"p", "seed"});
    fields.read("p", dropout.p);
    fields.read("seed", dropout.seed);
}

void read_cache(const Fields& from, Cache& cache) {
    const Json* value = from.find("cache");
    if (value == nullptr) return;
    const Fields fields(from.source(), *value, {"len", "page_size", "ring", "keys_rotated"});
    cache.present = true;
    fields.read("len", cache.len);
    fields.read("page_size", cache.page_size);
    fields.read("ring", cache.ring);
    fields.read("keys_rotated", cache.keys_rotated);
}

void read_layout(const Fields& from, const char* key, Layout& layout) {
    const Json* value = from.find(key);
    if (value == nullptr) return;
    const Fields fields(from.source(), *value, {"order", "row_pad", "offset"});
    fields.read("order", layout.order, axis_order_names());
    fields.read("row_pad", layout.row_pad);
    fields.read("offset", layout.offset);
}

Problem read_problem(const JsonSource& source, const Json& value) {
    const Fields from(
        source, value,
        {"batch",    "heads_q",  "heads_kv", "len_q",       "len_kv",       "dim_qk",   "dim_v",
         "scale",    "causal",   "window",   "mask",        "lens_q",       "lens_kv",  "softcap",
         "sink",     "alibi",    "rope",     "documents_q", "documents_kv", "dropout",  "cache",
         "splits",   "format_q", "format_o", "format_kv",   "layout_q",     "layout_k", "layout_v",
         "layout_o", "want_lse", "want_grad"});
    Problem p;
    from.read("batch", p.batch);
    from.read("heads_q", p.heads_q);
    from.read("heads_kv", p.heads_kv);
    from.read("len_q", p.len_q);
    from.read("len_kv", p.len_kv);
    from.read("dim_qk", p.dim_qk);
    from.read("dim_v", p.dim_v);
    if (const Json* scale = from.find("scale")) p.scale = json_real(source, *scale);
    from.read("causal", p.mask.causal);
    read_window(from, p.mask.window);
    read_mask(from, p.mask.tensor);
    from.read("lens_q", p.mask.lens_q);
    from.read("lens_kv", p.mask.lens_kv);
    from.read("documents_q", p.mask.documents_q);
    from.read("documents_kv", p.mask.documents_kv);
    from.read("softcap", p.softcap);
    from.read("sink", p.sink);
    from.read("alibi", p.alibi);
    read_rope(from, p.rope);
    read_dropout(from, p.dropout);
    read_cache(from, p.cache);
    from.read("splits", p.splits);
    from.read("format_q", p.format_q, precision_names());
    from.read("format_kv", p.format_kv, precision_names());
    from.read("format_o", p.format_o, precision_names());
    read_layout(from, "layout_q", p.layout_q);
    read_layout(from, "layout_k", p.layout_k);
    read_layout(from, "layout_v", p.layout_v);
    read_layout(from, "layout_o", p.layout_o);
    from.read("want_lse", p.want_lse);
    from.read("want_grad", p.want_grad);
    return p;
}

Values read_values(const JsonSource& source, const Json& value) {
    const Fields from(source, value, {"kind", "seed", "q", "k", "v"});
    Values v;
    from.read("kind", v.kind, value_kind_names());
    from.read("seed", v.seed);
    for (const Role role : {Role::q, Role::k, Role::v}) {
        const Json* json = value.find(name(role));
        if (json == nullptr) continue;
        TensorValues tensor;
        if (json->kind == Json::Kind::array) {
            tensor.fill = Fill::explicit_values;
            for (const Json& item : json->items) tensor.values.push_back(json_real(source, item));
        } else {
            tensor.fill = from.one_of<Fill>(*json, named_fills());
        }
        if (tensor.fill != Fill::drawn) v.tensors[role] = std::move(tensor);
    }
    return v;
}

/// At the field to blame where the text has it, else at the whole object.
void check(const JsonSource& source, const Json& object,
           const std::optional<Contradiction>& found) {
    if (!found) return;
    const Json* field = object.find(found->field);
    const Json& at = field != nullptr ? *field : object;
    source.fail(at, found->what, found->remedy);
}

}  // namespace

Case case_from_json(std::string_view text, std::string_view source_name) {
    const JsonSource source{text, source_name};
    const Json root = parse_json(source);
    json_keys(source, root, {"problem", "values"});
    const Json *problem = root.find("problem"), *values = root.find("values");
    Case c;
    if (problem != nullptr) c.problem = read_problem(source, *problem);
    check(source, problem != nullptr ? *problem : root, find_contradiction(c.problem));
    if (values != nullptr) c.values = read_values(source, *values);
    check(source, values != nullptr ? *values : root, find_contradiction(c.problem, c.values));
    c.problem = canonical(std::move(c.problem));
    return c;
}

}  // namespace attest
