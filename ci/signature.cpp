#include "ci/signature.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ci/record.hpp"
#include "ci/record_writer.hpp"
#include "ci/run.hpp"
#include "ci/screen.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"
#include "reference/problem/json.hpp"

namespace attest::ci {

namespace {

// RFC 8410: all that stands before the 32 bytes of an Ed25519 key in DER.
const std::string private_prefix("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20",
                                 16);
const std::string public_prefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr const char* payload_type = "application/vnd.in-toto+json";

const unsigned char* bytes_of(const std::string& text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

std::string base64(const std::string& bytes) {
    std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
    sodium_bin2base64(text.data(), text.size(), bytes_of(bytes), bytes.size(),
                      sodium_base64_VARIANT_ORIGINAL);
    text.pop_back();  // its NUL
    return text;
}

/// Empty where it is none.
std::string from_base64(const std::string& text) {
    std::string bytes(text.size(), '\0');
    std::size_t size = 0;
    const int failed =
        sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                          text.size(), nullptr, &size, nullptr, sodium_base64_VARIANT_ORIGINAL);
    bytes.resize(failed == 0 ? size : 0);
    return bytes;
}

std::string pem(const std::string& kind, const std::string& der) {
    return "-----BEGIN " + kind + "-----\n" + base64(der) + "\n-----END " + kind + "-----\n";
}

/// The 32 bytes of the key in a file of one PEM block, as pem() writes it.
std::string key_in(const std::string& path, const std::string& kind, const std::string& prefix) {
    constexpr std::size_t size = 32;
    const std::string text = file_text(path);
    const std::string begin = "-----BEGIN " + kind + "-----\n";
    const std::size_t end = text.find('\n', begin.size());
    if (text.starts_with(begin) && end != text.npos) {
        const std::string der = from_base64(text.substr(begin.size(), end - begin.size()));
        if (der.size() == prefix.size() + size && der.starts_with(prefix) && text == pem(kind, der))
            return der.substr(prefix.size());
    }
    throw BadInput(clean(path) + ": no Ed25519 key: expected one PEM block, " + kind,
                   {"attest key new FILE makes a pair, FILE and FILE.pub"});
}

void write_new(const std::string& path, const std::string& text, int mode) {
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
    if (file < 0)
        throw BadInput("key new " + clean(path) + ": " + std::strerror(errno),
                       {"name a file that does not exist, in a folder that can be written"});
    const bool written =
        ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::fsync(file) == 0;
    ::close(file);
    if (written) return;
    ::unlink(path.c_str());
    throw InternalError(path + ": cannot be written");
}

struct KeyPair {
    std::array<unsigned char, crypto_sign_PUBLICKEYBYTES> half;
    std::array<unsigned char, crypto_sign_SECRETKEYBYTES> whole;
    explicit KeyPair(const SigningKey& key) {
        crypto_sign_seed_keypair(half.data(), whole.data(), bytes_of(key.seed));
    }
    ~KeyPair() { sodium_memzero(whole.data(), whole.size()); }
};

/// DSSE's pre-authentication encoding: what is signed.
std::string encoded(const std::string& payload) {
    return "DSSEv1 " + std::to_string(std::strlen(payload_type)) + " " + payload_type + " " +
           std::to_string(payload.size()) + " " + payload;
}

std::string envelope(const std::string& statement, const std::string& key_id,
                     const std::string& signature) {
    Record out{{"payload", base64(statement)}, {"payloadType", payload_type}};
    out["signatures"] = Record::array({{{"keyid", key_id}, {"sig", base64(signature)}}});
    return record_text(out) + "\n";
}

Record resource(const std::string& name, const std::string& sha256) {
    return {{"name", name}, {"digest", {{"sha256", sha256}}}};
}

}  // namespace

std::string PublicKey::id() const {
    return sha256_hex(public_prefix + bytes);
}

PublicKey public_half(const SigningKey& key) {
    const KeyPair pair(key);
    return {std::string(pair.half.begin(), pair.half.end())};
}

PublicKey make_key(const std::string& path) {
    SigningKey key{std::string(crypto_sign_SEEDBYTES, '\0')};
    randombytes_buf(key.seed.data(), key.seed.size());
    const PublicKey half = public_half(key);
    std::error_code error;
    if (std::filesystem::exists(path + ".pub", error))
        throw BadInput("key new " + clean(path) + ".pub: it exists", {"name another file"});
    write_new(path, pem("PRIVATE KEY", private_prefix + key.seed), 0600);
    write_new(path + ".pub", pem("PUBLIC KEY", public_prefix + half.bytes), 0644);
    return half;
}

SigningKey read_signing_key(const std::string& path) {
    return {key_in(path, "PRIVATE KEY", private_prefix)};
}

PublicKey read_public_key(const std::string& path) {
    return {key_in(path, "PUBLIC KEY", public_prefix)};
}

std::vector<std::string> statements_of(const RunReport& report, const std::string& result_sha256,
                                       const std::map<std::string, std::string>& files) {
    const RunHeader& run = report.run;
    const RunVerdict& v = report.end->verdict;
    Record subject = Record::array();
    if (!run.kernel.sha256.empty()) subject.push_back(resource(run.kernel.file, run.kernel.sha256));
    for (const auto& [name, text] : files) subject.push_back(resource(name, sha256_hex(text)));
    subject.push_back(resource("result.jsonl", result_sha256));
    Record holds = Record::array(), violated = Record::array(), open = Record::array();
    for (const search::LawReport& law : report.laws) {
        const law::Decision decision = law.verdict.decision;
        if (decision == law::Decision::holds) holds.push_back(law.law);
        if (decision == law::Decision::violated) violated.push_back(law.law);
        if (decision == law::Decision::inconclusive) open.push_back(law.law);
    }
    const auto statement = [&](const char* type, Record predicate) {
        return record_text(Record{{"_type", "https://in-toto.io/Statement/v1"},
                                  {"subject", subject},
                                  {"predicateType", type},
                                  {"predicate", std::move(predicate)}});
    };
    const char* result = v.decision == RunDecision::holds      ? "PASSED"
                         : v.decision == RunDecision::violated ? "FAILED"
                                                               : "WARNED";
    const std::string profile = sha256_hex(profile_text(run.profile));
    return {statement("https://in-toto.io/attestation/test-result/v0.1",
                      {{"result", result},
                       {"configuration",
                        Record::array({resource("profile " + run.profile.name, profile)})},
                       {"passedTests", holds},
                       {"warnedTests", open},
                       {"failedTests", violated}}),
            statement("urn:attest:conformance:v1", {{"attest", run.attest_version},
                                                    {"catalogue", run.catalogue},
                                                    {"profile", run.profile.name},
                                                    {"profile_sha256", profile},
                                                    {"seed", std::to_string(run.seed)},
                                                    {"whole", run.whole},
                                                    {"verdict", name(v.decision)},
                                                    {"cases", v.cases}})};
}

std::string signed_bundle(const std::vector<std::string>& statements, const SigningKey& key) {
    const KeyPair pair(key);
    std::string bundle;
    for (const std::string& statement : statements) {
        const std::string message = encoded(statement);
        std::string signature(crypto_sign_BYTES, '\0');
        crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr,
                             bytes_of(message), message.size(), pair.whole.data());
        bundle += envelope(statement, public_half(key).id(), signature);
    }
    return bundle;
}

