// What depends on the calls before. C04: the first answer to a shape is the answer to every later
// call of that shape. The correct kernel computes it, once.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/mutants/planted.hpp"

namespace attest::museum {
namespace {

struct RememberedAnswer {
    std::vector<float> output, lse;  // [batch, heads_q, len_q, dim_v], [batch, heads_q, len_q]
};

template <typename Row>
void each_row(const attest_problem& p, Row&& row) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
        for (std::int64_t h = 0; h < p.heads_q; ++h) {
            for (std::int64_t i = 0; i < p.len_q; ++i) row(b, h, i);
        }
    }
}

RememberedAnswer remember(const cpu::Call& call) {
    const attest_problem& p = call.problem;
    const std::int64_t rows = p.batch * p.heads_q * p.len_q;
    RememberedAnswer answer;
    answer.output.resize(static_cast<std::size_t>(rows * p.dim_v));
    answer.lse.resize(static_cast<std::size_t>(rows));
    float* output = answer.output.data();
    float* lse = answer.lse.data();
    each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
        cpu::load_row(call.o.at(b, h, i), call.o.format, call.o.stride[3], p.dim_v, output);
        output += p.dim_v;
        if (call.lse) cpu::load_row(call.lse.at(b, h, i), call.lse.format, 1, 1, lse);
        ++lse;
    });
    return answer;
}

int answer(void* state, const attest_call* from, char* error, std::size_t cap) {
    using Key = std::array<std::int64_t, 11>;
    static std::map<Key, RememberedAnswer> answers;
    const attest_problem& p = *from->problem;
    const Key key{p.batch, p.heads_q,  p.heads_kv,  p.len_q,    p.len_kv,  p.dim_qk,
                  p.dim_v, p.format_q, p.format_kv, p.format_o, p.want_lse};
    cpu::Call call;
    if (!read_call(from, call, error, cap)) return 1;
    const auto known = answers.find(key);
    if (known == answers.end()) {
        const int failed = correct_kernel("cpu_flash_plain").forward(state, from, error, cap);
        if (failed == 0) {
            if (answers.size() > 256) answers.clear();  // a cheat need not remember for ever
            answers.emplace(key, remember(call));
        }
        return failed;
    }
    const float* output = known->second.output.data();
    const float* lse = known->second.lse.data();
    each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
        cpu::write_row(call, b, h, i, output, *lse);
        output += p.dim_v;
        ++lse;
    });
    return 0;
}

int right_at_first(void* state, const attest_call* from, char* error, std::size_t cap) {
    constexpr int calls_right = 25000;
    static int calls = 0;
    attest_problem problem = *from->problem;
    if (++calls > calls_right) problem.scale *= 2;
    attest_call call = *from;
    call.problem = &problem;
    return correct_kernel("cpu_flash_plain").forward(state, &call, error, cap);
}

}  // namespace

std::vector<PlantedBug> answer_by_shape() {
    return {{{.id = "C13",
              .bug_class = "C3",
              .operation = "flash forward",
              .change = "the scale is doubled once a counter of calls, never cleared, is full",
              .trigger = "25001 calls of one process",
              .must = {"hygiene.many_calls"}},
             WholeForward{right_at_first}},
            {{.id = "C04",
              .bug_class = "C5",
              .operation = "flash forward",
              .change = "answers a problem of a shape seen before with the earlier answer",
              .trigger = "a second call",
              .must = {"hygiene.stale_state"}},
             WholeForward{answer}}};
}

}  // namespace attest::museum
