#include "reference/problem/errors.hpp"
#include "reference/problem/line.hpp"
#include "reference/problem/names.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

template <typename Numbers, typename Print>
std::string list(const Numbers& numbers, Print print_one) {
    std::string text;
    for (const auto number : numbers) {
        if (!text.empty()) text += ',';
        text += print_one(number);
    }
    return text;
}

std::string whole(std::int64_t number) {
    return std::to_string(number);
}

/// Collects words; an option is left out where it says nothing.
class Writer {
public:
    void add(const char* field, std::string text) { words_.push_back({field, std::move(text)}); }
    void flag(const char* field, const char* word, bool on) {
        if (on) add(field, word);
    }
    void axis(const char* field, const char* letters, std::int64_t extent) {
        std::string text = letters;
        add(field, text += whole(extent));
    }
    void option(std::string& text, const char* word, std::int64_t number) {
        if (number != 0) text += std::string(" ") + word + " " + whole(number);
    }
    void lengths(const char* field, const char* word, const std::vector<std::int64_t>& lens) {
        if (!lens.empty()) add(field, std::string(word) + " " + list(lens, whole));
    }
    void layout(const char* field, const Layout& layout) {
        if (layout == Layout{}) return;
        std::string text = std::string(field) + " " +
                           std::string(axis_order_names()[static_cast<std::size_t>(layout.order)]);
        option(text, "pad", layout.row_pad);
        option(text, "offset", layout.offset);
        add(field, text);
    }
    std::vector<Word> take() { return std::move(words_); }

private:
    std::vector<Word> words_;
};

void add_mask(Writer& w, const Mask& m) {
    w.flag("causal", "causal", m.causal);
    if (m.window != Window{})
        w.add("window", "window " + whole(m.window.left) + " " + whole(m.window.right));
    if (m.tensor.kind != MaskKind::none) {
        std::string text = m.tensor.kind == MaskKind::boolean ? "mask bool" : "mask additive";
        std::string shared;
        if (m.tensor.shared_batch) shared += ",batch";
        if (m.tensor.shared_heads) shared += ",heads";
        if (m.tensor.shared_queries) shared += ",queries";
        if (!shared.empty()) text += " shared " + shared.substr(1);
        w.add("mask", text);
    }
    w.lengths("lens_q", "lens_q", m.lens_q);
    w.lengths("lens_kv", "lens_kv", m.lens_kv);
    w.lengths("documents_q", "docs_q", m.documents_q);
    w.lengths("documents_kv", "docs_kv", m.documents_kv);
}

void add_rope(Writer& w, const Rope& rope) {
    if (rope.style == RopeStyle::none) return;
    std::string text =
        "rope " + std::string(rope_style_names()[static_cast<std::size_t>(rope.style)]);
    if (rope.base != Rope{}.base) text += " base " + decimal(rope.base);
    w.option(text, "dims", rope.dims);
    w.option(text, "offset", rope.offset);
    w.add("rope", text);
}

void add_cache(Writer& w, const Cache& cache) {
    if (!cache.present) return;
    std::string text = "cache " + whole(cache.len);
    w.option(text, "page", cache.page_size);
    if (cache.ring) text += " ring";
    if (cache.keys_rotated) text += " rotated";
    w.add("cache", text);
}

void add_dropout(Writer& w, const Dropout& dropout) {
    if (dropout.p == 0.0) return;
    std::string text = "dropout " + decimal(dropout.p);
    if (dropout.seed != 0) text += " seed " + std::to_string(dropout.seed);
    w.add("dropout", text);
}

void add_formats(Writer& w, const Problem& p) {
    w.add("format_q", std::string(name(p.format_q)));
    if (p.format_kv != p.format_q) w.add("format_kv", "kv " + std::string(name(p.format_kv)));
    if (p.format_o != p.format_q) w.add("format_o", "out " + std::string(name(p.format_o)));
}

}  // namespace

std::vector<Word> words_of(const Problem& p) {
    Writer w;
    w.axis("batch", "b", p.batch);
    w.axis("heads_q", "hq", p.heads_q);
    w.axis("heads_kv", "hkv", p.heads_kv);
    w.axis("len_q", "tq", p.len_q);
    w.axis("len_kv", "tk", p.len_kv);
    w.axis("dim_qk", "d", p.dim_qk);
    if (p.dim_v != 0) w.axis("dim_v", "dv", p.dim_v);
    add_mask(w, p.mask);
    if (p.scale) w.add("scale", "scale " + decimal(*p.scale));
    if (p.softcap != 0.0) w.add("softcap", "softcap " + decimal(p.softcap));
    w.flag("sink", "sink", p.sink);
    w.flag("alibi", "alibi", p.alibi);
    add_rope(w, p.rope);
    add_dropout(w, p.dropout);
    add_cache(w, p.cache);
    if (p.splits != 0) w.add("splits", "splits " + whole(p.splits));
    w.layout("layout_q", p.layout_q);
    w.layout("layout_k", p.layout_k);
    w.layout("layout_v", p.layout_v);
    w.layout("layout_o", p.layout_o);
    add_formats(w, p);
    w.flag("want_lse", "no_lse", !p.want_lse);
    w.flag("want_grad", "grad", p.want_grad);
    return w.take();
}

std::vector<Word> words_of(const Values& values) {
    Writer w;
    if (values.kind != ValueKind::normal) w.add("kind", "values " + std::string(name(values.kind)));
    if (values.seed != 0) w.add("seed", "seed " + std::to_string(values.seed));
    for (const auto& [role, tensor] : values.tensors) {
        const std::string field(name(role));
        if (tensor.fill == Fill::explicit_values)
            w.add(field.c_str(), field + " [" + list(tensor.values, decimal) + "]");
        else if (tensor.fill != Fill::drawn)
            w.add(field.c_str(), field + " " + std::string(name(tensor.fill)));
    }
    return w.take();
}

std::string join(const std::vector<Word>& words) {
    std::string line;
    for (const Word& word : words) line += (line.empty() ? "" : " ") + word.text;
    return line;
}

void refuse(const std::string& subject, const std::vector<Word>& words,
            const Contradiction& contradiction) {
    const std::string line = join(words);
    std::size_t begin = 0, length = line.size();
    for (std::size_t at = 0; const Word& word : words) {
        if (word.field == contradiction.field) begin = at, length = word.text.size();
        at += word.text.size() + 1;
    }
    std::vector<std::string> details = pointed(line, begin, begin + length);
    details.push_back(contradiction.remedy);
    throw BadInput("this is not a " + subject + ": " + contradiction.what, std::move(details));
}

std::string print(const Problem& problem) {
    return join(words_of(canonical(problem)));
}

std::string print(const Case& c) {
    const std::string values = join(words_of(c.values));
    return print(c.problem) + (values.empty() ? "" : " " + values);
}

void require_valid(const Problem& problem) {
    if (auto found = find_contradiction(problem))
        refuse("problem", words_of(canonical(problem)), *found);
}

}  // namespace attest
