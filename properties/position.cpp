// Position: rotary embeddings turn queries and keys by their places and change no norm; ALiBi adds
// a slope times the distance.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "properties/law/alibi.hpp"
#include "properties/law/case_sets.hpp"
#include "properties/law/other_answer.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// Distances of a few places up to those where the angles of a long context lie.
Plan check_rope_relative(const Given& given) {
    constexpr std::int64_t shifts[] = {1, 7, 64, 1000, 4096};
    Problem shifted = given.problem();
    shifted.rope.offset += shifts[given.random_below(stream_of("position.rope_relative"), 0, 5)];
    if (!given.supports(shifted))
        return not_applicable("the kernel takes no other offset of the rotary positions");
    return [shifted](const Trial& trial) -> Judgement {
        const Run first(trial), second(trial, shifted, trial.inputs());
        Relation relation;
        relation.rows = defined_rows(first);
        relation.sentence = [&](const RowMatch& match) {
            return fmt::format("{} changes when every position moves by {}",
                               name_of(shifted, match.first),
                               shifted.rope.offset - first.problem().rope.offset);
        };
        return compare_runs(first, second, relation);
    };
}

/// Tokens of the case as sequences of one token each: query and key stand at the same place, so the
/// one score is scale q.k with the embedding and without it.
Plan check_rope_norm(const Given& given) {
    constexpr std::int64_t tokens_max = 8;
    const Problem& base = given.problem();
    const std::int64_t tokens = std::min({base.len_q, base.len_kv, tokens_max});
    Problem turned = base;
    turned.batch = tokens;
    turned.len_q = turned.len_kv = 1;
    turned.mask = {};
    turned.cache = {};
    turned.sink = turned.alibi = false;
    turned.splits = 0;
    turned.rope.offset =
        base.rope.offset + given.random_below(stream_of("position.rope_norm"), 0, 1000);
    Problem straight = turned;
    straight.rope = {};
    if (!given.supports(turned) || !given.supports(straight))
        return not_applicable("the kernel takes no single token, or none without the embedding");
    TensorSet inputs = blank_inputs(turned);
    for (const Role role : {Role::q, Role::k, Role::v}) {
        const Tensor& source = given.inputs()[role];
        inputs[role] = tensor_of(turned, role, [&](std::int64_t t, auto h, auto, auto c) {
            const double x = source.at(0, h, t, c);
            return std::isfinite(x) ? x : 0;  // a slot of a cache that holds no key
        });
    }
    return [straight, turned, inputs](const Trial& trial) -> Judgement {
        const Run first(trial, straight, inputs), second(trial, turned, inputs);
        Relation relation;
        relation.rows = defined_rows(first);
        relation.sentence = [&](const RowMatch& match) {
            return fmt::format(
                "turning query and key of one token by the same angles changes their score (token "
                "{})",
                match.first.batch);
        };
        return compare_runs(first, second, relation);
    };
}

struct OtherRope {
    std::string name;
    Rope rope;
};

std::vector<OtherRope> other_ropes(const Problem& problem) {
    const Rope& rope = problem.rope;
    const bool interleaved = rope.style == RopeStyle::interleaved;
    const std::int64_t dims = rope.dims == 0 ? problem.dim_qk : rope.dims;
    std::vector<OtherRope> others;
    const auto offer = [&](std::string name, auto change) {
        Rope other = rope;
        change(other);
        others.push_back({std::move(name), other});
    };
    offer(interleaved ? "paired in halves" : "paired in neighbours",
          [&](Rope& r) { r.style = interleaved ? RopeStyle::half : RopeStyle::interleaved; });
    if (dims < problem.dim_qk && problem.dim_qk % 2 == 0)
        offer("turning every channel", [](Rope& r) { r.dims = 0; });
    if (dims + 2 < problem.dim_qk)
        offer("turning one pair too many", [&](Rope& r) { r.dims = dims + 2; });
    if (dims > 2) offer("turning one pair too few", [&](Rope& r) { r.dims = dims - 2; });
    if (rope.base != 10000)
        offer("of the default base", [](Rope& r) { r.base = 10000; });
    else
        offer("of another base", [](Rope& r) { r.base = 500000; });
    return others;
}

Judgement check_rope_style(const Trial& trial) {
    const Run call(trial);
    const Problem& problem = call.problem();
    std::int64_t compared = 0;
    for (const OtherRope& other : other_ropes(problem)) {
        Problem p = problem;
        p.rope = other.rope;
        OtherAnswer answer = same_shape(call, trial.expected(p, call.inputs()));
        answer.sentence = [&](const Row& row) {
            return name_of(problem, row) + " is rotated by an embedding " + other.name;
        };
        Judgement verdict = not_the_other(call, answer);
        if (verdict.violated()) return verdict;
        compared += verdict.elements;
    }
    return nothing_compared(compared, 0, "other embeddings give the same answers here");
}

constexpr const char* roformer = "Su et al. 2021, RoFormer, eq. 16 and section 3.2";

bool two_keys(const Problem& p) {
    return p.len_kv >= 2;
}
bool styles_differ(const Problem& p) {
    return p.len_kv >= 2 && p.dim_qk >= 4;
}
bool some_token(const Problem& p) {
    return p.len_q >= 1 && p.len_kv >= 1 && p.batch >= 1;
}

