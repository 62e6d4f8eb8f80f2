#include "ci/certificate_files.hpp"

#include <cstdio>

#include "ci/certificate.hpp"
#include "ci/run.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

std::map<std::string, std::string> certificate_files(const RunReport& report,
                                                     const std::string& result_sha256) {
    const Certificate data = certificate(report, result_sha256);
    return {{"certificate.json", certificate_text(data)},
            {"certificate.md", certificate_page(data)},
            {"certificate.html", certificate_html(data)}};
}

void write_certificate(const RunReport& report, const std::string& directory,
                       const SigningKey& key) {
    const std::string result = sha256_hex(file_text(directory + "/result.jsonl"));
    const auto files = certificate_files(report, result);
    const std::string bundle = directory + "/" + bundle_name;
    std::remove(bundle.c_str());  // of an earlier certificate
    for (const auto& [name, text] : files) write_file_atomically(directory + "/" + name, text);
    if (!key.empty())
        write_file_atomically(bundle, signed_bundle(statements_of(report, result, files), key));
}

void tell_certificate(Screen& screen, const RunReport& report, const std::string& directory) {
    const Certificate data = certificate(report, {});
    screen.line((data.whole() ? "certificate: " : "not a certificate: ") + clean(directory) +
                "/certificate.html");
    screen.line(data.title());
}

int exit_of(const RunReport& report) {
    const int exit = report.end->verdict.exit;
    const bool part = report.run.command == "certify" && !report.run.whole;
    return exit == exit_holds && part ? exit_inconclusive : exit;
}

}  // namespace attest::ci
