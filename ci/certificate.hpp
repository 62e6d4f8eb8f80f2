#pragma once
// The certificate of a run: what was judged, by what, under which claims, how near it came, and
// what it does not say. As data and as a page.

#include <string>

#include "ci/record.hpp"

namespace attest {

/// certificate.json, from the records and the SHA-256 of result.jsonl.
Record certificate(const Records& records, const std::string& result_sha256);

/// The same as a Markdown page.
std::string certificate_page(const Record& certificate);

}  // namespace attest
