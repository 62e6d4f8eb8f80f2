// Deviations of the sums of dQ, dK and dV: heads of a group, what is dropped or added twice.

#include <fmt/format.h>

#include <bit>
#include <cstdint>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

BackwardDeviation joining(std::string id, std::string says,
                          std::function<bool(std::int64_t member, std::int64_t group)> joins) {
    return exchanged_step(std::move(id), std::move(says),
                          [joins = std::move(joins)](const BackwardCall&, ModelSteps& s) {
                              s.into_keys = [joins](const BackwardCall& call, std::int64_t h) {
                                  return joins(h % call.call.group, call.call.group);
                              };
                          });
}

/// A head that another call has and this one has not: nothing is said of this one.
bool has_heads(const BackwardCall& call, const ModelSteps::HeadOf& of, std::int64_t heads) {
    for (std::int64_t h = 0; h < call.problem().heads_q; ++h)
        if (of(call, h) < 0 || of(call, h) >= heads) return false;
    return true;
}

using HeadStep = ModelSteps::HeadOf ModelSteps::*;

BackwardDeviation head(std::string id, std::string says, std::vector<HeadStep> steps,
                       ModelSteps::HeadOf of) {
    return exchanged_step(
        std::move(id), std::move(says),
        [steps = std::move(steps), of = std::move(of)](const BackwardCall& call, ModelSteps& s) {
            if (!has_heads(call, of, call.problem().heads_kv)) return;
            for (const HeadStep step : steps) s.*step = of;
        });
}

void add_heads(std::vector<BackwardDeviation>& list) {
    list.push_back(joining("group_last", "dK and dV of the last query head of a group alone",
                           [](std::int64_t at, std::int64_t group) { return at == group - 1; }));
    list.push_back(joining("group_first", "dK and dV of the first query head of a group alone",
                           [](std::int64_t at, std::int64_t) { return at == 0; }));
    list.push_back(
        joining("group_without_last", "dK and dV without the last query head of a group",
                [](std::int64_t at, std::int64_t group) { return group == 1 || at != group - 1; }));
    list.push_back(
        joining("group_without_first", "dK and dV without the first query head of a group",
                [](std::int64_t at, std::int64_t group) { return group == 1 || at != 0; }));
    list.push_back(joining(
        "group_power_of_two",
        "dK and dV of as many query heads of a group as the largest power of two in it",
        [](std::int64_t at, std::int64_t group) {
            return at <
                   static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(group)));
        }));
    list.push_back(joining("group_halved",
                           "dK and dV of a group's heads added up in halves, without the odd one",
                           [](std::int64_t at, std::int64_t group) {
                               for (; group > 1; group /= 2) {
                                   if (at >= group / 2 * 2) return false;
                                   at %= group / 2;
                               }
                               return true;
                           }));
    for (const std::int64_t most : {16, 8, 4, 2})
        list.push_back(joining(
            "group_of_" + std::to_string(most),
            "dK and dV of the first " + std::to_string(most) + " query heads of a group alone",
            [most](std::int64_t at, std::int64_t) { return at < most; }));
    list.push_back(exchanged_step(
        "sequences_first", "dK and dV of every sequence added to those of the first",
        [](const BackwardCall&, ModelSteps& s) {
            s.key_sequence = [](const BackwardCall&, std::int64_t) { return std::int64_t{0}; };
        }));
    list.push_back(
        exchanged_step("group_mean", "the mean over a group's heads where their sum is meant",
                       [](const BackwardCall&, ModelSteps& s) { s.groups = Joining::mean; }));
    struct KeyHead {
        const char *id, *says;
        std::int64_t (*of)(const BackwardCall&, std::int64_t h);
    };
    for (const KeyHead k :
         {KeyHead{
              "modulo", "key head h mod Hkv",
              [](const BackwardCall&call, std::int64_t h) { return h % call.problem().heads_kv; }},
          KeyHead{"first", "key head 0",
                  [](const BackwardCall&, std::int64_t) { return std::int64_t{0}; }},
          KeyHead{"next", "the next key head", [](const BackwardCall&call, std::int64_t h) {
                      return (h / call.call.group + 1) % call.problem().heads_kv;
                  }}}) {
        const std::string id = k.id, says = k.says;
        list.push_back(head("key_head_" + id, "dK and dV of every head added to " + says,
                            {&ModelSteps::key_head}, k.of));
        list.push_back(head("heads_" + id, "in backward " + says + " for every query head",
                            {&ModelSteps::read_head, &ModelSteps::key_head}, k.of));
        list.back().in_forward = "heads_" + id;
        list.push_back(head("read_head_" + id, "in backward K and V of " + says,
                            {&ModelSteps::read_head}, k.of));
        list.push_back(
            head("value_head_" + id, "dP with V of " + says, {&ModelSteps::value_head}, k.of));
        list.push_back(head("product_head_" + id, "dQ of dS and the keys of " + says,
                            {&ModelSteps::product_head}, k.of));
    }
}

