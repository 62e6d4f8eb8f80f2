// `attest verify`: a certificate held against its own records, a signature, a library, and on
// request against the kernel itself, on cases drawn anew from the certificate's seed.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ci/certificate.hpp"
#include "ci/certificate_files.hpp"
#include "ci/commands.hpp"
#include "ci/embedded.hpp"
#include "ci/exit_code.hpp"
#include "ci/number.hpp"
#include "ci/process_files.hpp"
#include "ci/profile.hpp"
#include "ci/recorded_run.hpp"
#include "ci/recounted.hpp"
#include "ci/rerun.hpp"
#include "ci/run.hpp"
#include "ci/screen.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

/// One thing that was looked at, and what came of it.
struct LookedAt {
    enum class Kind : std::uint8_t { good, open, bad };
    Kind kind = Kind::good;
    std::string subject, says;
};

/// A folder that was read whole before anything in it is believed.
struct Folder {
    std::string result_sha256, bundle;
    RunReport report;
    std::map<std::string, std::string> files;
};

Folder read_folder(const std::string& argument) {
    Folder folder;
    std::string directory;
    for (const char* name : {"certificate.html", "certificate.json", "certificate.md"})
        folder.files[name] = file_text(argument + "/" + name);
    const std::string result = argument + "/result.jsonl", bundle = argument + "/" + bundle_name;
    folder.result_sha256 = sealed_digest(result, file_text(result));
    folder.report = read_run(argument, directory);
    if (std::filesystem::exists(bundle)) folder.bundle = file_text(bundle);
    return folder;
}

/// Of two lines of JSON, what stands around the first byte that differs.
std::string around(const std::string& line, std::size_t at) {
    constexpr std::size_t before = 60, shown = 140;
    const std::size_t from = at > before ? at - before : 0;
    return (from > 0 ? "..." : "") + clean(line.substr(from, shown));
}

/// The first line that is not what the records come to.
void require_same_lines(const RunReport& recorded, const RunReport& again) {
    std::vector<std::string> a = record_lines(recorded), b = record_lines(again);
    a.push_back(record_line(*recorded.end));
    b.push_back(record_line(*again.end));
    for (std::size_t n = 0; n < std::min(a.size(), b.size()); ++n)
        if (a[n] != b[n]) {
            const auto differs = std::ranges::mismatch(a[n], b[n]).in1 - a[n].begin();
            const auto at = static_cast<std::size_t>(differs);
            throw BadInput(clean(a[n], 48) + " is recorded with " + around(a[n], at) +
                           ", but the cases come to " + around(b[n], at));
        }
    if (a.size() != b.size()) throw BadInput("the records come to others");
}

void require_profile(const RunHeader& run) {
    const search::Profile profile = run.own_profile.empty()
                                        ? load_profile(run.profile.name)
                                        : parse_profile(run.own_profile, "its own profile");
    if (profile_text(profile) != profile_text(run.profile))
        throw BadInput("profile " + clean(run.profile.name) + " is not the one of that name");
}

void require_drawn(const Folder& folder) {
    for (const auto& [name, text] : certificate_files(folder.report, folder.result_sha256))
        if (folder.files.at(name) != text) throw BadInput(name + " is not what the records say");
}

class Verification {
public:
    explicit Verification(std::string directory) : directory_(std::move(directory)) {}

    void look(const CommandOptions& options);
    void draw(Screen& screen) const;
    bool valid() const { return !has(LookedAt::Kind::bad); }
    /// Of what is valid and was looked at whole: the verdict's own.
    int exit() const {
        return !valid()                    ? exit_violated
               : has(LookedAt::Kind::open) ? exit_inconclusive
                                           : folder_.report.end->verdict.exit;
    }
    const RunReport& report() const noexcept { return folder_.report; }

private:
    bool has(LookedAt::Kind kind) const {
        return std::ranges::any_of(findings_, [&](const LookedAt& f) { return f.kind == kind; });
    }
    template <typename Check>
    void check(const std::string& subject, const std::string& good, Check check);
    void add(LookedAt::Kind kind, const std::string& subject, const std::string& says) {
        findings_.push_back({kind, subject, says});
    }
    void signature(const CommandOptions& options);
    void library(const CommandOptions& options);
    void again(const CommandOptions& options);

