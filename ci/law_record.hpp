#pragma once
// The records of one law: its verdict with the distribution of its ratios, and its cases.

#include <optional>
#include <vector>

#include "ci/record.hpp"
#include "properties/search/campaign.hpp"

namespace attest {

/// The name of a case and law in records and on screens: the first 8 digits of its SHA-256.
std::string short_id(const Case& subject, std::string_view law);
std::string short_id(std::string_view full_id);

/// The law record, without its cause.
Record law_record(const LawResult& result);

/// One tried case.
Record case_record(std::string_view law, Compares compares, const CaseRecord& record);

/// {tensor, offset_bytes, side, signal, says}, or null.
Record fault_record(const std::optional<Fault>& fault);

/// The three holding cases nearest to their bound, nearest first; none for laws without a ratio.
std::vector<const CaseRecord*> nearest_cases(const LawResult& result);

}  // namespace attest