/// A row or column of pairs, by its number in its sequence or document and how many there are.
using Which = std::function<bool(std::int64_t at, std::int64_t length)>;

bool is_key_of(const Which& which, const ModelRow& row, std::int64_t j) {
    const KeyExtent own = segment_of(row.call.problem(), row.b, row.i).keys;
    return which(j - own.begin, own.end - own.begin);
}

bool is_query_of(const Which& which, const ModelRow& row, std::int64_t) {
    const KeyExtent own = segment_of(row.call.problem(), row.b, row.i).queries;
    return which(row.i - own.begin, own.end - own.begin);
}

struct PairAxis {
    std::string name;
    bool (*is)(const Which&, const ModelRow&, std::int64_t j);
};
const PairAxis pair_axes[] = {{"keys", is_key_of}, {"queries", is_query_of}};

void add_dropped(std::vector<BackwardDeviation>& list, const std::string& id,
                 const std::string& words, const Which& lost) {
    for (const PairAxis& axis : pair_axes)
        list.push_back(
            exchanged_step(axis.name + "_" + id, "gradients without " + words + " " + axis.name,
                           [=](const BackwardCall&, ModelSteps& s) {
                               s.sees = [=](const ModelRow& row, std::int64_t j, bool is) {
                                   return is && !axis.is(lost, row, j);
                               };
                           }));
}

void add_twice(std::vector<BackwardDeviation>& list, const std::string& id,
               const std::string& words, const Which& twice) {
    for (const PairAxis& axis : pair_axes)
        list.push_back(exchanged_step(axis.name + "_twice_" + id,
                                      words + " " + axis.name + " added twice",
                                      [=](const BackwardCall&, ModelSteps& s) {
                                          s.times = [=](const ModelRow& row, std::int64_t j) {
                                              return axis.is(twice, row, j) ? 2 : 1;
                                          };
                                      }));
}

/// At the edges of tiles: what falls between two of them, and what both of them have.
void add_edges(std::vector<BackwardDeviation>& list, std::int64_t tile) {
    struct Edge {
        std::string id, words;
        Which is;
    };
    const std::string n = std::to_string(tile);
    for (const Edge& edge :
         {Edge{"ends_" + n, "the last of each " + n,
               [tile](std::int64_t at, std::int64_t) { return at % tile == tile - 1; }},
          Edge{"begins_" + n, "the first of each " + n,
               [tile](std::int64_t at, std::int64_t) { return at % tile == 0; }},
          Edge{"next_tiles_" + n, "the first of each " + n + " but the first tile's",
               [tile](std::int64_t at, std::int64_t) { return at > 0 && at % tile == 0; }}}) {
        add_dropped(list, edge.id, edge.words, edge.is);
        add_twice(list, edge.id, edge.words, edge.is);
    }
}

