#include "kernels/worker/patterns.hpp"

#include <cstring>

namespace attest::worker {
namespace {

std::uint64_t repeated(std::uint16_t pattern) {
    return pattern * 0x0001000100010001ull;
}

template <typename Element>
std::int64_t find_element(std::span<const std::byte> dense, std::uint64_t bits) {
    const auto wanted = static_cast<Element>(bits);
    for (std::size_t i = 0; i + sizeof(Element) <= dense.size(); i += sizeof(Element)) {
        Element here{};
        std::memcpy(&here, dense.data() + i, sizeof here);
        if (here == wanted) return static_cast<std::int64_t>(i / sizeof(Element));
    }
    return -1;
}

}  // namespace

void fill(std::byte* base, std::uint64_t begin, std::uint64_t end, std::uint16_t pattern) {
    const std::uint64_t word = repeated(pattern);
    const auto byte_at = [&](std::uint64_t at) {
        return static_cast<std::byte>(pattern >> (8 * (at & 1)));
    };
    for (; begin < end && (begin & 7) != 0; ++begin) base[begin] = byte_at(begin);
    for (; begin + 8 <= end; begin += 8) std::memcpy(base + begin, &word, 8);
    for (; begin < end; ++begin) base[begin] = byte_at(begin);
}

std::uint64_t first_other(const std::byte* base, std::uint64_t begin, std::uint64_t end,
                          std::uint16_t pattern) {
    const std::uint64_t word = repeated(pattern);
    const auto is_pattern = [&](std::uint64_t at) {
        return base[at] == static_cast<std::byte>(pattern >> (8 * (at & 1)));
    };
    for (; begin < end && (begin & 7) != 0; ++begin) {
        if (!is_pattern(begin)) return begin;
    }
    for (; begin + 8 <= end; begin += 8) {
        std::uint64_t here = 0;
        std::memcpy(&here, base + begin, 8);
        if (here != word) break;
    }
    for (; begin < end; ++begin) {
        if (!is_pattern(begin)) return begin;
    }
    return end;
}

std::int64_t find_poison(const Tensor& tensor, std::uint16_t poison) {
    const std::uint64_t bits = repeated(poison);
    switch (size_of(tensor.type())) {
        case 2:
            return find_element<std::uint16_t>(tensor.bytes(), bits);
        case 4:
            return find_element<std::uint32_t>(tensor.bytes(), bits);
        case 8:
            return find_element<std::uint64_t>(tensor.bytes(), bits);
        default:
            return -1;  // one byte cannot be told from a result
    }
}

bool holds_nan_of(const Tensor& tensor, std::uint16_t pattern) {
    constexpr std::uint64_t sign_64 = 1ull << 63, quiet_64 = 1ull << 51;
    constexpr std::uint64_t sign_32 = 1ull << 31, quiet_32 = 1ull << 22;
    const std::uint64_t wide = (repeated(pattern) | quiet_64) & ~sign_64;
    const auto any = [&](std::uint64_t sign, std::uint64_t quiet, auto... nans) {
        for (std::int64_t at = 0; at < tensor.size(); ++at) {
            const std::uint64_t bits = (tensor.bits(at) | quiet) & ~sign;
            if (((bits == nans) || ...)) return true;
        }
        return false;
    };
    switch (tensor.type()) {
        case ElementType::f64:
            return any(sign_64, quiet_64, wide);
        case ElementType::f32: {
            const std::uint64_t own = (repeated(pattern) & 0xFFFFFFFFu) & ~sign_32;
            // A double's fraction cut to the 23 bits of a float's.
            const std::uint64_t narrowed =
                0x7F800000u | ((wide & 0x000FFFFFFFFFFFFFull) >> (52 - 23));
            return any(sign_32, quiet_32, own | quiet_32, narrowed);
        }
        default:
            return false;
    }
}

bool holds_answers(const Tensor& mask) {
    for (std::int64_t at = 0; at < mask.size(); ++at)
        if (mask.bits(at) <= 1) return true;
    return false;
}

}  // namespace attest::worker