void base_depends_on_the_offset(Question& q) {
    q.problem.rope.base += static_cast<double>(q.problem.rope.offset);
}

Property rope_relative() {
    return {
        .id = "position.rope_relative",
        .statement = "Moving every rotary position by the same offset changes nothing.",
        .statement_short = "scores depend on i - j alone under RoPE",
        .why =
            "R(a)^T R(b) = R(b - a) for rotations of each channel pair, so (R(i) q).(R(j) k) = "
            "q.R(j - i) k: a common offset cancels. Angles are rounded at both offsets, so the two "
            "runs agree within the sum of their bounds, which grow with the position.",
        .source = roformer,
        .compares = Compares::bound,
        .cases = {.allow = attention.without(Feature::keys_rotated),
                  .require = FeatureSet(Feature::rope),
                  .cost = 4,
                  .admits = two_keys},
        .check = check_rope_relative,
        .turned_red_by = {{.id = "base_depends_on_the_offset", .asks = base_depends_on_the_offset}},
    };
}

void rotation_shrinks_the_query(Question& q) {
    if (q.problem.rope.style == RopeStyle::none) return;
    Tensor& queries = q.inputs[Role::q];
    for (std::int64_t at = 0; at < queries.size(); ++at) queries.set(at, queries.get(at) / 2);
}

Property rope_norm() {
    Property law{
        .id = "position.rope_norm",
        .statement = "Turning a query and a key at the same position leaves their score as it is.",
        .statement_short = "rotation keeps q.k of a token with itself",
        .why =
            "R(t) is orthogonal: (R q).(R k) = q.k, and with q = k the norm. Over a single key L = "
            "scale q.k, so the log-sum-exp with the embedding is that without it, within the sum "
            "of the bounds.",
        .source = roformer,
        .compares = Compares::bound,
        .cases = {.allow = attention,
                  .require = FeatureSet(Feature::rope),
                  .cost = 16,
                  .len_max = 64,
                  .limited_because = "it makes a sequence of one token of each of eight",
                  .admits = some_token},
        .check = check_rope_norm,
        .turned_red_by = {{.id = "rotation_shrinks_the_query", .asks = rotation_shrinks_the_query}},
    };
    law.needs.lse = true;
    return law;
}

void other_pairing(Question& q) {
    RopeStyle& style = q.problem.rope.style;
    if (style == RopeStyle::none) return;
    style = style == RopeStyle::half ? RopeStyle::interleaved : RopeStyle::half;
}

Property rope_style() {
    return {
        .id = "position.rope_style",
        .statement =
            "Channels are paired, bounded and turned as the problem says: neighbours or halves, "
            "the rotary channels alone, by the given base.",
        .statement_short = "interleaved or half, rotary channels, base: as asked",
        .why =
            "Other pairings, numbers of rotary channels and bases obey the relative law as well, "
            "so only their answers tell them apart. Where the reference of such another embedding "
            "is apart from the asked one's, no row of the output may lie in its intervals.",
        .source = "GPT-J (interleaved), GPT-NeoX (halves, partial rotary)",
        .compares = Compares::property,
        .cases = {.allow = attention,
                  .require = FeatureSet(Feature::rope),
                  .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int,
                            ValueKind::logit50},
                  .cost = 16,
                  .admits = styles_differ},
        .check = always<check_rope_style>,
        .turned_red_by = {{.id = "other_pairing", .asks = other_pairing}},
    };
}

void slopes_with_the_wrong_sign(Question& q) {
    if (!q.problem.alibi) return;
    Tensor& slopes = q.inputs[Role::alibi_slopes];
    for (std::int64_t h = 0; h < slopes.size(); ++h) slopes.set(h, -slopes.get(h));
}

Property alibi() {
    return {
        .id = "position.alibi",
        .statement =
            "ALiBi is the bias -slope |i - j|, written out or built in: near keys weigh more than "
            "far ones.",
        .statement_short = "ALiBi = an explicit bias -m |i - j|",
        .why =
            "With slopes that are powers of two, slope * |i - j| is exact in every format for "
            "distances up to 256, so built-in term and additive mask are the same real numbers, "
            "and rows with a distance that is not are left out; the runs agree within the sum of "
            "their bounds. With Q = 0, P_ij falls with the "
            "distance: where the references of two weights are apart, so must the weights be.",
        .source = "Press, Smith, Lewis 2021, Train short, test long",
        .compares = Compares::bound,
        .cases = {.allow = attention.without(Feature::mask_bool)
                               .without(Feature::mask_additive)
                               .without(Feature::softcap),
                  .require = FeatureSet(Feature::alibi),
                  .cost = 4,
                  .admits = two_keys},
        .check = always<alibi_is_its_bias>,
        .turned_red_by = {{.id = "slopes_with_the_wrong_sign", .asks = slopes_with_the_wrong_sign}},
    };
}

}  // namespace

std::vector<Property> position() {
    return {rope_norm(), rope_relative(), rope_style(), alibi()};
}

}  // namespace attest::law
