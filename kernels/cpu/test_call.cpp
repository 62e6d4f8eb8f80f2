#include "kernels/cpu/test_call.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

namespace attest::cpu {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

DLDataType type_of(std::int32_t format) {
    switch (format) {
        case ATTEST_F64:
            return {ATTEST_DL_FLOAT, 64, 1};
        case ATTEST_F32:
            return {ATTEST_DL_FLOAT, 32, 1};
        case ATTEST_F16:
            return {ATTEST_DL_FLOAT, 16, 1};
        default:
            return {ATTEST_DL_BFLOAT, 16, 1};
    }
}

/// A tensor with storage, laid out as asked; everything between its elements is NaN.
struct Laid {
    DLTensor tensor{};
    std::vector<std::int64_t> shape, strides;
    std::vector<std::byte> memory;
    Format format = Format::f32;

    Laid(std::vector<std::int64_t> shape_in, std::int32_t format_in, const Lay& lay)
        : shape(std::move(shape_in)),
          strides(shape.size()),
          format(static_cast<Format>(format_in)) {
        std::int64_t step = 1;
        for (std::size_t n = shape.size(); n-- > 0;) {
            const auto axis = shape.size() == 4 ? static_cast<std::size_t>(lay.order[n]) : n;
            strides[axis] = step;
            step *= shape[axis];
            if (n + 1 == shape.size()) step += lay.pad;
        }
        memory.resize(static_cast<std::size_t>((step + 1) * bytes_of(format)));
        for (std::int64_t e = 0; e <= step; ++e) {
            store_row(memory.data() + e * bytes_of(format), format, 1, 1, &not_a_number);
        }
        tensor.dtype = type_of(format_in);
        finish();
    }

    template <typename T>
    Laid(std::vector<std::int64_t> shape_in, DLDataType type, const std::vector<T>& values)
        : shape(std::move(shape_in)), strides(shape.size()) {
        std::int64_t step = 1;
        for (std::size_t n = shape.size(); n-- > 0;) {
            strides[n] = step;
            step *= shape[n];
        }
        memory.resize(values.size() * sizeof(T) + 1);
        if (!values.empty()) std::memcpy(memory.data(), values.data(), values.size() * sizeof(T));
        tensor.dtype = type;
        finish();
    }

    void finish() {
        tensor.data = memory.data();
        tensor.device = {ATTEST_DL_CPU, 0};
        tensor.ndim = static_cast<std::int32_t>(shape.size());
        tensor.shape = shape.data();
        tensor.strides = strides.data();
    }

    std::byte* at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
        const std::int64_t index[4] = {a, b, c, d};
        std::int64_t offset = 0;
        for (std::size_t n = 0; n < shape.size(); ++n) offset += index[n] * strides[n];
        return memory.data() + offset * bytes_of(format);
    }

    template <typename Visit>
    void each(Visit&& visit) {
        const std::int64_t last = shape.size() == 4 ? shape[3] : 1;
        std::size_t flat = 0;
        for (std::int64_t a = 0; a < shape[0]; ++a)
            for (std::int64_t b = 0; b < shape[1]; ++b)
                for (std::int64_t c = 0; c < shape[2]; ++c)
                    for (std::int64_t d = 0; d < last; ++d) visit(at(a, b, c, d), flat++);
    }

    void put(const std::vector<double>& values) {
        each([&](std::byte* to, std::size_t n) { store_row(to, format, 1, 1, &values[n]); });
    }

    std::vector<double> get() {
        std::vector<double> values;
        each([&](std::byte* from, std::size_t) {
            double value = 0;
            load_row(from, format, 1, 1, &value);
            values.push_back(value);
        });
        return values;
    }
};

std::int64_t own_length(const TestCase& t, std::int64_t b) {
    return t.lens_kv.empty() ? t.problem.len_kv : t.lens_kv[static_cast<std::size_t>(b)];
}

struct Paged {
    std::vector<std::int32_t> table;
    std::int64_t columns = 0, pages = 0;
};

/// Physical pages in a random order, with two that nobody names.
Paged make_pages(const TestCase& t) {
    const attest_problem& p = t.problem;
    Paged paged;
    paged.columns = (p.len_kv + p.page_size - 1) / p.page_size;
    paged.pages = p.batch * paged.columns + 2;
    std::vector<std::int32_t> physical(static_cast<std::size_t>(paged.pages));
    std::iota(physical.begin(), physical.end(), 0);
    std::mt19937_64 random(t.page_seed);
    std::shuffle(physical.begin(), physical.end(), random);
    std::size_t next = 0;
    for (std::int64_t b = 0; b < p.batch; ++b) {
        const std::int64_t used = (own_length(t, b) + p.page_size - 1) / p.page_size;
        for (std::int64_t c = 0; c < paged.columns; ++c) {
            paged.table.push_back(c < used ? physical[next++] : -1);
        }
    }
    return paged;
}

