#pragma once
// A small picture as a PNG file, without compression: a palette of sixteen, four bits a pixel.

#include <string>
#include <string_view>
#include <vector>

namespace attest::ci {

/// One pixel a digit, rows as wide as each other: 0 transparent, 1 to 6 pale to dark vermillion.
std::string level_png(const std::vector<std::string>& rows);

std::string base64(std::string_view bytes);

}  // namespace attest::ci
