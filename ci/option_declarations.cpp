#include "ci/option_declarations.hpp"

namespace attest::ci {

namespace {

void add_kernel_options(CLI::App& app, CommandOptions& o, TypedOptions& t) {
    app.add_option(
        "--python", o.python,
        "interpreter for python: kernels (python3; /usr/bin/python3 where that has no numpy)");
    app.add_option(
        "--timeout", t.timeout,
        "limit of one call of the kernel (10s; 6s for compiled code without a sign of life)");
    app.add_option("--env", o.variables,
                   "a variable of the environment that the kernel is given too; may be repeated")
        ->allow_extra_args(false);
    app.add_flag("--unconfined", o.unconfined,
                 "run the kernel with all rights of this user, and the whole environment");
}

void add_run_options(CLI::App& app, CommandOptions& o, TypedOptions& t) {
    const std::string profile = default_profile(app.get_name());
    app.add_option("--profile", t.profile,
                   "what is tried: a name or a .json file (" + profile + ")");
    app.add_option("--match", o.match, "laws to try, a glob such as masking.*; may be repeated")
        ->allow_extra_args(false);
    app.add_option("--seed", t.seed,
                   "repeats a run; if not given, random, or 20261120 where CI is set");
    app.add_option("--time", t.time, "time for all laws together, such as 60s or 5m");
    app.add_option("--cases", t.cases,
                   "cases a law, instead of the profile's; fixtures come on top");
    app.add_option("--shapes", t.shapes,
                   "shapes the kernel sees at most, for one that compiles each");
    app.add_option("--jobs", t.jobs, "workers at once (one a core)");
    app.add_option("--shard", t.shard, "i/n: part i, from 0, of n equal parts; auto: as CI says");
    app.add_option("--out", o.out, "folder of the results (attest-out)");
    add_kernel_options(app, o, t);
}

void add_screen_options(CLI::App& app, CommandOptions& o, TypedOptions& t) {
    app.add_option("--color", t.colour, "auto, always or never");
    app.add_flag("--ascii", o.ascii, "no characters beyond ASCII");
}

void add_file_options(CLI::App& app, CommandOptions& o) {
    app.add_option("--junit", o.files.junit, "FILE for JUnit XML: a test a law");
    app.add_option("--sarif", o.files.sarif, "FILE for SARIF 2.1.0: a result a cause");
    app.add_option("--code-quality", o.files.code_quality, "FILE for GitLab's code quality report");
    app.add_option("--summary", o.files.summary, "FILE for a page of Markdown");
}

/// Of a command that judges, or joins what was judged.
void add_report_options(CLI::App& app, CommandOptions& o, TypedOptions& t) {
    app.add_flag("--report", o.files.page, "write report.html, a page of it all, too");
    add_file_options(app, o);
    add_screen_options(app, o, t);
}

void add_case_options(CLI::App& app, CommandOptions& o, TypedOptions& t, const char* none) {
    app.add_option("CASE", o.arguments,
                   std::string("a stored id, a file, a fixture's name or a line") + none);
    app.add_option("--kernel", o.kernel, "the kernel; a stored case has its own");
    app.add_option("--law", o.law, "the law to judge by; a stored case has its own");
    app.add_option("--out", o.out, "folder of the results (attest-out)");
    add_kernel_options(app, o, t);
    add_screen_options(app, o, t);
}

// The commands that judge no kernel of a user's.
void define_tools(CLI::App& app, CommandOptions& o, TypedOptions& t) {
    auto* fixture = app.add_subcommand("fixture", "write a case and its story to a file");
    fixture->add_option("FILE CASE", o.arguments,
                        "fixtures/NAME.json, and a line, a file, a stored id or a fixture's name");
    fixture->add_option("--story", o.story, "the mistake it is there to find, in one paragraph");
    fixture->add_option("--law", o.match, "a law that sees it, tried by check; may be repeated")
        ->allow_extra_args(false);
    fixture->add_flag("--replace", o.replace, "write over a file that exists");
    fixture->add_option("--out", o.out, "folder of the results (attest-out)");

    auto* fresh = app.add_subcommand("new", "write a kernel to begin with, its glue and manifest");
    fresh->add_option("KIND NAME", o.arguments,
                      "c, cpp, cuda, python or triton, and the kernel's name in small letters");

    auto* bench = app.add_subcommand("bench", "measure the reference: errors, bounds, speed");
    bench->add_option("WHAT", o.arguments, "oracle: its errors, its bounds, its speed");
    bench->add_option("--time", t.time, "time for errors and bounds together (20s)");
    bench->add_option("--seed", t.seed, "draws other cases (1)");
    bench->add_option("--out", t.out,
                      "folder for bench.jsonl, of which attest report draws a page");
    bench->add_option("--instructions", o.instructions, "AVX3, AVX2, ... (the best there is)");

    auto* audit = app.add_subcommand("audit", "try every planted bug by every law");
    audit->add_option("MUTANT", o.arguments, "planted bugs by their ids (all)");
    audit->add_option("--match", o.match, "laws to try, a glob; bugs of other laws may escape")
        ->allow_extra_args(false);
    audit->add_option("--cases", t.cases,
                      "cases a law and seed (240, half of them on a change that is no bug, 30 of "
                      "laws that the bug's row does not name, 4 where threads are simulated)");
    audit->add_option("--seed", t.seed, "the first seed (1)");
    audit->add_option("--seeds", t.seeds, "a law must see a bug under so many seeds (1)");
    audit->add_option("--jobs", t.jobs, "planted bugs at once (one a core)");
    audit->add_option("--out", o.out, "folder of the results (attest-out)");
}

// What follows a run: its shards joined, its certificate signed and held against its records.
void define_certificates(CLI::App& app, CLI::App& certify, CommandOptions& o, TypedOptions& t) {
    certify.add_option("--sign", o.sign, "KEY that signs it, of attest key new");

    auto* verify = app.add_subcommand("verify", "hold a certificate against its own records");
    verify->add_option("DIR", o.arguments, "a folder that attest certify wrote");
    verify->add_option("--public-key", o.public_key, "FILE of the key that must have signed it");
    verify->add_option("--kernel", o.kernel, "must be the library that was judged");
    verify->add_option("--rerun", t.rerun, "so many of its cases are drawn and judged again");
    verify->add_option("--seed", t.seed, "which cases those are (random)");
    verify->add_option("--against", o.against, "another certificate: tell what changed");
    add_kernel_options(*verify, o, t);
    add_screen_options(*verify, o, t);

    auto* merge = app.add_subcommand("merge", "join the shards of one campaign, and judge it");
    merge->add_option("DIR", o.arguments, "folders of the shards");
    merge->add_option("--out", o.out, "folder of the whole (attest-out)");
    merge->add_option("--sign", o.sign, "KEY that signs its certificate");
    add_report_options(*merge, o, t);

    auto* key = app.add_subcommand("key", "make a key that signs certificates");
    key->add_option("new FILE", o.arguments, "FILE, and its public half FILE.pub");
}

}  // namespace

void declare_options(CLI::App& app, CommandOptions& o, TypedOptions& t) {
    auto* list = app.add_subcommand("list", "what there is: laws, kernels, mutants, profiles, ...");
    list->add_option("WHAT", o.arguments, "laws [ID], kernels, mutants, profiles or fixtures");
    list->add_option("--match", o.match, "names to show, a glob")->allow_extra_args(false);
    add_screen_options(*list, o, t);

    auto* check = app.add_subcommand("check", "judge a kernel by the laws");
    check->add_option("KERNEL", o.arguments,
                      "cpu_flash, ./lib.so, ./file.json, python:module:function, exec:./program");
    add_run_options(*check, o, t);
    check->add_option("--resume", o.resume, "go on with the run in this folder");
    check->add_flag("-x,--until-first", o.until_first, "end with the first violation");
    check->add_option("--record", t.record, "cases: keep a record of each");
    check->add_option("--source", o.source, "FILE:LINE of the kernel, named with each cause");
    add_report_options(*check, o, t);

    add_case_options(*app.add_subcommand("replay", "try one case again; exit 1 while it fails"), o,
                     t, "; none: all that is stored");
    add_case_options(*app.add_subcommand("explain", "show one case: scores, mask, weights"), o, t,
                     "");

    auto* certify = app.add_subcommand("certify", "judge a kernel and write a certificate");
    certify->add_option("KERNEL", o.arguments, "as for check");
    add_run_options(*certify, o, t);
    certify->add_option("--resume", o.resume, "go on with the run in this folder");
    certify->add_option("--source", o.source, "FILE:LINE of the kernel, named with each cause");
    add_file_options(*certify, o);
    add_screen_options(*certify, o, t);

    define_certificates(app, *certify, o, t);

    auto* report = app.add_subcommand("report", "draw the page of a run that was recorded");
    report->add_option("RESULT", o.arguments,
                       "folders of runs, or their result.jsonl; an audit, a bench");
    report->add_option("--out", t.out, "folder of the pages (that of each result)");
    add_file_options(*report, o);

    auto* gate = app.add_subcommand("gate", "hold a candidate against a baseline, case by case");
    gate->add_option("--baseline", o.baseline, "a recorded run's folder, or a kernel");
    gate->add_option("--candidate", o.candidate, "a kernel, or a recorded run's folder");
    gate->add_option("--waivers", o.waivers, "FILE of known failures, with reason and expiry");
    gate->add_option("--accuracy", t.accuracy, "how many times larger errors may be (1.5)");
    gate->add_option("--source", o.source, "FILE:LINE of the kernel, named with each cause");
    gate->add_flag("--report", o.files.page, "write the candidate's report.html, too");
    add_run_options(*gate, o, t);
    add_file_options(*gate, o);
    add_screen_options(*gate, o, t);

    auto* describe = app.add_subcommand("describe", "a kernel's manifest, defaults written out");
    describe->add_option("KERNEL", o.arguments, "as for check");
    describe->add_flag("--laws", o.laws, "instead: which laws it can be asked, and why not others");
    add_kernel_options(*describe, o, t);
    add_screen_options(*describe, o, t);

    define_tools(app, o, t);
    app.add_subcommand("completion", "write what a shell needs to complete commands and options")
        ->add_option("SHELL", o.arguments, "bash or zsh");
    app.add_subcommand("manual", "write the manual page, for man, or that of interface or problem")
        ->add_option("SUBJECT", o.arguments,
                     "interface: how a kernel and its manifest are written; problem: what a "
                     "problem means, field by field; simt: CUDA kernels on a CPU; a word of a "
                     "heading of theirs, manifest or takes: that section");
    for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
    app.allow_extras();
    app.require_subcommand(0, 1);  // what follows is an argument: attest key new FILE
}

}  // namespace attest::ci
