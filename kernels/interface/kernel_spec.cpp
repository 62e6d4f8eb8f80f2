#include "kernels/interface/kernel_spec.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/interface/builtin_catalogue.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/text.hpp"

namespace attest::kernel {
namespace {

namespace fs = std::filesystem;

constexpr const char* forms_remedy =
    "a kernel is a built-in id (cpu_flash), ./libmine.so, ./mine.json, python:module:function or "
    "exec:./program";

std::string stem(const std::string& path) {
    return fs::path(path).stem().string();
}

void require_file(const std::string& path, std::string_view shown) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
        throw BadInput(fmt::format("{}: there is no such file", shown), {forms_remedy});
    }
    if (fs::is_directory(path, ignored)) {
        throw BadInput(fmt::format("{}: this is a folder", shown), {forms_remedy});
    }
}

KernelSpec builtin(std::string_view text) {
    std::vector<std::string_view> ids;
    for (const BuiltinEntry& entry : builtin_catalogue()) {
        if (entry.id == text) {
            KernelSpec spec;
            spec.text = spec.id = std::string(text);
            return spec;
        }
        ids.push_back(entry.id);
    }
    throw BadInput(
        fmt::format("{}: no built-in kernel has this name{}", text, attest::suggestion(text, ids)),
        {"attest list kernels names them all", forms_remedy});
}

KernelSpec library(std::string_view text) {
    KernelSpec spec;
    spec.interface = KernelInterface::c_abi;
    spec.text = std::string(text);
    const std::size_t hash = text.rfind('#');
    spec.path = std::string(text.substr(0, hash));
    if (hash != std::string_view::npos) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + hash + 1, end, spec.index);
        if (error != std::errc() || stop != end) {
            throw BadInput(fmt::format("{}: after # comes the kernel's number in the library, "
                                       "counted from 0",
                                       text),
                           {spec.path + "#1"});
        }
    }
    require_file(spec.path, spec.path);
    spec.id = stem(spec.path);
    if (spec.index != 0) spec.id += fmt::format("#{}", spec.index);
    return spec;
}

KernelSpec python(std::string_view text, std::string_view rest, std::string_view interpreter) {
    KernelSpec spec;
    spec.interface = KernelInterface::python;
    spec.text = std::string(text);
    spec.interpreter = std::string(interpreter);
    const std::size_t colon = rest.find(':');
    spec.module = std::string(rest.substr(0, colon));
    spec.function =
        colon == std::string_view::npos ? "forward" : std::string(rest.substr(colon + 1));
    if (spec.module.empty() || spec.function.empty() ||
        spec.module.find('/') != std::string::npos) {
        throw BadInput(fmt::format("{} names no module by a dotted name, or no function", text),
                       {"python:my_kernels.flash:forward"});
    }
    spec.id = fmt::format("{}:{}", spec.module, spec.function);
    return spec;
}

KernelSpec program(std::string_view text, const std::string& path) {
    KernelSpec spec;
    spec.interface = KernelInterface::executable;
    spec.text = std::string(text);
    spec.path = path;
    if (path.empty()) throw BadInput("exec: names no program", {forms_remedy});
    require_file(path, path);
    if ((fs::status(path).permissions() & fs::perms::owner_exec) == fs::perms::none) {
        throw BadInput(fmt::format("{}: this file may not be run", path), {"chmod +x " + path});
    }
    if (path.find('/') == std::string::npos) spec.path = "./" + path;
    spec.id = stem(path);
    return spec;
}

/// A command: a program, or a list of a program and its arguments.
void read_command(const JsonSource& source, const Json& value, std::string& path,
                  std::vector<std::string>& arguments) {
    if (value.kind == Json::Kind::string) {
        path = value.text;
        return;
    }
    for (const Json& item : json_array(source, value))
        arguments.push_back(json_string(source, item));
    if (arguments.empty()) source.fail(value, "this names no program", "[\"./program\"]");
    path = arguments.front();
    arguments.erase(arguments.begin());
}

struct FileContent {
    std::string kind, value, id, interpreter, index;
    std::vector<std::string> arguments;
};

FileContent read_file(const JsonSource& source, const Json& root) {
    json_keys(source, root, {"library", "index", "command", "python", "interpreter", "id"});
    FileContent content;
    for (const JsonMember& m : root.members) {
        if (m.key == "index") {
            const std::int64_t index = json_integer(source, m.value);
            if (index < 0) source.fail(m.value, "kernels are counted from 0", "0");
            content.index = fmt::format("#{}", index);
        } else if (m.key == "interpreter") {
            content.interpreter = json_string(source, m.value);
        } else if (m.key == "id") {
            content.id = json_string(source, m.value);
        } else {
            if (!content.kind.empty()) {
                source.fail(m.begin, m.end,
                            fmt::format("both {} and {} are given", content.kind, m.key),
                            "one of library, command, python");
            }
            content.kind = m.key;
            if (m.key == "command") {
                read_command(source, m.value, content.value, content.arguments);
            } else {
                content.value = json_string(source, m.value);
            }
            if (content.value.empty()) source.fail(m.value, "a text, not empty", "name a kernel");
        }
    }
    if (content.kind.empty()) {
        source.fail(root.begin, root.begin + 1, "this names no kernel",
                    "one of library, command, python");
    }
    return content;
}

/// A file that names a kernel: see README.md beside this file. Paths are relative to it.
KernelSpec from_file(std::string_view text, std::string_view interpreter) {
    require_file(std::string(text), text);
    std::ifstream stream{std::string(text)};
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const JsonSource source{bytes, text};
    const FileContent content = read_file(source, parse_json(source));
    const fs::path folder = fs::path(text).parent_path();
    const std::string beside = ((folder.empty() ? fs::path(".") : folder) / content.value).string();
    const std::string chosen =
        content.interpreter.empty() ? std::string(interpreter) : content.interpreter;
    KernelSpec spec = content.kind == "library"   ? library(beside + content.index)
                      : content.kind == "command" ? program(text, beside)
                                                  : python(text, content.value, chosen);
    spec.text = std::string(text);
    spec.arguments = content.arguments;
    if (!content.id.empty()) spec.id = content.id;
    return spec;
}

bool ends_with_library(std::string_view text) {
    const std::string_view path = text.substr(0, text.rfind('#'));
    return path.ends_with(".so") || path.find(".so.") != std::string_view::npos;
}

}  // namespace

KernelSpec parse_kernel_spec(std::string_view text, std::string_view python_interpreter) {
    if (text.empty()) throw BadInput("no kernel is named", {forms_remedy});
    if (text.starts_with("python:")) return python(text, text.substr(7), python_interpreter);
    if (text.starts_with("exec:")) return program(text, std::string(text.substr(5)));
    if (text.ends_with(".json")) return from_file(text, python_interpreter);
    if (ends_with_library(text)) return library(text);
    if (text.find('/') != std::string_view::npos) {
        require_file(std::string(text), text);
        throw BadInput(fmt::format("{}: not a .so and not a .json", text), {forms_remedy});
    }
    return builtin(text);
}

}  // namespace attest::kernel
