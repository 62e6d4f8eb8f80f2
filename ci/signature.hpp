#pragma once
// Signatures of certificates, in forms that others read (ci/CERTIFICATE.md): Ed25519 keys as PEM
// (PKCS #8 and SubjectPublicKeyInfo, RFC 8410), in-toto statements in DSSE envelopes, one a line.

#include <map>
#include <string>
#include <vector>

#include "ci/run_report.hpp"

namespace attest::ci {

inline constexpr const char* bundle_name = "certificate.intoto.jsonl";

struct SigningKey {
    std::string seed;  ///< 32 bytes; empty: no key
    bool empty() const noexcept { return seed.empty(); }
};
struct PublicKey {
    std::string bytes;       ///< 32
    std::string id() const;  ///< SHA-256 of its DER form, hex
};

/// Writes a new key to `path`, which nobody else may read, and its public half to PATH.pub. Neither
/// may exist: BadInput.
PublicKey make_key(const std::string& path);
/// BadInput where the file is no such key.
SigningKey read_signing_key(const std::string& path);
PublicKey read_public_key(const std::string& path);
PublicKey public_half(const SigningKey& key);

/// What a signed certificate states, canonical JSON: the test-result predicate of in-toto, and our
/// own. `files` beside result.jsonl.
std::vector<std::string> statements_of(const RunReport& report, const std::string& result_sha256,
                                       const std::map<std::string, std::string>& files);

/// certificate.intoto.jsonl.
std::string signed_bundle(const std::vector<std::string>& statements, const SigningKey& key);

/// The ids of the keys that signed. BadInput where the text is not, to the byte, a bundle of these
/// statements, or where `key` is named and did not sign.
std::string check_bundle(const std::string& text, const std::string& source,
                         const std::vector<std::string>& statements, const PublicKey* key);

}  // namespace attest::ci