    std::string directory_;
    Folder folder_;
    std::vector<LookedAt> findings_;
};

template <typename Check>
void Verification::check(const std::string& subject, const std::string& good, Check check) {
    try {
        check();
        add(LookedAt::Kind::good, subject, good);
    } catch (const BadInput& error) {
        add(LookedAt::Kind::bad, subject, error.what());
    }
}

void Verification::signature(const CommandOptions& options) {
    if (folder_.bundle.empty() && options.public_key.empty()) {
        add(LookedAt::Kind::good, "signature", "none, and none was asked for");
        return;
    }
    std::optional<PublicKey> key;
    if (!options.public_key.empty()) key = read_public_key(options.public_key);
    const auto statements = statements_of(folder_.report, folder_.result_sha256, folder_.files);
    std::string id;
    check("signature", key ? "Ed25519, by this key" : "states this certificate", [&] {
        if (folder_.bundle.empty()) throw BadInput("there is none");
        id = check_bundle(folder_.bundle, bundle_name, statements, key ? &*key : nullptr);
    });
    if (!key && findings_.back().kind == LookedAt::Kind::good)
        findings_.back() = {LookedAt::Kind::open, "signature",
                            "not checked: --public-key names the key that is trusted"};
}

void Verification::library(const CommandOptions& options) {
    if (options.kernel.empty()) return;
    const KernelReport& judged = folder_.report.run.kernel;
    const kernel::KernelSpec spec = kernel::parse_kernel_spec(options.kernel, options.python);
    const bool loads = spec.interface != kernel::KernelInterface::builtin && options.rerun == 0;
    const char* good = loads ? "the one that was judged; --rerun looks at what it loads, too"
                             : "the one that was judged";
    check("kernel", good, [&] {
        if (spec.interface != judged.interface) throw BadInput("loaded in another way");
        if (spec.path.empty() ? options.kernel != judged.typed
                              : file_digest(spec.path) != judged.sha256)
            throw BadInput(std::string("not the one that was judged") +
                           (spec.path.empty() ? "" : ": another SHA-256"));
        for (const auto& [name, digest] : process_files(0, spec)) {  // a Python module's source
            const auto then = judged.libraries.find(name);
            if (then == judged.libraries.end() || then->second != digest)
                throw BadInput("not the one that was judged: another " + name);
        }
    });
}

void Verification::again(const CommandOptions& options) {
    if (options.rerun == 0) return;
    const std::string kernel =
        options.kernel.empty() ? folder_.report.run.kernel.typed : options.kernel;
    if (options.kernel.empty() &&
        folder_.report.run.kernel.interface != kernel::KernelInterface::builtin)
        throw BadInput("verify --rerun: needs --kernel: a file decides not by itself what is run",
                       {"attest verify DIR --rerun 200 --kernel ./mine.so"});
    check("rerun", "", [&] {
        CommandOptions kernel_options = options;
        kernel_options.kernel = kernel;
        const Rerun rerun = rerun_cases(folder_.report, kernel_options);
        if (!rerun.other_files.empty())
            findings_.push_back({LookedAt::Kind::open, "files",
                                 fmt::format("not those that were judged: {}",
                                             fmt::join(rerun.other_files, ", "))});
        if (!rerun.difference.empty()) throw BadInput(rerun.difference);
        if (!rerun.open.empty()) {
            findings_.push_back({LookedAt::Kind::open, "rerun", rerun.open});
            return;
        }
        findings_.push_back({LookedAt::Kind::good, "rerun", rerun.says});
    });
    if (findings_.back().says.empty()) findings_.pop_back();
}

