#include "kernels/worker/wire_problem.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <map>

#include "reference/problem/fields.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {
namespace {

static_assert(static_cast<int>(Precision::f64) == ATTEST_F64);
static_assert(static_cast<int>(Precision::f32) == ATTEST_F32);
static_assert(static_cast<int>(Precision::f16) == ATTEST_F16);
static_assert(static_cast<int>(Precision::bf16) == ATTEST_BF16);
static_assert(static_cast<int>(MaskKind::boolean) == ATTEST_MASK_BOOL);
static_assert(static_cast<int>(MaskKind::additive) == ATTEST_MASK_ADDITIVE);
static_assert(static_cast<int>(RopeStyle::interleaved) == ATTEST_ROPE_INTERLEAVED);
static_assert(static_cast<int>(RopeStyle::half) == ATTEST_ROPE_HALF);

struct DataType {
    std::uint8_t code, bits;
};

DataType data_type(ElementType type) noexcept {
    switch (type) {
        case ElementType::f64:
            return {ATTEST_DL_FLOAT, 64};
        case ElementType::f32:
            return {ATTEST_DL_FLOAT, 32};
        case ElementType::f16:
            return {ATTEST_DL_FLOAT, 16};
        case ElementType::bf16:
            return {ATTEST_DL_BFLOAT, 16};
        case ElementType::i32:
            return {ATTEST_DL_INT, 32};
        case ElementType::u8:
            return {ATTEST_DL_UINT, 8};
    }
    return {ATTEST_DL_UINT, 8};
}

/// What a kernel is told has no defaults: the scale and the rotated channels are numbers, dim_v is
/// never 0, and what is not there is 0.
Problem written_out(Problem p) {
    p.scale = effective_scale(p);
    p.dim_v = value_dim(p);
    if (p.rope.style == RopeStyle::none)
        p.rope = {.base = 0};
    else if (p.rope.dims == 0)
        p.rope.dims = p.dim_qk;
    if (!p.cache.present) p.cache = {};
    p.lse_grad = p.lse_grad && p.want_grad && p.want_lse;
    return p;
}

/// A field's value as a number of the ABI's type; 1 where a flag is set or a list has members.
template <typename Target>
struct Convert {
    Target operator()(const std::optional<double>& x) const {
        return static_cast<Target>(x.value_or(0));
    }
    Target operator()(const std::vector<std::int64_t>& x) const { return x.empty() ? 0 : 1; }
    Target operator()(Enumerator x) const { return x.index; }
    template <typename Number>
    Target operator()(Number x) const {
        return static_cast<Target>(x);
    }
};
template <typename Target>
Target number(const FieldValue& value) {
    return std::visit(Convert<Target>{}, value);
}

/// Puts one field into the ABI's struct.
struct Put {
    attest_problem& to;
    const FieldValue& value;
    void operator()(std::monostate) const {}
    void operator()(AbiPlace::Flag bit) const {
        if (number<int>(value) != 0) to.flags |= bit;
    }
    template <typename Member>
    void operator()(Member attest_problem::*member) const {
        to.*member = number<Member>(value);
    }
};

/// "softcap f64 112", the name, type and offset; of an enumeration also its words.
struct Describe {
    const Field& field;
    std::map<std::size_t, std::string>& lines;

    void operator()(std::monostate) const {}
    void operator()(AbiPlace::Flag) const {}
    void operator()(std::int64_t attest_problem::*member) const { line("i64", member); }
    void operator()(std::int32_t attest_problem::*member) const { line("i32", member); }
    void operator()(std::uint64_t attest_problem::*member) const { line("u64", member); }
    void operator()(double attest_problem::*member) const { line("f64", member); }

    template <typename Member>
    void line(std::string_view type, Member attest_problem::*member) const {
        static const attest_problem whole{};
        const auto offset =
            static_cast<std::size_t>(reinterpret_cast<const char*>(&(whole.*member)) -
                                     reinterpret_cast<const char*>(&whole));
        lines[offset] = fmt::format("{} {} {}", field.abi.name, type, offset);
        if (const FieldNames words = field.place.names(); !words.empty())
            lines[offset].append(" ").append(joined(words, ","));
    }
};

}  // namespace

attest_problem to_abi(const Problem& problem) {
    attest_problem abi;
    // The gaps too: answers of supports() are remembered by these bytes.
    std::memset(&abi, 0, sizeof abi);
    abi.struct_size = sizeof abi;
    const Problem p = written_out(problem);
    for (const Field& field : fields()) std::visit(Put{abi, field.place.get(p)}, field.abi.member);
    return abi;
}

std::string problem_layout() {
    std::map<std::size_t, std::string> lines;
    for (const Field& field : fields()) std::visit(Describe{field, lines}, field.abi.member);
    const auto add = [&](const char* name, const char* type, std::size_t offset) {
        lines[offset] = fmt::format("{} {} {}", name, type, offset);
    };
    add("struct_size", "u64", offsetof(attest_problem, struct_size));
    add("flags", "u32", offsetof(attest_problem, flags));
    add("call_number", "u32", offsetof(attest_problem, call_number));
    std::string text;
    for (const auto& [offset, line] : lines) text.append(line).append("\n");
    return text;
}

protocol::WireTensor to_wire(const TensorSlot& slot) noexcept {
    protocol::WireTensor t;
    t.role = slot.role;
    t.access = slot.access;
    t.data = slot.data;
    t.pages = slot.pages;
    t.pages_bytes = slot.pages_bytes;
    if (slot.is_workspace()) {
        t.code = ATTEST_DL_UINT;
        t.bits = 8;
        t.ndim = 1;
        t.shape = {static_cast<std::int64_t>(slot.span_bytes), 1, 1, 1};
        t.stride = {1, 1, 1, 1};
        return t;
    }
    const DataType type = data_type(slot.placement.type);
    t.code = type.code;
    t.bits = type.bits;
    t.ndim = static_cast<std::uint8_t>(slot.placement.ndim);
    t.shape = slot.placement.shape;
    t.stride = slot.placement.stride;
    return t;
}

}  // namespace attest::worker
