// The input tensors of a case. q, k and v are drawn or filled in logical coordinates and rounded to
// their format. Slots of a cache past a sequence's keys hold NaN: nobody may read them.

#include "reference/problem/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "reference/problem/block_table.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/draw.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/given_inputs.hpp"
#include "reference/problem/line.hpp"
#include "reference/problem/mask_pattern.hpp"
#include "reference/problem/slope_series.hpp"
#include "reference/problem/validity.hpp"

namespace attest {
namespace {

std::int64_t length_of(const std::vector<std::int64_t>& lens, std::int64_t b, std::int64_t full) {
    return lens.empty() ? full : lens[static_cast<std::size_t>(b)];
}

constexpr auto parameters = static_cast<std::uint64_t>(Stream::parameters);

std::uint64_t stream_of(Role role) {
    return static_cast<std::uint64_t>(role);
}

class Inputs {
public:
    Inputs(const Case& c, const TensorSet& given)
        : case_(c),
          problem_(c.problem),
          given_(given),
          drawn_(c.problem, c.values),
          seed_(c.values.seed) {}

    TensorSet make() {
        const Mask& m = problem_.mask;
        lengths(Role::lens_q, m.lens_q);
        lengths(Role::lens_kv, m.lens_kv);
        edges(Role::cu_seqlens_q, m.documents_q);
        edges(Role::cu_seqlens_kv, m.documents_kv);
        if (Tensor* table = place(Role::block_table)) fill_block_table(problem_, seed_, *table);
        for (const Role role : {Role::q, Role::k, Role::v})
            if (!take(role)) tensor(role);
        if (!take(Role::mask)) mask();
        positions();
        if (!take(Role::alibi_slopes)) slopes();
        if (!take(Role::sinks)) sinks();
        output_gradient();
        lse_gradient();
        return std::move(set_);
    }

private:
    /// The tensor of a role, zero-filled; null where the problem has none.
    Tensor* place(Role role) {
        const std::optional<Shape> shape = shape_of(problem_, role);
        return shape ? &set_.put(role, Tensor(type_of(problem_, role), *shape)) : nullptr;
    }

    /// Of the problem's tensors one that is given.
    bool take(Role role) {
        const std::optional<Shape> shape = shape_of(problem_, role);
        if (!shape || !given_.has(role)) return false;
        const Tensor& tensor = set_.put(role, given_[role]);
        require(tensor.shape() == *shape && tensor.type() == type_of(problem_, role),
                "a paired case's tensors have the shapes of its problem");
        return true;
    }

    void lengths(Role role, const std::vector<std::int64_t>& lens) {
        Tensor* tensor = place(role);
        if (tensor == nullptr) return;
        for (std::size_t b = 0; b < lens.size(); ++b)
            tensor->set(static_cast<std::int64_t>(b), static_cast<double>(lens[b]));
    }

    void edges(Role role, const std::vector<std::int64_t>& documents) {
        Tensor* tensor = place(role);
        if (tensor == nullptr) return;
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < documents.size(); ++i) {
            sum += documents[i];
            tensor->set(static_cast<std::int64_t>(i) + 1, static_cast<double>(sum));
        }
    }

    std::int64_t keys_of(std::int64_t b) const {
        return length_of(problem_.mask.lens_kv, b, problem_.len_kv);
    }

    void tensor(Role role) {
        Tensor& out = *place(role);
        const bool cached = (role == Role::k || role == Role::v) && problem_.cache.present;
        const auto chosen = case_.values.tensors.find(role);
        const TensorValues* values =
            chosen == case_.values.tensors.end() ? nullptr : &chosen->second;
        const Shape shape = out.shape();
        std::vector<double> row(static_cast<std::size_t>(shape[3]));
        const std::vector<double> poison(row.size(), std::numeric_limits<double>::quiet_NaN());
        for (std::int64_t b = 0; b < shape[0]; ++b) {
            const std::int64_t held = cached ? keys_of(b) : shape[2];
            for (std::int64_t h = 0; h < shape[1]; ++h)
                for (std::int64_t t = 0; t < shape[2]; ++t) {
                    const std::int64_t flat = out.flat(b, h, t, 0);
                    if (t < held) make_row(role, values, {b, h, t, flat}, row);
                    out.narrow(flat, t < held ? row : poison);
                }
        }
    }

