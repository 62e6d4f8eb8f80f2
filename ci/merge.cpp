// `attest merge`: the shards of one campaign, joined and judged as the whole that they are.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ci/certificate_files.hpp"
#include "ci/check_screen.hpp"
#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/journal.hpp"
#include "ci/number.hpp"
#include "ci/record.hpp"
#include "ci/recorded_run.hpp"
#include "ci/recounted.hpp"
#include "ci/run.hpp"
#include "properties/search/few_shapes.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

struct Shard {
    std::string path;
    RunReport report;
};

[[noreturn]] void refuse(const std::string& line, const std::string& remedy) {
    throw BadInput("merge: " + line, {remedy});
}

Shard read_shard(const std::string& argument) {
    Shard shard;
    shard.report = read_run(argument, shard.path);
    sealed_digest(shard.path + "/result.jsonl", file_text(shard.path + "/result.jsonl"));
    if (const std::string why = not_countable(shard.report); !why.empty())
        refuse(clean(shard.path) + ": " + why,
               was_ended_early(shard.report)
                   ? resume_line(shard.report.run, shard.path) + " ends what was cut"
                   : "run it again: attest certify " + clean(shard.report.run.kernel.typed) +
                         " --shard i/n");
    return shard;
}

/// A record without what may differ between the machines and hours of one campaign.
std::string kernel_text(RunHeader run) {
    run.machine = {};
    run.kernel.barriers.clear();
    run.argv.clear();
    run.started.clear();
    run.threads = run.shard_index = 0;
    return record_line(run);
}

/// What the kernel was found to take, without how many shapes of few saw a call in this part.
std::vector<std::string> found_to_take(const RunReport& report) {
    const RunEnd& end = *report.end;
    std::vector<std::string> found = end.narrowed;
    if (report.run.shapes)
        std::erase(found, search::told_of_shapes(end.shapes_visited.size(), *report.run.shapes));
    return found;
}

/// What is not the same in both, in words; empty where they are of one campaign.
std::string difference(const RunReport& a, const RunReport& b) {
    const RunHeader &one = a.run, &other = b.run;
    if (one.attest_version != other.attest_version || one.catalogue != other.catalogue)
        return "another attest";
    if (one.seed != other.seed) return "another seed";
    if (profile_text(one.profile) != profile_text(other.profile)) return "another profile";
    if (one.kernel.sha256 != other.kernel.sha256 || one.kernel.typed != other.kernel.typed ||
        b.end->kernel_sha256 != a.end->kernel_sha256)
        return "another kernel";
    if (one.kernel.libraries != other.kernel.libraries) return "other libraries of the kernel";
    for (const auto& [name, digest] : b.end->libraries)
        if (const auto at = a.end->libraries.find(name);
            at != a.end->libraries.end() && at->second != digest)
            return "other libraries of the kernel";
    if (one.cases != other.cases || one.match != other.match) return "other laws or cases";
    if (one.shard_count != other.shard_count) return "another number of shards";
    if (kernel_text(one) != kernel_text(other)) return "another kernel or other options";
    if (a.end->narrow != b.end->narrow || found_to_take(a) != found_to_take(b))
        return "a kernel that takes other problems";
    // Failures that were stored before are among the shapes of their run.
    if (a.end->shapes_chosen != b.end->shapes_chosen) return "other shapes";
    for (const search::LawReport& law : a.laws) {
        const search::LawReport* same = b.law(law.law);
        if (same == nullptr ||
            (law.verdict.reason.left_out() && record_line(*same) != record_line(law)))
            return "other laws";
    }
    return {};
}

void require_one_campaign(std::vector<Shard>& shards) {
    std::ranges::sort(shards, {}, [](const Shard& s) { return s.report.run.shard_index; });
    const Shard& first = shards.front();
    for (const Shard& shard : shards)
        if (const std::string what = difference(first.report, shard.report); !what.empty())
            refuse(clean(shard.path) + " is of " + what + " than " + clean(first.path),
                   "only shards of one campaign are joined");
    const std::int64_t count = first.report.run.shard_count;
    std::string missing;
    std::set<std::int64_t> there;
    for (const Shard& shard : shards)
        if (const std::int64_t index = shard.report.run.shard_index; !there.insert(index).second)
            refuse(fmt::format("shard {}/{} is there twice, in {} too", index, count,
                               clean(shard.path)),
                   "name each once");
    for (std::int64_t index = 0; index < count; ++index)
        if (!there.contains(index))
            missing += (missing.empty() ? "" : ", ") + std::to_string(index);
    if (!missing.empty())
        refuse(fmt::format("of {} shards these are missing: {}", count, missing),
               "a part is no whole: run them, with the same seed");
}

/// The words that the whole would have been run by.
std::vector<std::string> words_of_whole(const std::vector<std::string>& argv) {
    std::vector<std::string> words;
    for (std::size_t n = 0; n < argv.size(); ++n) {
        if (argv[n] == "--shard" || argv[n] == "--out")
            ++n;
        else if (!argv[n].starts_with("--shard=") && !argv[n].starts_with("--out="))
            words.push_back(argv[n]);
    }
    return words;
}

/// Each value once, of machines that are not all alike.
void join_words(std::string& all, const std::string& one) {
    if (("; " + all + "; ").find("; " + one + "; ") == std::string::npos) all += "; " + one;
}

