// The records of an audit: what is written is read, and fits the schema.

#include "ci/audit.hpp"

#include <gtest/gtest.h>

#include "ci/golden.hpp"
#include "ci/random_report_test.hpp"
#include "ci/records_test.hpp"
#include "ci/schema_check.hpp"

namespace attest::ci {
namespace {

using generate::coin;
using random_report::count, random_report::list, random_report::text, random_report::texts;
using records_test::file_of, records_test::joined_records, records_test::records_of;
using records_test::refusal_by, records_test::retype_one, records_test::tampered;

PeerCount peer_count() {
    PeerCount peers{{}, count()};
    for (std::int64_t& rejected : peers.rejected) rejected = count();
    return peers;
}

double some_seconds() {
    return static_cast<double>(count()) / 1024;
}

LawOnBug law_on_bug() {
    return {text(), count(), count(), some_seconds()};
}

BugAudit bug_audit() {
    return {text(),        text(),
            text(),        coin(),
            texts(),       list(3, law_on_bug),
            count(),       generate::one_of<Told>(4),
            text(),        peer_count(),
            some_seconds()};
}

AuditReport make_audit() {
    const auto right = [] { return RightAudit{text(), peer_count()}; };
    return {"a " + text(), text(), generate::seed(),   count(),       count(), count(),
            count(),       coin(), list(3, bug_audit), list(3, right)};
}

std::string audit_refusal(const std::string& all) {
    return refusal_by(read_audit, all);
}

// Every value is in its line, so two audits with the same lines are the same.
RC_GTEST_PROP(Audit, reads_back_what_was_written, ()) {
    const std::string all = audit_records(make_audit());
    RC_ASSERT(audit_records(read_audit(file_of(all))) == all);
}

RC_GTEST_PROP(Audit, every_record_fits_the_schema, ()) {
    static const Record schema = schema_named("audit");
    for (const Record& record : records_of(audit_records(make_audit())))
        RC_ASSERT(schema_fault(record, schema, schema) == "");
}

RC_GTEST_PROP(Audit, whatever_bytes_there_are_is_read_or_refused, ()) {
    audit_refusal(tampered(audit_records(make_audit())));
}

RC_GTEST_PROP(Audit, a_value_of_another_type_is_refused, ()) {
    static const Record schema = schema_named("audit");
    std::vector<Record> records = records_of(audit_records(make_audit()));
    const auto line =
        static_cast<std::size_t>(generate::whole(0, static_cast<int>(records.size()) - 1));
    retype_one(records[line]);
    RC_ASSERT(audit_refusal(joined_records(records)).starts_with(":" + std::to_string(line + 1)));
    RC_ASSERT(schema_fault(records[line], schema, schema) != "");
}

TEST(Audit, TheStoredOneIsReadAndFitsTheSchema) {
    const Record schema = schema_named("audit");
    const std::string path = repository_directory() + "/fixtures/audit/audit.jsonl";
    std::ifstream file(path, std::ios::binary);
    std::ostringstream all;
    all << file.rdbuf();
    for (const Record& record : records_of(all.str()))
        EXPECT_EQ(schema_fault(record, schema, schema), "");
    EXPECT_EQ(audit_records(read_audit(path)), all.str());
}

}  // namespace
}  // namespace attest::ci