std::string check_bundle(const std::string& text, const std::string& source,
                         const std::vector<std::string>& statements, const PublicKey* key) {
    std::string rest = text, id;
    for (const std::string& statement : statements) {
        const std::string line = rest.substr(0, std::min(rest.size(), rest.find('\n') + 1));
        const JsonSource json{line, source};
        const Json object = parse_json(json);
        const Json* signatures = object.find("signatures");
        const Json* one = signatures != nullptr && signatures->items.size() == 1
                              ? &signatures->items.front()
                              : nullptr;
        const Json* key_id = one == nullptr ? nullptr : one->find("keyid");
        const Json* sig = one == nullptr ? nullptr : one->find("sig");
        if (sig == nullptr || key_id == nullptr)
            throw BadInput(source + ": no envelope with one signature");
        const std::string signature = from_base64(sig->text);
        if (line != envelope(statement, key_id->text, signature))
            throw BadInput(source + ": what was signed is another certificate");
        const std::string message = encoded(statement);
        if (key != nullptr &&
            (key_id->text != key->id() || signature.size() != crypto_sign_BYTES ||
             crypto_sign_verify_detached(bytes_of(signature), bytes_of(message), message.size(),
                                         bytes_of(key->bytes)) != 0))
            throw BadInput(source + ": not signed by this key");
        if (!id.empty() && id != key_id->text) throw BadInput(source + ": signed by two keys");
        id = key_id->text;
        rest = rest.substr(line.size());
    }
    if (!rest.empty()) throw BadInput(source + ": more than was signed");
    return id;
}

}  // namespace attest::ci