/// Of one law, the counterexample that the whole would have: of the first case that fails.
void join_counterexamples(RunReport& whole, const RunReport& shard) {
    for (const diagnosis::CounterexampleReport& c : shard.counterexamples) {
        const auto at = std::ranges::find_if(whole.counterexamples, [&](const auto& other) {
            return other.example.law == c.example.law;
        });
        if (at == whole.counterexamples.end())
            whole.add(c);
        else if (c.example.found.number < at->example.found.number)
            *at = c;
    }
}

void join(RunReport& whole, const RunReport& shard) {
    whole.cases.insert(whole.cases.end(), shard.cases.begin(), shard.cases.end());
    whole.draws.insert(whole.draws.end(), shard.draws.begin(), shard.draws.end());
    join_counterexamples(whole, shard);
    for (search::LawReport& law : whole.laws)
        if (const search::LawReport* same = shard.law(law.law)) law.promised.cover(same->promised);
    RunHeader& run = whole.run;
    run.started = std::min(run.started, shard.run.started);
    join_words(run.machine.cpu, shard.run.machine.cpu);
    join_words(run.machine.isa, shard.run.machine.isa);
    join_words(run.machine.os, shard.run.machine.os);
    join_words(run.machine.gpu, shard.run.machine.gpu);
    run.machine.cores = std::min(run.machine.cores, shard.run.machine.cores);
    run.machine.memory_bytes = std::min(run.machine.memory_bytes, shard.run.machine.memory_bytes);
    std::erase_if(run.kernel.barriers, [&](const std::string& barrier) {
        return std::ranges::find(shard.run.kernel.barriers, barrier) ==
               shard.run.kernel.barriers.end();
    });
    RunEnd& end = *whole.end;
    end.seconds += shard.end->seconds;
    end.at = std::max(end.at, shard.end->at);
    for (const std::string& file : shard.end->unread)
        if (std::ranges::find(end.unread, file) == end.unread.end()) end.unread.push_back(file);
    if (end.oracle.empty()) end.oracle = shard.end->oracle;
    end.libraries.insert(shard.end->libraries.begin(), shard.end->libraries.end());
}

/// Those that saw a call in any part.
void join_shapes(RunReport& whole, const std::vector<Shard>& shards) {
    if (!whole.run.shapes) return;
    std::set<std::string> visited;
    for (const Shard& shard : shards)
        visited.insert(shard.report.end->shapes_visited.begin(),
                       shard.report.end->shapes_visited.end());
    RunEnd& end = *whole.end;
    end.narrowed = found_to_take(whole);
    end.narrowed.push_back(search::told_of_shapes(visited.size(), *whole.run.shapes));
    end.shapes_visited.assign(visited.begin(), visited.end());
}

RunReport whole_of(const std::vector<Shard>& shards) {
    RunReport whole = shards.front().report;
    for (std::size_t n = 1; n < shards.size(); ++n) join(whole, shards[n].report);
    join_shapes(whole, shards);
    RunHeader& run = whole.run;
    run.shard_index = 0;
    run.shard_count = 1;
    run.argv = words_of_whole(run.argv);
    run.whole = run.match.empty() && !run.cases && !run.seconds && !run.shapes;
    whole.sort();
    return recounted(whole);
}

/// The stored failures of the shards, so that the lines that replay them work in the whole's
/// folder.
void copy_failures(const std::vector<Shard>& shards, const std::string& out) {
    namespace fs = std::filesystem;
    std::error_code none;
    for (const Shard& shard : shards)
        for (const fs::directory_entry& file :
             fs::directory_iterator(shard.path + "/cases", none)) {
            if (file.path().extension() != ".json" || !file.is_regular_file(none)) continue;
            fs::create_directories(out + "/cases");
            write_file_atomically(out + "/cases/" + file.path().filename().string(),
                                  file_text(file.path().string()));
        }
}

}  // namespace

int merge_command(const CommandOptions& options) {
    if (options.arguments.empty())
        throw BadInput("merge: no shards named", {"attest merge shard-0 shard-1 --out merged"});
    prepare_ci_files(options.files);
    const SigningKey key = options.sign.empty() ? SigningKey() : read_signing_key(options.sign);
    std::vector<Shard> shards;
    for (const std::string& argument : options.arguments) shards.push_back(read_shard(argument));
    std::error_code error;
    for (const Shard& shard : shards)
        if (std::filesystem::equivalent(shard.path, options.out, error))
            refuse("--out " + options.out + " is one of the shards", "name another folder");
    require_one_campaign(shards);
    if (!options.sign.empty() && shards.front().report.run.command != "certify")
        refuse("--sign signs a certificate, and these are shards of attest check",
               "attest certify --shard i/n writes shards of one");
    RunReport whole = whole_of(shards);
    Journal journal(options.out, record_lines(whole), "merge again");
    journal.finish(*whole.end);
    copy_failures(shards, options.out);
    if (whole.run.command == "certify") write_certificate(whole, options.out, key);
    const ScreenStyle style = style_of(STDOUT_FILENO, options.colour, options.ascii);
    Screen after(style);
    after.line("merged: " + counted(static_cast<std::int64_t>(shards.size()), "shard") + " into " +
               clean(options.out));
    write_out(printed(whole, draw_check(whole, style, options.out) + after.text(), options.out));
    write_ci_files(whole, options.files, options.out, options.out + "/report.html");
    return exit_of(whole);
}

}  // namespace attest::ci