    void make_row(Role role, const TensorValues* values, const Shape& at,
                  std::span<double> row) const {
        const auto [b, h, t, flat] = at;
        const Fill fill = values == nullptr ? Fill::drawn : values->fill;
        if (fill == Fill::drawn) return drawn_.row(role, b, h, t, row);
        const bool last = t + 1 == (*shape_of(problem_, role))[2];
        for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = fill == Fill::explicit_values
                         ? values->values[static_cast<std::size_t>(flat) + c]
                         : filled(fill, b, h, t, static_cast<std::int64_t>(c), last);
    }

    /// Calls each(flat, index of the generator) for every element of a tensor, by its coordinates.
    template <typename Each>
    static void elements(const Tensor& tensor, Each each) {
        const Shape& s = tensor.shape();
        for (std::int64_t b = 0, flat = 0; b < s[0]; ++b)
            for (std::int64_t h = 0; h < s[1]; ++h)
                for (std::int64_t t = 0; t < s[2]; ++t) {
                    const std::uint64_t key = row_key(b, h, t);
                    for (std::int64_t c = 0; c < s[3]; ++c, ++flat)
                        each(flat, key + static_cast<std::uint64_t>(c));
                }
    }

    void mask() {
        Tensor* mask = place(Role::mask);
        if (mask == nullptr) return;
        const MaskTensor& how = problem_.mask.tensor;
        const bool additive = how.kind == MaskKind::additive;
        if (additive && how.pattern == MaskPattern::iid && how.floor == 0) return biases(*mask);
        const PatternedMask pattern(problem_, seed_);
        const double shown = additive ? 0 : 1;
        const double hidden = !additive ? 0 : how.floor < 0 ? how.floor : -infinite;
        const bool biased = additive && !pattern.unbiased();
        const Shape& s = mask->shape();
        const auto visible = std::make_unique<bool[]>(static_cast<std::size_t>(s[3]));
        elements(*mask, [&](std::int64_t flat, std::uint64_t index) {
            const std::int64_t j = flat % s[3], row = flat / s[3];
            if (j == 0)
                pattern.row(row / s[2] / s[1], row / s[2] % s[1], row % s[2],
                            {visible.get(), static_cast<std::size_t>(s[3])});
            const double bias = biased ? bias_of(index) : shown;
            mask->set(flat, visible[static_cast<std::size_t>(j)] ? bias : hidden);
        });
    }

    double bias_of(std::uint64_t index) const {
        return 2 * counter_normal(seed_, stream_of(Role::d_mask), index);
    }

    /// 0.2 hidden by -inf, the others biased by a normal number of deviation 2. On one seed in
    /// four frameworks' stand-ins for -inf, which hide a key beside others but not among its like:
    /// -1e4, or the lowest f16, is what 1 of 5 have instead, and every other row has throughout.
    void biases(Tensor& mask) const {
        const double minus_infinity = -infinite;
        const std::uint64_t stream = stream_of(Role::mask), bias_stream = stream_of(Role::d_mask);
        const bool floored = counter_uniform(seed_, parameters, stream) < 0.25;
        const double floor = counter_uniform(seed_, parameters, bias_stream) < 0.5 ? -1e4 : -65504;
        const auto keys = static_cast<std::uint64_t>(mask.shape()[3]);
        bool row_floored = false;
        elements(mask, [&](std::int64_t flat, std::uint64_t index) {
            if (static_cast<std::uint64_t>(flat) % keys == 0)
                row_floored = floored && counter_uniform(seed_, parameters, index) < 0.5;
            const bool hidden = counter_uniform(seed_, stream, index) < 0.2;
            mask.set(flat, row_floored || (floored && hidden) ? floor
                           : hidden                           ? minus_infinity
                                                              : bias_of(index));
        });
    }

    void positions() {
        Tensor* positions = place(Role::positions);
        if (positions == nullptr) return;
        for (std::int64_t b = 0; b < problem_.batch; ++b)
            for (std::int64_t i = 0; i < problem_.len_q; ++i) {
                const auto queries = length_of(problem_.mask.lens_q, b, problem_.len_q);
                positions->put(b, i, 0, 0, static_cast<double>(keys_of(b) - queries + i));
            }
    }