void Verification::look(const CommandOptions& options) {
    check("records", "whole, as their last line seals them",
          [&] { folder_ = read_folder(directory_); });
    if (has(LookedAt::Kind::bad)) return;
    const RunHeader& run = folder_.report.run;
    if (run.attest_version != attest_version() || run.catalogue != law::catalogue_digest()) {
        add(LookedAt::Kind::open, "attest",
            "made by attest " + run.attest_version +
                " with other laws: only that attest can count "
                "it again");
        signature(options);
        library(options);
        return;
    }
    const std::string why = not_countable(folder_.report);
    if (!why.empty())
        add(LookedAt::Kind::open, "verdict", "cannot be counted again: " + why);
    else
        check("verdict",
              "follows from " +
                  counted(static_cast<std::int64_t>(folder_.report.cases.size()), "case record"),
              [&] { require_same_lines(folder_.report, recounted(folder_.report)); });
    // What the end leaves out of the verdict follows from the laws.
    folder_.report.end->verdict = verdict_of(folder_.report, folder_.report.end->interrupted);
    check("profile",
          run.own_profile.empty() ? "attest's own " + run.profile.name : "a profile of its own",
          [&] { require_profile(run); });
    check("pages", "drawn again from the records: identical", [&] { require_drawn(folder_); });
    if (!run.kernel.sha256.empty())
        check("library", "the same file at the start and at the end", [&] {
            if (was_swapped(folder_.report))
                throw BadInput("another file at the end of the run than at its start");
        });
    signature(options);
    library(options);
    if (!has(LookedAt::Kind::bad)) again(options);
    if (!run.whole) add(LookedAt::Kind::open, "whole", "no: a part of a profile is no certificate");
}

void Verification::draw(Screen& screen) const {
    const RunHeader& run = folder_.report.run;
    screen.line(screen.bold("attest verify") + "  " + clean(directory_) + "  " +
                clean(run.kernel.manifest.name) + " " + clean(run.kernel.manifest.version));
    screen.line();
    for (const LookedAt& f : findings_) {
        const char* mark = f.kind == LookedAt::Kind::good   ? "holds"
                           : f.kind == LookedAt::Kind::open ? "inconclusive"
                                                            : "violated";
        screen.line("  " + screen.mark(mark) + " " + screen.pad(f.subject, 11) + clean(f.says, 600),
                    15);
    }
    screen.line();
    const std::string word = !valid()                    ? screen.mark("violated") + " NOT VALID"
                             : has(LookedAt::Kind::open) ? screen.mark("inconclusive") + " OPEN"
                                                         : screen.mark("holds") + " VALID";
    const bool read = folder_.report.end.has_value();
    screen.line(screen.bold(word) + "   " +
                (read ? certificate(folder_.report, {}).title() + ", " + run.started.substr(0, 10)
                      : "nothing in it can be believed") +
                "   exit " + std::to_string(exit()));
}

}  // namespace

int verify_command(const CommandOptions& options) {
    if (options.arguments.empty())
        throw BadInput("verify: no certificate named", {"attest verify certificate"});
    std::vector<std::string> folders = options.arguments;
    if (!options.against.empty()) folders.push_back(options.against);
    for (const std::string& folder : folders)
        if (!std::filesystem::exists(folder + "/certificate.json"))
            throw BadInput(clean(folder) + ": no certificate.json in it",
                           {"a folder that attest certify wrote"});
    if (!options.against.empty() && folders.size() != 2)
        throw BadInput("verify --against: holds one certificate against one other");
    Screen screen(style_of(STDOUT_FILENO, options.colour, options.ascii));
    bool bad = false, violated = false, open = false;
    std::vector<Verification> all;
    for (const std::string& folder : folders) {
        Verification& one = all.emplace_back(folder);
        one.look(options);
        one.draw(screen);
        bad = bad || !one.valid();
        violated = violated || one.exit() == exit_violated;
        open = open || one.exit() == exit_inconclusive;
        if (options.against.empty()) all.clear();
    }
    if (!options.against.empty() && !bad) {
        screen.line();
        draw_changes(screen, all.back().report(), all.front().report());
    }
    write_out(screen.text());
    return violated ? exit_violated : open ? exit_inconclusive : exit_holds;
}

}  // namespace attest::ci
