// The grammar of the one-line form. Fields may come in any order, each once; an option's own words
// follow it.

#include <functional>
#include <map>

#include "reference/problem/errors.hpp"
#include "reference/problem/line.hpp"
#include "reference/problem/line_reader.hpp"
#include "reference/problem/names.hpp"

namespace attest {
namespace {

const char* const example = "such as: b2 hq8 hkv2 tq128 tk160 d64 causal f16";

class Grammar {
public:
    using Token = LineReader::Token;

    Grammar(std::string_view line, bool with_values)
        : reader_(line, with_values ? "case" : "problem") {
        add_axes();
        add_mask();
        add_features();
        add_cache();
        add_memory();
        add_formats();
        if (with_values) add_values();
    }

    Case read() {
        do read_field(reader_.take(example));
        while (!reader_.done());
        Problem& p = case_.problem;
        if (!seen("format_kv")) p.format_kv = p.format_q;
        if (!seen("format_o")) p.format_o = p.format_q;
        auto found = find_contradiction(p);
        if (!found) found = find_contradiction(p, case_.values);
        if (found) {
            const auto place = places_.find(found->field);
            const Token at = place == places_.end() ? reader_.whole_line() : place->second;
            reader_.fail(at, found->what, found->remedy);
        }
        p = canonical(p);
        return std::move(case_);
    }

private:
    struct Field {
        std::string key;
        std::function<void()> read;
    };
    using Fields = std::map<std::string_view, Field>;

    bool seen(const std::string& key) const { return places_.count(key) != 0; }

    void read_field(const Token& token) {
        const std::string_view word = reader_.text(token);
        auto field = keywords_.find(word);
        if (field == keywords_.end()) {
            // An axis: its letters, then at once its number.
            const std::size_t letters = std::min(word.find_first_not_of("bdhkqtv"), word.size());
            field = axes_.find(word.substr(0, letters));
            if (letters == word.size() || field == axes_.end()) fail_unknown(token);
            extent_ = {token.begin + letters, token.end};
        }
        const std::string& key = field->second.key;
        if (seen(key))
            reader_.fail(token, std::string(word) + " comes after another " + key, "say it once");
        places_[key] = token;
        field->second.read();
        places_[key].end = reader_.consumed_end();
    }

    [[noreturn]] void fail_unknown(const Token& token) const {
        std::vector<std::string_view> known;
        for (const auto& [word, unused] : keywords_) known.push_back(word);
        const std::string_view word = reader_.text(token);
        reader_.fail(token, printable(word) + " means nothing here" + suggestion(word, known),
                     example);
    }

    void axis(std::string_view word, const char* key, std::int64_t* into) {
        axes_[word] = {key, [this, word, into] {
                           const std::string remedy = "a whole number follows ";
                           *into = reader_.whole_in(extent_, remedy + std::string(word));
                       }};
    }
    void keyword(std::string_view word, const char* key, std::function<void()> read) {
        keywords_[word] = {key, std::move(read)};
    }
    void flag(const char* word, bool* into) {
        keyword(word, word, [into] { *into = true; });
    }
    void lengths(const char* word, const char* key, std::vector<std::int64_t>* into) {
        keyword(word, key, [this, into] { *into = reader_.wholes(); });
    }
    void option(std::string_view word, std::int64_t* into) {
        if (reader_.take_if(word)) *into = reader_.whole();
    }

    void add_axes() {
        Problem& p = case_.problem;
        axis("b", "batch", &p.batch);
        axis("hq", "heads_q", &p.heads_q);
        axis("hkv", "heads_kv", &p.heads_kv);
        axis("tq", "len_q", &p.len_q);
        axis("tk", "len_kv", &p.len_kv);
        axis("d", "dim_qk", &p.dim_qk);
        axis("dv", "dim_v", &p.dim_v);
    }

    void add_mask() {
        Mask& m = case_.problem.mask;
        flag("causal", &m.causal);
        keyword("window", "window", [this, &m] {
            m.window.left = reader_.whole();
            m.window.right = reader_.whole();
        });
        keyword("mask", "mask", [this, &m] { read_mask(m.tensor); });
        lengths("lens_q", "lens_q", &m.lens_q);
        lengths("lens_kv", "lens_kv", &m.lens_kv);
        lengths("docs_q", "documents_q", &m.documents_q);
        lengths("docs_kv", "documents_kv", &m.documents_kv);
    }
    void read_mask(MaskTensor& mask) {
        static constexpr std::string_view kinds[] = {"bool", "additive"};
        static constexpr std::string_view axes[] = {"batch", "heads", "queries"};
        const bool additive = reader_.one_of<int>(reader_.take("bool or additive follows"), kinds);
        mask.kind = additive ? MaskKind::additive : MaskKind::boolean;
        if (!reader_.take_if("shared")) return;
        bool* flags[] = {&mask.shared_batch, &mask.shared_heads, &mask.shared_queries};
        reader_.parts(reader_.take("axes follow, such as batch,heads"), [&](const Token& part) {
            *flags[reader_.one_of<std::size_t>(part, axes)] = true;
        });
    }