    void slopes() {
        Tensor* slopes = place(Role::alibi_slopes);
        if (slopes == nullptr) return;
        for (std::int64_t h = 0; h < problem_.heads_q; ++h) {
            const double exponent =
                problem_.alibi_slopes == AlibiSlopes::random
                    ? -8 * counter_uniform(seed_, stream_of(Role::alibi_slopes),
                                           static_cast<std::uint64_t>(h))
                    : slope_exponent(h, problem_.heads_q, problem_.alibi_slopes);
            slopes->set(h, std::exp2(exponent));
        }
    }

    /// Normal logits; on one seed in four large enough to take the whole row, or none of it.
    void sinks() {
        Tensor* sinks = place(Role::sinks);
        if (sinks == nullptr) return;
        const double size =
            counter_uniform(seed_, parameters, stream_of(Role::sinks)) < 0.25 ? 16 : 1;
        for (std::int64_t h = 0; h < problem_.heads_q; ++h)
            sinks->set(h, size * counter_normal(seed_, stream_of(Role::sinks), row_key(0, h, 0)));
    }

    /// As the case says, beside simple data the simplest; else, of 10 seeds 6 dense, one sparse,
    /// one a number alone, and 2 the gradient of a sum: one number everywhere.
    void output_gradient() {
        Tensor* d_o = place(Role::d_o);
        if (d_o == nullptr || d_o->size() == 0) return;
        const std::uint64_t stream = stream_of(Role::d_o);
        if (case_.values.tensors.contains(Role::d_o)) return tensor(Role::d_o);
        if (!case_.values.tensors.empty()) return d_o->put(0, 0, problem_.len_q - 1, 0, 1);
        const std::int64_t way = choice(stream, 10), alone = choice(stream + 0x200, d_o->size());
        elements(*d_o, [&](std::int64_t flat, std::uint64_t index) {
            const bool some = counter_bits(seed_, stream + 0x100, index) % 10 == 0;
            const bool kept = way < 6 || (way == 6 ? some : flat == alone);
            d_o->set(flat, way >= 8 ? 1 : kept ? gradient_of(stream, index) : 0);
        });
    }

    std::int64_t choice(std::uint64_t stream, std::int64_t of) const {
        return static_cast<std::int64_t>(counter_bits(seed_, parameters, stream) %
                                         static_cast<std::uint64_t>(of));
    }

    double gradient_of(std::uint64_t stream, std::uint64_t index) const {
        const double normal = counter_normal(seed_, stream, index);
        return case_.values.kind == ValueKind::small_int ? std::round(2 * normal) : normal;
    }

    /// So, too; else, of 10 seeds 6 dense, one zero, one a number alone, 2 a query alone.
    void lse_gradient() {
        Tensor* d_lse = place(Role::d_lse);
        if (d_lse == nullptr || d_lse->size() == 0) return;
        if (case_.values.tensors.contains(Role::d_lse)) return tensor(Role::d_lse);
        if (!case_.values.tensors.empty()) return d_lse->put(0, 0, problem_.len_q - 1, 0, 1);
        const std::uint64_t stream = stream_of(Role::d_lse);
        const std::int64_t way = choice(stream, 10), of = way == 7 ? d_lse->size() : problem_.len_q;
        const std::int64_t chosen = choice(stream + 0x100, of);
        elements(*d_lse, [&](std::int64_t flat, std::uint64_t index) {
            const bool kept = way < 6 || (way > 6 && flat % of == chosen);
            d_lse->set(flat, kept ? gradient_of(stream, index) : 0);
        });
    }

    const Case& case_;
    const Problem& problem_;
    const TensorSet& given_;
    Distribution drawn_;
    std::uint64_t seed_;
    TensorSet set_;
};

}  // namespace

TensorSet make_inputs(const Case& c) {
    return make_inputs(c, {});
}

TensorSet make_inputs(const Case& c, const TensorSet& given) {
    require_valid(c.problem);
    if (auto found = find_contradiction(c.problem, c.values)) {
        std::vector<Word> words = words_of(canonical(c.problem));
        for (Word& word : words_of(c.values)) words.push_back(std::move(word));
        refuse("case", words, *found);
    }
    return Inputs(c, given).make();
}

}  // namespace attest
