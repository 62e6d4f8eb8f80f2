#include "properties/search/shrink_moves.hpp"

#include <algorithm>

#include "reference/problem/mask_pattern.hpp"

namespace attest::search {

namespace {

using Lens = std::vector<std::int64_t>;

void cut_lens(Lens& lens, std::int64_t batch, std::int64_t most) {
    if (lens.empty()) return;
    lens.resize(static_cast<std::size_t>(std::max<std::int64_t>(batch, 0)), most);
    for (std::int64_t& len : lens) len = std::clamp<std::int64_t>(len, 0, most);
}

/// Documents that no longer fill their axis: the last ones give way, the last one left grows.
void refit(Lens& documents, std::int64_t total) {
    std::int64_t left = total;
    for (std::int64_t& len : documents) {
        len = std::min(len, left);
        left -= len;
    }
    if (!documents.empty()) documents.back() += left;
}

void set_group(Problem& p, std::int64_t group) {
    p.heads_q = p.heads_kv * group;
}

/// Both lengths by the same number, and with them whatever is measured in keys from the end.
void lower_both(Problem& p, std::int64_t keys) {
    const std::int64_t by = p.len_kv - keys;
    p.len_kv = keys;
    p.len_q -= by;
    for (std::int64_t& len : p.mask.lens_q) len -= by;
    for (std::int64_t& len : p.mask.lens_kv) len -= by;
}

void add_length_parameters(std::vector<Parameter>& all, const Problem& p) {
    const auto keys = [](const Problem& x) { return x.len_kv; };
    const std::int64_t ahead = std::max<std::int64_t>(p.len_kv - p.len_q, 0);
    all.push_back({"Tk", ", Tk - Tq kept", 1 + ahead, keys, lower_both});
    if (!p.mask.lens_kv.empty())
        all.push_back({"Tk", ", Tk - lens_kv kept", 1, keys, [](Problem& x, std::int64_t v) {
                           for (std::int64_t& len : x.mask.lens_kv) len -= x.len_kv - v;
                           x.len_kv = v;
                       }});
    if (!p.mask.lens_q.empty())
        all.push_back({"Tq", ", Tq - lens_q kept", 1, [](const Problem& x) { return x.len_q; },
                       [](Problem& x, std::int64_t v) {
                           for (std::int64_t& len : x.mask.lens_q) len -= x.len_q - v;
                           x.len_q = v;
                       }});
    if (p.mask.window.left > 0)
        all.push_back({"Tk", ", Tk - window kept", 1, keys, [](Problem& x, std::int64_t v) {
                           x.mask.window.left -= x.len_kv - v;
                           x.len_kv = v;
                       }});
    if (p.cache.page_size > 0)
        all.push_back({"Tk", ", Tk - page kept", p.len_kv - p.cache.page_size + 1, keys,
                       [](Problem& x, std::int64_t v) {
                           x.cache.page_size -= x.len_kv - v;
                           x.len_kv = v;
                       }});
    if (p.cache.present)
        all.push_back({"Tk", ", Tq kept", p.len_q, keys,
                       [](Problem& x, std::int64_t v) { x.len_kv = v; },
                       std::max<std::int64_t>(p.cache.page_size, 1)});
    if (has_tiles(p.mask.tensor.pattern)) {
        all.push_back({"Tk", ", Tk - tile kept", 1, keys, [](Problem& x, std::int64_t v) {
                           x.mask.tensor.tile -= x.len_kv - v;
                           x.len_kv = v;
                       }});
        all.push_back({"Tk", ", tile as by default", 1, keys, [](Problem& x, std::int64_t v) {
                           x.mask.tensor.tile = MaskTensor{}.tile;
                           x.len_kv = v;
                       }});
    }
    all.push_back({"Tk", "", 1, keys, [](Problem& x, std::int64_t v) { x.len_kv = v; }});
    all.push_back({"Tq", "", 1, [](const Problem& x) { return x.len_q; },
                   [](Problem& x, std::int64_t v) { x.len_q = v; }});
    if (p.len_q == p.len_kv) return;
    all.push_back({"Tq and Tk to the shorter, Tk", "", 1, keys, [](Problem& x, std::int64_t v) {
                       x.len_q = std::min(x.len_q, v);
                       x.len_kv = v;
                   }});
}

/// An entry of a list that may be shorter since.
std::int64_t entry(const Lens& lens, std::size_t i) {
    return i < lens.size() ? lens[i] : 0;
}
void set_entry(Lens& lens, std::size_t i, std::int64_t value) {
    if (i < lens.size()) lens[i] = value;
}

/// The axes follow the documents they are made of.
void set_documents(Problem& p, std::size_t i, std::int64_t queries, std::int64_t keys) {
    p.len_q += queries - entry(p.mask.documents_q, i);
    p.len_kv += keys - entry(p.mask.documents_kv, i);
    set_entry(p.mask.documents_q, i, queries);
    set_entry(p.mask.documents_kv, i, keys);
}

void add_document_parameters(std::vector<Parameter>& all, const Problem& p) {
    for (std::size_t i = 0; i < p.mask.documents_q.size(); ++i) {
        const std::string which = " of document " + std::to_string(i);
        const auto queries = [i](const Problem& x) { return entry(x.mask.documents_q, i); };
        const auto keys = [i](const Problem& x) { return entry(x.mask.documents_kv, i); };
        // Alike documents stay alike: with positions they must.
        all.push_back(
            {"length" + which, ", keys along", 0, queries, [=](Problem& x, std::int64_t v) {
                 set_documents(x, i, v, keys(x) - (queries(x) - v));
             }});
        all.push_back({"keys" + which, "", 0, keys,
                       [=](Problem& x, std::int64_t v) { set_documents(x, i, queries(x), v); }});
        all.push_back({"queries" + which, "", 0, queries,
                       [=](Problem& x, std::int64_t v) { set_documents(x, i, v, keys(x)); }});
    }
}

template <typename Member>
Parameter field(const char* label, std::int64_t floor, Member member) {
    return {label, "", floor,
            [member](const Problem& x) { return member(const_cast<Problem&>(x)); },
            [member](Problem& x, std::int64_t v) { member(x) = v; }};
}

void add_layout_parameters(std::vector<Parameter>& all) {
    for (const auto& [layout, label] : {std::pair{&Problem::layout_q, "layout_q "},
                                        {&Problem::layout_k, "layout_k "},
                                        {&Problem::layout_v, "layout_v "},
                                        {&Problem::layout_o, "layout_o "}}) {
        const auto member = layout;
        all.push_back(field((std::string(label) + "pad").c_str(), 0,
                            [member](Problem& x) -> std::int64_t& { return (x.*member).row_pad; }));
        all.push_back(field((std::string(label) + "offset").c_str(), 0,
                            [member](Problem& x) -> std::int64_t& { return (x.*member).offset; }));
    }
}

}  // namespace

void repair(Problem& p) {
    cut_lens(p.mask.lens_q, p.batch, p.len_q);
    cut_lens(p.mask.lens_kv, p.batch, p.len_kv);
    refit(p.mask.documents_q, p.len_q);
    refit(p.mask.documents_kv, p.len_kv);
    if (p.cache.present) p.cache.len = p.len_kv - p.len_q;
    if (p.rope.dims > p.dim_qk) p.rope.dims = p.dim_qk - p.dim_qk % 2;
    p = canonical(p);
}

std::vector<Parameter> parameters(const Problem& p) {
    std::vector<Parameter> all;
    all.push_back({"batch", "", 1, [](const Problem& x) { return x.batch; },
                   [](Problem& x, std::int64_t v) { x.batch = v; }});
    all.push_back({"heads_kv", ", group kept", 1, [](const Problem& x) { return x.heads_kv; },
                   [](Problem& x, std::int64_t v) {
                       const std::int64_t group = group_size(x);
                       x.heads_kv = v;
                       set_group(x, group);
                   }});
    all.push_back({"group", "", 1, [](const Problem& x) { return group_size(x); }, set_group});
    add_length_parameters(all, p);
    all.push_back({"dim", ", dim_v along", 1, [](const Problem& x) { return x.dim_qk; },
                   [](Problem& x, std::int64_t v) {
                       x.dim_v = std::max<std::int64_t>(value_dim(x) - (x.dim_qk - v), 1);
                       x.dim_qk = v;
                   }});
    all.push_back({"dim", "", 1, [](const Problem& x) { return x.dim_qk; },
                   [](Problem& x, std::int64_t v) {
                       if (x.dim_v != 0) x.dim_v = value_dim(x);
                       x.dim_qk = v;
                   }});
    all.push_back({"dim_qk", ", dim_v kept", 1, [](const Problem& x) { return x.dim_qk; },
                   [](Problem& x, std::int64_t v) {
                       x.dim_v = value_dim(x);
                       x.dim_qk = v;
                   }});
    all.push_back({"dim_v", "", 1, [](const Problem& x) { return value_dim(x); },
                   [](Problem& x, std::int64_t v) { x.dim_v = v; }});
    all.push_back(
        field("window left", 0, [](Problem& x) -> std::int64_t& { return x.mask.window.left; }));
    all.push_back(
        field("window right", 0, [](Problem& x) -> std::int64_t& { return x.mask.window.right; }));
    add_document_parameters(all, p);
    all.push_back(field("page", 1, [](Problem& x) -> std::int64_t& { return x.cache.page_size; }));
    all.push_back(
        field("mask tile", 1, [](Problem& x) -> std::int64_t& { return x.mask.tensor.tile; }));
    all.push_back(field("splits", 1, [](Problem& x) -> std::int64_t& { return x.splits; }));
    all.push_back(field("rope dims", 2, [](Problem& x) -> std::int64_t& { return x.rope.dims; }));
    all.push_back(
        field("rope offset", 0, [](Problem& x) -> std::int64_t& { return x.rope.offset; }));
    add_layout_parameters(all);
    return all;
}

}  // namespace attest::search
