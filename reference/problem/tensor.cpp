#include "reference/problem/tensor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
        require(extent >= 0, "a tensor's extents are not negative");
        require(extent == 0 || count <= std::numeric_limits<std::int64_t>::max() / 8 / extent,
                "a tensor's size in bytes fits 64 bits");
        count *= extent;
    }
    return count;
}

bool is_real(ElementType type) noexcept {
    return type <= ElementType::bf16;
}

/// size_of, where a call an element would cost more than the element.
constexpr std::size_t width_of(ElementType type) noexcept {
    return type == ElementType::f64                               ? 8
           : type == ElementType::f32 || type == ElementType::i32 ? 4
           : type == ElementType::u8                              ? 1
                                                                  : 2;
}

template <typename T>
T load(const std::byte* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// One element widened; integers of the ABI are exact in double.
double widened(const std::byte* from, ElementType type) noexcept {
    switch (type) {
        case ElementType::f64:
            return load<double>(from);
        case ElementType::f32:
            return static_cast<double>(load<float>(from));
        case ElementType::f16:
            return decode(load<std::uint16_t>(from), Precision::f16);
        case ElementType::bf16:
            return decode(load<std::uint16_t>(from), Precision::bf16);
        case ElementType::i32:
            return static_cast<double>(load<std::int32_t>(from));
        case ElementType::u8:
            return static_cast<double>(load<std::uint8_t>(from));
    }
    return 0.0;
}

/// f16 without a branch an element: a normal number moves its fields, a subnormal one is an integer
/// times 2^-24, and both are selected from.
double widen_f16(std::uint16_t bits) noexcept {
    const std::uint64_t magnitude = bits & 0x7fffu;
    const std::uint64_t sign = static_cast<std::uint64_t>(bits >> 15) << 63;
    const std::uint64_t rebias = magnitude >= 0x7c00u ? 2 * 1008 : 1008;
    const std::uint64_t normal = (magnitude << 42) + (rebias << 52);
    const double small = static_cast<double>(static_cast<std::int32_t>(magnitude)) * 0x1p-24;
    const std::uint64_t chosen = magnitude < 0x0400u ? std::bit_cast<std::uint64_t>(small) : normal;
    return std::bit_cast<double>(chosen | sign);
}

double widen_bf16(std::uint16_t bits) noexcept {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

template <typename T, typename F>
void widen_all(const std::byte* from, std::span<double> out, F widen_one) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = widen_one(load<T>(from + i * sizeof(T)));
}

}  // namespace

// Of bytes std::vector's own comparison takes one at a time.
bool Tensor::operator==(const Tensor& other) const noexcept {
    return type_ == other.type_ && shape_ == other.shape_ &&
           storage_.size() == other.storage_.size() &&
           (storage_.empty() ||
            std::memcmp(storage_.data(), other.storage_.data(), storage_.size()) == 0);
}

std::string_view name(Role role) noexcept {
    return attest_role_name(static_cast<int>(role));
}

Tensor::Tensor(ElementType type, Shape shape)
    : type_(type),
      shape_(shape),
      size_(element_count(shape)),
      storage_(static_cast<std::size_t>(size_) * size_of(type)) {}

double Tensor::get(std::int64_t flat) const {
    return widened(storage_.data() + static_cast<std::size_t>(flat) * width_of(type_), type_);
}

void Tensor::set(std::int64_t flat, double value) {
    // What encode() says of a number, the machine says faster.
    if (type_ == ElementType::f64) return set_bits(flat, std::bit_cast<std::uint64_t>(value));
    if (type_ == ElementType::f32 && !std::isnan(value))
        return set_bits(flat, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    if (is_real(type_)) return set_bits(flat, encode(value, static_cast<Precision>(type_)));
    const bool byte = type_ == ElementType::u8;
    const double low = byte ? 0.0 : -0x1p31, high = byte ? 255.0 : 0x1p31 - 1;
    const double whole = std::nearbyint(value);
    require(whole >= low && whole <= high, "an integer tensor's element fits its type");
    set_bits(flat, static_cast<std::uint64_t>(static_cast<std::int64_t>(whole)));
}

// Little-endian hosts only, as everything of the ABI: the low bytes of the bits come first.
static_assert(std::endian::native == std::endian::little);

std::uint64_t Tensor::bits(std::int64_t flat) const {
    const std::size_t width = width_of(type_);
    const std::byte* from = storage_.data() + static_cast<std::size_t>(flat) * width;
    switch (width) {
        case 8:
            return load<std::uint64_t>(from);
        case 4:
            return load<std::uint32_t>(from);
        case 2:
            return load<std::uint16_t>(from);
        default:
            return load<std::uint8_t>(from);
    }
}

void Tensor::set_bits(std::int64_t flat, std::uint64_t bits) {
    const std::size_t width = width_of(type_);
    std::byte* to = storage_.data() + static_cast<std::size_t>(flat) * width;
    // Of a width that the compiler knows: a store, and no call.
    switch (width) {
        case 8:
            std::memcpy(to, &bits, 8);
            break;
        case 4:
            std::memcpy(to, &bits, 4);
            break;
        case 2:
            std::memcpy(to, &bits, 2);
            break;
        default:
            std::memcpy(to, &bits, 1);
    }
}

void Tensor::widen(std::int64_t first, std::span<double> out) const {
    const std::byte* from = storage_.data() + static_cast<std::size_t>(first) * size_of(type_);
    switch (type_) {
        case ElementType::f64:
            return widen_all<double>(from, out, [](double x) { return x; });
        case ElementType::f32:
            return widen_all<float>(from, out, [](float x) { return static_cast<double>(x); });
        case ElementType::f16:
            return widen_all<std::uint16_t>(from, out, widen_f16);
        case ElementType::bf16:
            return widen_all<std::uint16_t>(from, out, widen_bf16);
        case ElementType::i32:
            return widen_all<std::int32_t>(from, out,
                                           [](auto x) { return static_cast<double>(x); });
        case ElementType::u8:
            return widen_all<std::uint8_t>(from, out,
                                           [](auto x) { return static_cast<double>(x); });
    }
}

void Tensor::narrow(std::int64_t first, std::span<const double> values) {
    std::byte* to = storage_.data() + static_cast<std::size_t>(first) * width_of(type_);
    if (type_ == ElementType::f64) {
        std::memcpy(to, values.data(), values.size_bytes());
    } else if (type_ == ElementType::f16 || type_ == ElementType::bf16) {
        std::array<std::uint16_t, 256> part;
        for (std::size_t at = 0; at < values.size(); at += part.size()) {
            const auto some = values.subspan(at, std::min(part.size(), values.size() - at));
            encode(some, precision_of(type_), std::span(part).first(some.size()));
            std::memcpy(to + at * sizeof(std::uint16_t), part.data(),
                        some.size() * sizeof(std::uint16_t));
        }
    } else {
        for (std::size_t i = 0; i < values.size(); ++i)
            set(first + static_cast<std::int64_t>(i), values[i]);
    }
}

std::vector<double> Tensor::to_doubles() const {
    std::vector<double> out;
    out.reserve(static_cast<std::size_t>(size_));
    // Through a buffer that stays in the cache: memory is then touched once, not cleared first.
    std::array<double, 1024> part;
    for (std::int64_t first = 0; first < size_; first += std::ssize(part)) {
        const auto count =
            static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(part), size_ - first));
        widen(first, std::span(part).first(count));
        out.insert(out.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return out;
}

}  // namespace attest