    void add_features() {
        Problem& p = case_.problem;
        keyword("scale", "scale", [this, &p] { p.scale = reader_.real(); });
        keyword("softcap", "softcap", [this, &p] { p.softcap = reader_.real(); });
        flag("sink", &p.sink);
        flag("alibi", &p.alibi);
        keyword("rope", "rope", [this, &p] {
            const auto styles = rope_style_names().subspan(1);  // without none
            const Token style = reader_.take("interleaved or half follows");
            p.rope.style =
                reader_.one_of<int>(style, styles) == 0 ? RopeStyle::interleaved : RopeStyle::half;
            if (reader_.take_if("base")) p.rope.base = reader_.real();
            option("dims", &p.rope.dims);
            option("offset", &p.rope.offset);
        });
        keyword("dropout", "dropout", [this, &p] {
            p.dropout.p = reader_.real();
            if (reader_.take_if("seed")) p.dropout.seed = reader_.seed();
        });
    }

    void add_cache() {
        Cache& cache = case_.problem.cache;
        keyword("cache", "cache", [this, &cache] {
            cache.present = true;
            cache.len = reader_.whole();
            option("page", &cache.page_size);
            cache.ring = reader_.take_if("ring");
            cache.keys_rotated = reader_.take_if("rotated");
        });
    }

    void add_memory() {
        Problem& p = case_.problem;
        keyword("splits", "splits", [this, &p] { p.splits = reader_.whole(); });
        layout("layout_q", &p.layout_q);
        layout("layout_k", &p.layout_k);
        layout("layout_v", &p.layout_v);
        layout("layout_o", &p.layout_o);
    }
    void layout(const char* word, Layout* layout) {
        keyword(word, word, [this, layout] {
            const Token order = reader_.take("an order of axes follows, such as bthd");
            layout->order = reader_.one_of<AxisOrder>(order, axis_order_names());
            option("pad", &layout->row_pad);
            option("offset", &layout->offset);
        });
    }

    void add_formats() {
        Problem& p = case_.problem;
        for (const Precision format : all_formats)
            keyword(name(format), "format_q", [format, &p] { p.format_q = format; });
        keyword("kv", "format_kv", [this, &p] { p.format_kv = format(); });
        keyword("out", "format_o", [this, &p] { p.format_o = format(); });
        keyword("no_lse", "want_lse", [&p] { p.want_lse = false; });
        keyword("grad", "want_grad", [&p] { p.want_grad = true; });
    }
    Precision format() {
        const Token token = reader_.take("a format follows, such as bf16");
        return reader_.one_of<Precision>(token, precision_names());
    }

    void add_values() {
        Values& v = case_.values;
        keyword("values", "kind", [this, &v] {
            const Token kind = reader_.take("a distribution follows, such as ties");
            v.kind = reader_.one_of<ValueKind>(kind, value_kind_names());
        });
        keyword("seed", "seed", [this, &v] { v.seed = reader_.seed(); });
        keyword("q", "q", [this, &v] { read_tensor(v, Role::q); });
        keyword("k", "k", [this, &v] { read_tensor(v, Role::k); });
        keyword("v", "v", [this, &v] { read_tensor(v, Role::v); });
    }
    void read_tensor(Values& v, Role role) {
        const Token token =
            reader_.take("zeros, ones, index, alternating, steep or [numbers] follow");
        TensorValues tensor;
        if (reader_.text(token).front() == '[') {
            if (reader_.text(token).back() != ']')
                reader_.fail(token, "the list does not end", "close it with ]");
            tensor.fill = Fill::explicit_values;
            if (token.end - token.begin > 2)
                reader_.parts({token.begin + 1, token.end - 1}, [&](const Token& part) {
                    tensor.values.push_back(reader_.real_in(part));
                });
        } else {
            tensor.fill = reader_.one_of<Fill>(token, named_fills());
        }
        if (tensor.fill != Fill::drawn) v.tensors[role] = std::move(tensor);
    }

    static constexpr Precision all_formats[] = {Precision::f64, Precision::f32, Precision::f16,
                                                Precision::bf16};
    LineReader reader_;
    Token extent_;  ///< the number of the axis being read
    Fields keywords_, axes_;
    std::map<std::string, Token> places_;
    Case case_;
};

}  // namespace

Problem parse_problem(std::string_view line) {
    return Grammar(line, false).read().problem;
}

Case parse_case(std::string_view line) {
    return Grammar(line, true).read();
}

}  // namespace attest