void put_paged(const TestCase& t, const Paged& paged, const std::vector<double>& values,
               std::int64_t dim, Laid& to) {
    const attest_problem& p = t.problem;
    for (std::int64_t b = 0; b < p.batch; ++b) {
        for (std::int64_t h = 0; h < p.heads_kv; ++h) {
            for (std::int64_t j = 0; j < own_length(t, b); ++j) {
                const std::int64_t page =
                    paged.table[static_cast<std::size_t>(b * paged.columns + j / p.page_size)];
                for (std::int64_t c = 0; c < dim; ++c) {
                    const auto flat = ((b * p.heads_kv + h) * p.len_kv + j) * dim + c;
                    store_row(to.at(page, h, j % p.page_size, c), to.format, 1, 1,
                              &values[static_cast<std::size_t>(flat)]);
                }
            }
        }
    }
}

/// Every key; of a ring the queries' own and those that the first one's window reaches.
std::int64_t slots_of(const attest_problem& p) {
    if ((p.flags & ATTEST_FLAG_RING) == 0 || p.window_left < 0) return p.len_kv;
    return std::min(p.len_kv, std::max<std::int64_t>(p.window_left + p.len_q, 1));
}

void put_held(const TestCase& t, const std::vector<double>& values, std::int64_t dim, Laid& to) {
    const attest_problem& p = t.problem;
    if ((p.flags & ATTEST_FLAG_RING) == 0) return to.put(values);
    const std::int64_t slots = slots_of(p);
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_kv; ++h)
            for (std::int64_t j = own_length(t, b) - 1; j >= own_length(t, b) - slots && j >= 0;
                 --j)
                for (std::int64_t c = 0; c < dim; ++c) {
                    const auto flat = ((b * p.heads_kv + h) * p.len_kv + j) * dim + c;
                    store_row(to.at(b, h, j % slots, c), to.format, 1, 1,
                              &values[static_cast<std::size_t>(flat)]);
                }
}

}  // namespace

bool TestAnswer::operator==(const TestAnswer& other) const {
    const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
        return a.size() == b.size() &&
               std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
                   return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) ||
                          (std::isnan(x) && std::isnan(y));
               });
    };
    return code == other.code && same(o, other.o) && same(lse, other.lse);
}

double rounded_to(double value, std::int32_t format) {
    return rounded(value, static_cast<Format>(format));
}

bool supported(const attest_kernel_api& api, const attest_problem& problem) {
    char reason[256] = {};
    return api.supports(nullptr, &problem, reason, sizeof reason) == 1;
}

