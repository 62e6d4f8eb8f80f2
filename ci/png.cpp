#include "ci/png.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace attest::ci {

namespace {

std::string big_endian(std::uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
    return bytes;
}

// ISO 3309, as PNG 1.2, 3.4.
std::uint32_t crc32(std::string_view bytes) {
    std::uint32_t crc = 0xFFFFFFFFu;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    }
    return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
    constexpr std::uint32_t modulus = 65521;
    std::uint32_t a = 1, b = 0;
    for (const char c : bytes) {
        a = (a + static_cast<unsigned char>(c)) % modulus;
        b = (b + a) % modulus;
    }
    return b << 16 | a;
}

std::string chunk(const std::string& type, const std::string& data) {
    return big_endian(static_cast<std::uint32_t>(data.size())) + type + data +
           big_endian(crc32(type + data));
}

// A zlib stream (RFC 1950) of blocks that are stored as they are (RFC 1951, 3.2.4).
std::string stored(std::string_view bytes) {
    constexpr std::size_t block_max = 65535;
    std::string out = "\x78\x01";
    for (std::size_t at = 0; at == 0 || at < bytes.size(); at += block_max) {
        const auto size = static_cast<std::uint32_t>(std::min(block_max, bytes.size() - at));
        out += at + block_max >= bytes.size() ? '\1' : '\0';
        for (const std::uint32_t half : {size, ~size})
            for (const int shift : {0, 8}) out += static_cast<char>(half >> shift & 255);
        out += bytes.substr(at, size);
    }
    return out + big_endian(adler32(bytes));
}

}  // namespace

std::string level_png(const std::vector<std::string>& rows) {
    const std::size_t width = rows.empty() ? 0 : rows.front().size();
    std::string pixels;
    for (const std::string& row : rows) {
        pixels += '\0';  // no filter
        for (std::size_t x = 0; x < width; x += 2) {
            const int second = x + 1 < width ? row[x + 1] - '0' : 0;
            pixels += static_cast<char>((row[x] - '0') << 4 | second);
        }
    }
    // The design's: pale just above the bound, dark where it is 10^5 times over.
    constexpr std::array<std::array<unsigned char, 3>, 7> colours{{{0, 0, 0},
                                                                   {251, 224, 199},
                                                                   {247, 200, 158},
                                                                   {240, 168, 108},
                                                                   {228, 129, 58},
                                                                   {213, 94, 0},
                                                                   {150, 60, 0}}};
    std::string palette;
    for (const auto& colour : colours)
        for (const unsigned char part : colour) palette += static_cast<char>(part);
    std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                         big_endian(static_cast<std::uint32_t>(rows.size()));
    header += std::string("\4\3\0\0\0", 5);  // four bits, a palette
    return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("PLTE", palette) +
           chunk("tRNS", std::string(1, '\0')) + chunk("IDAT", stored(pixels)) + chunk("IEND", "");
}

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t three = 0;
        for (std::size_t n = 0; n < 3; ++n)
            three = three << 8 |
                    (at + n < bytes.size() ? static_cast<unsigned char>(bytes[at + n]) : 0u);
        for (std::size_t n = 0; n < 4; ++n)
            out += at + n > bytes.size() ? '=' : digits[three >> (18 - 6 * n) & 63];
    }
    return out;
}

}  // namespace attest::ci
