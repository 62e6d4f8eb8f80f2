#pragma once
// The folder of a certificate: result.jsonl, and what is drawn from it and nothing else:
// certificate.json, .md and .html. Where it is signed, certificate.intoto.jsonl (signature.hpp).

#include <map>
#include <string>

#include "ci/run_report.hpp"
#include "ci/screen.hpp"
#include "ci/signature.hpp"

namespace attest::ci {

/// The drawn files, by name.
std::map<std::string, std::string> certificate_files(const RunReport& report,
                                                     const std::string& result_sha256);

/// Writes them beside the folder's result.jsonl; an empty key signs nothing.
void write_certificate(const RunReport& report, const std::string& directory,
                       const SigningKey& key);

/// Where it lies, and what it says.
void tell_certificate(Screen& screen, const RunReport& report, const std::string& directory);

/// The exit code: what holds and is no whole certificate decides nothing.
int exit_of(const RunReport& report);

}  // namespace attest::ci
