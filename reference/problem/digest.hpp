#pragma once
// The SHA-256 of a text: what names a stored case, a certificate's records, a catalogue of laws.

#include <string>
#include <string_view>

namespace attest {

std::string sha256_hex(std::string_view bytes);  ///< 64 lower-case digits

}  // namespace attest