/// Each tile's sum written over that of the one before: the last one that a query sees any key of
/// is left, or a key any query.
void add_overwritten(std::vector<BackwardDeviation>& list, std::int64_t tile) {
    const auto seen = [](const ModelRow& row, std::int64_t i, std::int64_t j) {
        return row.call.row(row.b, row.h, i).is_query && row.call.score(row.b, row.h, i, j).visible;
    };
    const auto lost_key = [=](const ModelRow& row, std::int64_t j) {
        for (std::int64_t k = (j / tile + 1) * tile; k < row.call.problem().len_kv; ++k)
            if (seen(row, row.i, k)) return true;
        return false;
    };
    const auto lost_query = [=](const ModelRow& row, std::int64_t j) {
        for (std::int64_t i = (row.i / tile + 1) * tile; i < row.call.problem().len_q; ++i)
            if (seen(row, i, j)) return true;
        return false;
    };
    const auto add = [&list, tile](const char* axis, auto lost) {
        list.push_back(exchanged_step(
            fmt::format("{}_overwritten_{}", axis, tile),
            fmt::format("of each sum over {} the part of its last tile of {} alone", axis, tile),
            [lost](const BackwardCall&, ModelSteps& s) {
                s.sees = [lost](const ModelRow& row, std::int64_t j, bool is) {
                    return is && !lost(row, j);
                };
            }));
    };
    add("keys", lost_key);
    add("queries", lost_query);
}

}  // namespace

std::vector<BackwardDeviation> sum_deviations() {
    std::vector<BackwardDeviation> list;
    add_heads(list);
    const auto last = [](std::int64_t at, std::int64_t n) { return at == n - 1; };
    const auto first = [](std::int64_t at, std::int64_t) { return at == 0; };
    add_dropped(list, "last_one", "the last of its", last);
    add_twice(list, "last_one", "the last of its", last);
    add_dropped(list, "first_one", "the first of its", first);
    add_twice(list, "first_one", "the first of its", first);
    for (const std::int64_t tile : {2, 4, 8, 16, 24, 32, 48, 64, 128}) {
        const std::string n = std::to_string(tile);
        add_dropped(list, "past_tiles_" + n, "the last n mod " + n,
                    [tile](std::int64_t at, std::int64_t of) { return at >= of / tile * tile; });
        add_dropped(list, "past_whole_tiles_" + n,
                    "the last n mod " + n + ", where there are more,",
                    [tile](std::int64_t at, std::int64_t of) {
                        return of > tile && at >= of / tile * tile;
                    });
        add_dropped(list, "halved_" + n,
                    "what halving an odd number of tiles of " + n + " leaves over of its",
                    [tile](std::int64_t at, std::int64_t of) {
                        std::int64_t t = at / tile;
                        for (std::int64_t tiles = (of + tile - 1) / tile; tiles > 1; tiles /= 2) {
                            if (tiles % 2 == 1 && t == tiles - 1) return true;
                            t %= tiles / 2;
                        }
                        return false;
                    });
        add_dropped(list, "lone_" + n, "the one left over by tiles of " + n + " of its",
                    [tile](std::int64_t at, std::int64_t of) {
                        return of > tile && of % tile == 1 && at == of - 1;
                    });
        add_dropped(
            list, "last_tile_" + n, "the last tile of " + n,
            [tile](std::int64_t at, std::int64_t of) { return at / tile == (of - 1) / tile; });
        add_dropped(
            list, "but_last_tile_" + n, "all but the last tile of " + n,
            [tile](std::int64_t at, std::int64_t of) { return at / tile != (of - 1) / tile; });
        add_dropped(list, "from_" + n, "all past the first " + n,
                    [tile](std::int64_t at, std::int64_t) { return at >= tile; });
        add_overwritten(list, tile);
        add_edges(list, tile);
    }
    return list;
}

}  // namespace attest::diagnosis
