// attest new KIND NAME: a kernel that holds, its glue and its manifest, to be changed.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ci/commands.hpp"
#include "ci/embedded.hpp"
#include "ci/exit_code.hpp"
#include "ci/suggest.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

struct CopiedFile {
    std::string_view example;  ///< of kernels/examples or the header of the C ABI
    std::string_view file;     ///< @ stands for the name
};

struct Beginning {
    std::string_view name;
    std::string_view called;  ///< in the examples, for which the name is put
    std::vector<CopiedFile> parts;
    std::vector<std::string_view> then;  ///< lines that judge it
};

constexpr std::string_view header = "kernels/interface/attest_kernel.h";

const std::vector<Beginning>& kinds() {
    static const std::vector<Beginning> list = {
        {"c",
         "attention",
         {{"kernels/examples/attention.c", "@.c"},
          {"kernels/examples/attention_glue.c", "@_glue.c"},
          {header, "attest_kernel.h"}},
         {"cc -O2 -shared -fPIC -o @.so @.c @_glue.c -lm", "attest check ./@.so"}},
        {"cpp",
         "attention",
         {{"kernels/examples/attention.cpp", "@.cpp"},
          {"kernels/examples/attention_glue.cpp", "@_glue.cpp"},
          {header, "attest_kernel.h"}},
         {"c++ -O2 -shared -fPIC -o @.so @.cpp @_glue.cpp", "attest check ./@.so"}},
        {"cuda",
         "attention_naive",
         {{"kernels/examples/attention_naive.cu", "@.cu"},
          {"kernels/examples/attention_naive_glue.cpp", "@_glue.cpp"},
          {"kernels/examples/simulated.cmake", "CMakeLists.txt"}},
         {"cmake -B build && cmake --build build", "attest check ./build/@_checked.so"}},
        {"python",
         "numpy_attention",
         {{"kernels/examples/numpy_attention.py", "@.py"}},
         {"attest check python:@:forward"}},
        {"triton",
         "triton_attention",
         {{"kernels/examples/triton_attention.py", "@.py"}},
         {"python3 -m venv .venv && .venv/bin/pip install torch triton numpy",
          "attest check python:@:forward --python .venv/bin/python --shapes 20"}},
    };
    return list;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

std::string text_of(std::string_view example) {
    for (const EmbeddedFile& file : embedded_examples())
        if (file.path == example) return std::string(file.text);
    throw InternalError("no example " + std::string(example));
}

bool holds_text(const std::filesystem::path& path, const std::string& text) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream found;
    found << file.rdbuf();
    return found.str() == text;
}

/// Words of C, C++ and Python, and modules that the examples import: no function or module of the
/// user's can be called so.
constexpr std::string_view taken_words =
    " "
    "alignas alignof and and_eq as asm assert async auto await bitand bitor bool break case "
    "catch char class co_await co_return co_yield compl concept const consteval constexpr "
    "constinit continue decltype def default del delete do double elif else enum except "
    "explicit export extern false finally float for friend from global goto if import in "
    "inline int is lambda long main mutable namespace new noexcept nonlocal not not_eq "
    "nullptr numpy operator or or_eq pass private protected public raise register requires "
    "restrict return short signed sizeof static struct switch template this throw torch "
    "triton true try typedef typeid typename union unsigned using virtual void volatile while "
    "with xor xor_eq yield ";

void require_name(const std::string& name) {
    const auto fits = [](char c) {
        return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
    };
    if (name.empty() || std::isdigit(name.front()) != 0 || !std::ranges::all_of(name, fits))
        throw BadInput("new " + name +
                       ": a name of small letters, digits and _, such as my_kernel");
    if (taken_words.find(" " + name + " ") != std::string_view::npos)
        throw BadInput("new " + name + ": a word that the language or an import has taken",
                       {"a name such as my_" + name});
}

}  // namespace

int new_command(const CommandOptions& options) {
    std::vector<std::string> names;
    std::string all;
    for (const Beginning& kind : kinds()) {
        names.emplace_back(kind.name);
        all += (all.empty() ? "one of " : ", ") + names.back();
    }
    if (options.arguments.size() != 2)
        throw BadInput("new: what kind, and what name?", {"attest new c my_kernel"});
    const std::string &wanted = options.arguments[0], &name = options.arguments[1];
    const auto kind = std::ranges::find(kinds(), wanted, &Beginning::name);
    if (kind == kinds().end())
        throw BadInput("new " + wanted + ": no kind of kernel" + suggestion(wanted, names), {all});
    require_name(name);

    std::vector<std::pair<std::string, std::string>> files;
    for (const CopiedFile& part : kind->parts) {
        const std::string path = replaced(std::string(part.file), "@", name);
        std::string text = text_of(part.example);
        if (part.example != header) text = replaced(std::move(text), kind->called, name);
        if (holds_text(path, text)) continue;
        if (std::filesystem::exists(path))
            throw BadInput(path + ": is there already", {"another name, or another folder"});
        files.emplace_back(path, std::move(text));
    }
    std::string said;
    for (const auto& [path, text] : files) {
        write_file_atomically(path, text);
        said += "wrote " + path + "\n";
    }
    if (files.empty()) said += "nothing written: these files are there, as they would be\n";
    said += "every word of the manifest, backward, masks: attest manual interface\n";
    said += "next:\n";
    for (const std::string_view line : kind->then)
        said += "  " + replaced(std::string(line), "@", name) + "\n";
    write_out(said);
    return exit_holds;
}

}  // namespace attest::ci