TestAnswer run(const attest_kernel_api& api, const TestCase& t) {
    const attest_problem& p = t.problem;
    std::vector<std::unique_ptr<Laid>> laid;
    attest_call call{};
    call.struct_size = sizeof call;
    call.problem = &p;
    const auto give = [&](int role, auto&&... arguments) -> Laid& {
        laid.push_back(std::make_unique<Laid>(std::forward<decltype(arguments)>(arguments)...));
        call.tensor[role] = &laid.back()->tensor;
        return *laid.back();
    };
    using Shape = std::vector<std::int64_t>;
    const DLDataType i32{ATTEST_DL_INT, 32, 1};
    give(ATTEST_ROLE_Q, Shape{p.batch, p.heads_q, p.len_q, p.dim_qk}, p.format_q, t.lay_q).put(t.q);
    if (p.page_size == 0) {
        const Shape k{p.batch, p.heads_kv, slots_of(p), p.dim_qk};
        const Shape v{p.batch, p.heads_kv, slots_of(p), p.dim_v};
        put_held(t, t.k, p.dim_qk, give(ATTEST_ROLE_K, k, p.format_kv, t.lay_k));
        put_held(t, t.v, p.dim_v, give(ATTEST_ROLE_V, v, p.format_kv, t.lay_v));
    } else {
        const Paged paged = make_pages(t);
        const Shape k{paged.pages, p.heads_kv, p.page_size, p.dim_qk};
        const Shape v{paged.pages, p.heads_kv, p.page_size, p.dim_v};
        put_paged(t, paged, t.k, p.dim_qk, give(ATTEST_ROLE_K, k, p.format_kv, t.lay_k));
        put_paged(t, paged, t.v, p.dim_v, give(ATTEST_ROLE_V, v, p.format_kv, t.lay_v));
        give(ATTEST_ROLE_BLOCK_TABLE, Shape{p.batch, paged.columns}, i32, paged.table);
    }
    Laid& o = give(ATTEST_ROLE_O, Shape{p.batch, p.heads_q, p.len_q, p.dim_v}, p.format_o, t.lay_o);
    const std::vector<std::byte> before = o.memory;
    Laid* lse = nullptr;
    if (p.want_lse != 0) {
        const std::int32_t format = p.format_q == ATTEST_F64 ? ATTEST_F64 : ATTEST_F32;
        lse = &give(ATTEST_ROLE_LSE, Shape{p.batch, p.heads_q, p.len_q}, format, Lay{});
    }
    const Shape mask{t.mask_shape, t.mask_shape + 4};
    if (p.mask_kind == ATTEST_MASK_BOOL) {
        const std::vector<std::uint8_t> bytes(t.mask.begin(), t.mask.end());
        give(ATTEST_ROLE_MASK, mask, DLDataType{ATTEST_DL_UINT, 8, 1}, bytes);
    } else if (p.mask_kind == ATTEST_MASK_ADDITIVE) {
        give(ATTEST_ROLE_MASK, mask, p.format_q, Lay{}).put(t.mask);
    }
    const auto list = [&](int role, const std::vector<std::int32_t>& values) {
        if (values.empty()) return;
        give(role, Shape{static_cast<std::int64_t>(values.size())}, i32, values);
    };
    list(ATTEST_ROLE_LENS_Q, t.lens_q);
    list(ATTEST_ROLE_LENS_KV, t.lens_kv);
    list(ATTEST_ROLE_CU_SEQLENS_Q, t.cu_q);
    list(ATTEST_ROLE_CU_SEQLENS_KV, t.cu_kv);
    const auto reals = [&](int role, const std::vector<double>& values) {
        const std::vector<float> floats(values.begin(), values.end());
        give(role, Shape{p.heads_q}, DLDataType{ATTEST_DL_FLOAT, 32, 1}, floats);
    };
    if (p.alibi != 0) reals(ATTEST_ROLE_ALIBI_SLOPES, t.slopes);
    if (p.sink != 0) reals(ATTEST_ROLE_SINKS, t.sinks);

    const std::size_t wanted = api.workspace(nullptr, &p);
    std::vector<unsigned char> workspace(wanted, t.workspace_fill);
    call.workspace = workspace.data();
    call.workspace_bytes = wanted;
    TestAnswer answer;
    char error[256] = {};
    answer.code = api.forward(nullptr, &call, error, sizeof error);
    answer.error = error;
    answer.o = o.get();
    if (lse != nullptr) answer.lse = lse->get();
    std::vector<std::byte> gaps = o.memory;  // with the elements themselves put back
    o.each([&](std::byte* element, std::size_t) {
        const auto offset = element - o.memory.data();
        std::copy_n(before.begin() + offset, bytes_of(o.format), gaps.begin() + offset);
    });
    answer.gaps_intact = gaps == before;
    return answer;
}

std::string complaint(const TestAnswer& answer, const Wanted& wanted) {
    if (answer.code != 0) return "error: " + answer.error;
    if (!answer.gaps_intact) return "wrote between the rows of o";
    const auto check = [](const char* name, const std::vector<double>& seen,
                          const std::vector<Want>& expected) -> std::string {
        if (seen.size() != expected.size()) return std::string(name) + ": another size";
        for (std::size_t n = 0; n < seen.size(); ++n) {
            const Want& w = expected[n];
            const bool same = seen[n] == w.value || (std::isnan(seen[n]) && std::isnan(w.value));
            if (same || std::abs(seen[n] - w.value) <= w.bound) continue;
            return std::string(name) + "[" + std::to_string(n) + "]: expected " +
                   std::to_string(w.value) + ", observed " + std::to_string(seen[n]) + ", bound " +
                   std::to_string(w.bound);
        }
        return {};
    };
    const std::string o = check("o", answer.o, wanted.o);
    if (!o.empty() || answer.lse.empty()) return o;
    return check("lse", answer.lse, wanted.lse);
}

}  // namespace attest::cpu
