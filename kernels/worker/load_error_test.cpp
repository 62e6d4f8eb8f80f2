// What a person reads where a kernel cannot be loaded.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kernels/worker/example_kernels_test.hpp"
#include "kernels/worker/session.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::worker {
namespace {

namespace fs = std::filesystem;

/// All lines of the error that opening this kernel gives, with the example folder's name taken out.
std::string error_of(const std::string& kernel, const std::string& interpreter = "python3") {
    const auto text_of = [](const auto& error) {
        std::string text = error.what();
        for (const std::string& line : error.details()) text += "\n" + line;
        const std::string folder = example("");
        for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
            text.replace(at, folder.size(), "./");
        }
        return text;
    };
    try {
        const Session session(kernel::parse_kernel_spec(kernel, interpreter), {});
    } catch (const BadInput& error) {
        return text_of(error);
    } catch (const LoadCrash& error) {
        return "CRASH " + text_of(error);
    }
    return "";
}

std::string misbehaving(int index) {
    return error_of(example(fmt::format("libmisbehaving.so#{}", index)));
}

class LoadError : public testing::Test {
protected:
    LoadError() {
        EXPECT_EQ(::chdir(example("").c_str()), 0);
        folder_ = fs::temp_directory_path() / fmt::format("attest_load_error_{}", ::getpid());
        fs::create_directories(folder_);
    }
    ~LoadError() override { fs::remove_all(folder_); }

    std::string file(const std::string& name, const std::string& content) {
        const fs::path path = folder_ / name;
        std::ofstream(path) << content;
        ::chmod(path.c_str(), 0755);
        return path.string();
    }

    fs::path folder_;
};

TEST_F(LoadError, NotAPlugin) {
    EXPECT_EQ(error_of(example("libnot_a_plugin.so")),
              "./libnot_a_plugin.so: exports no attest_get_kernel\n"
              "it exports 1 symbol; did you mean attest_get_kernels?\n"
              "declare it extern \"C\" and ATTEST_EXPORT, as attest_kernel.h does");
}

TEST_F(LoadError, Unloadable) {
    EXPECT_EQ(error_of(example("libunloadable.so")),
              "./libunloadable.so: cannot be loaded: libnot_found.so not found\n"
              "needed by ./libunloadable.so; set LD_LIBRARY_PATH or link it statically");
}

TEST_F(LoadError, NotALibrary) {
    const std::string path = file("text.so", "these are words, not a library");
    EXPECT_EQ(error_of(path), path +
                                  ": cannot be loaded: file too short\n"
                                  "build it for this machine: cc -shared -fPIC");
}

TEST_F(LoadError, NoSuchFile) {
    EXPECT_EQ(error_of("./libnowhere.so").substr(0, 38), "./libnowhere.so: there is no such file");
}

TEST_F(LoadError, NoSuchBuiltin) {
    EXPECT_EQ(error_of("cpu_flsh").substr(0, 67),
              "cpu_flsh: no built-in kernel has this name; did you mean cpu_flash?");
}

TEST_F(LoadError, NoSuchIndex) {
    EXPECT_EQ(error_of(example("libplugin.so#7")),
              "./libplugin.so#7: has no kernel number 7; its last is number 0");
}

TEST_F(LoadError, CrashInCreate) {
    const std::string text = misbehaving(22);
    EXPECT_EQ(text.substr(0, text.find('+')),
              "CRASH ./libmisbehaving.so#22: its process died of SIGSEGV inside create()\n"
              "at libmisbehaving.so");
    EXPECT_TRUE(text.ends_with("\nno law was checked; 3 attempts, the same each time")) << text;
}

TEST_F(LoadError, FailureInCreate) {
    EXPECT_EQ(misbehaving(23),
              "./libmisbehaving.so#23: create() failed with code 5: no tables for this processor");
}

TEST_F(LoadError, BadManifest) {
    const std::string text = misbehaving(25);
    EXPECT_EQ(text.substr(0, text.find('\n')),
              "./libmisbehaving.so#25: manifest:1:84: dialect.causal is \"bottom-right\"; "
              "did you mean bottom_right?");
    EXPECT_TRUE(text.ends_with("^^^^^^^^^^^^^^\none of bottom_right, top_left")) << text;
}

TEST_F(LoadError, AnotherAbi) {
    EXPECT_EQ(misbehaving(26),
              "./libmisbehaving.so#26: built for ABI 2, this attest speaks ABI 1\n"
              "build it with this attest's attest_kernel.h, or return NULL where host_abi is 1");
}

TEST_F(LoadError, StructTooSmall) {
    EXPECT_EQ(
        misbehaving(27),
        "./libmisbehaving.so#27: attest_kernel_api.struct_size is 24, at least 64 are needed\n"
        "set it to sizeof(attest_kernel_api)");
}

TEST_F(LoadError, MissingFunction) {
    EXPECT_EQ(misbehaving(28),
              "./libmisbehaving.so#28: attest_kernel_api.forward is NULL\n"
              "manifest and forward are required");
}

TEST_F(LoadError, CrashInGetKernel) {
    const std::string text = misbehaving(29);
    EXPECT_EQ(text.substr(0, text.find('+')),
              "CRASH ./libmisbehaving.so#29: its process died of SIGSEGV inside "
              "attest_get_kernel(1, 29)\nat libmisbehaving.so");
    EXPECT_TRUE(text.ends_with("\nno law was checked; 3 attempts, the same each time")) << text;
}

TEST_F(LoadError, MissingPythonModule) {
    const std::string text = error_of("python:my_kernels.flash:forward");
    EXPECT_EQ(text.substr(0, text.find("searched")), "python: No module named my_kernels\n");
    EXPECT_NE(text.find(" folders, last .; interpreter /"), std::string::npos) << text;
    EXPECT_TRUE(
        text.ends_with("PYTHONPATH=path/to/parent attest check "
                       "python:my_kernels.flash:forward\n"
                       "or --python path/to/venv/bin/python"))
        << text;
}

TEST_F(LoadError, MissingNumpy) {
    // -S leaves out the folders of installed packages.
    const std::string bare = file("bare_python", "#!/bin/sh\nexec /usr/bin/python3 -S \"$@\"\n");
    const std::string text = error_of("python:numpy_attention:forward", bare);
    EXPECT_EQ(text.substr(0, 39), "python: the worker needs numpy, which /");
    EXPECT_TRUE(text.ends_with(" -m pip install numpy")) << text;
}

TEST_F(LoadError, PythonRaisesAtImport) {
    const std::string text = error_of("python:raises_at_import:forward");
    EXPECT_TRUE(
        text.starts_with("python: raises_at_import:forward raised at import\n"
                         "raises_at_import.py:5  import no_such_framework  # noqa: E402, F401\n"
                         "ModuleNotFoundError: No module named 'no_such_framework'\n"
                         "interpreter /"))
        << text;
    EXPECT_TRUE(
        text.ends_with("; --python path/to/venv/bin/python for another\n"
                       "no law was checked"))
        << text;
}

TEST_F(LoadError, NamesAVariableThatIsWithheld) {
    ::setenv("no_such_framework", "a word of its error", 1);
    const std::string text = error_of("python:raises_at_import:forward");
    ::unsetenv("no_such_framework");
    EXPECT_TRUE(text.ends_with("not given no_such_framework; --env no_such_framework does so"));
}

TEST_F(LoadError, PythonFunctionAndManifest) {
    EXPECT_EQ(error_of("python:numpy_attention:forwrd"),
              "python: numpy_attention has no function forwrd; did you mean forward?");
    EXPECT_EQ(error_of("python:json:loads").substr(0, 57),
              "python: json has no dict ATTEST, the kernel's manifest\nAT");
}

TEST_F(LoadError, PythonFunctionThatTakesNoTensorsByName) {
    EXPECT_EQ(::chdir(folder_.c_str()), 0);
    const auto kernel = [this](const char* arguments, const char* features = "[]") {
        file("narrow.py", std::string("ATTEST = {'name': 'd', 'version': '1', 'features': ") +
                              features + "}\ndef forward(" + arguments + "): pass\n");
        return error_of("python:narrow:forward");
    };
    EXPECT_EQ(
        kernel("problem, q, k, v"),
        "python: narrow.forward(problem, q, k, v) cannot be called: got an unexpected keyword "
        "argument 'o'\n"
        "def forward(problem, q, k, v, **tensors): o, and what else a problem has, come by "
        "name");
    EXPECT_EQ(kernel("q, k, v, o").substr(0, 78),
              "python: narrow.forward(q, k, v, o) cannot be called: multiple values for argum");
    EXPECT_EQ(kernel("q, k, v, **o").substr(0, 72),
              "python: narrow.forward(q, k, v, **o) cannot be called: too many position");
    // Its manifest has no formats, which is seen after this.
    for (const char* right : {"problem, q, k, v, o, **_", "*_, **__", "problem, q, k, v, o, lse"})
        EXPECT_EQ(kernel(right).find("cannot be called"), std::string::npos) << right;
    // What a feature brings comes by name, too.
    const char* listed = "['causal', 'lse', 'sink']";
    EXPECT_NE(kernel("problem, q, k, v, o, lse", listed)
                  .find("cannot be called: got an unexpected keyword argument 'sinks', and its "
                        "manifest lists sink"),
              std::string::npos);
    for (const char* right : {"problem, q, k, v, o, lse=None, sinks=None", "problem, q, k, v, **_"})
        EXPECT_EQ(kernel(right, listed).find("cannot be called"), std::string::npos) << right;
}

TEST_F(LoadError, PythonGradientsOfAFramework) {
    EXPECT_EQ(::chdir(folder_.c_str()), 0);
    const auto kernel = [this](const std::string& gradients) {
        file("derived.py",
             "import sys\nsys.modules['torch'] = None  # as where it is not installed\n"
             "ATTEST = {'name': 'd', 'version': '1', 'formats': ['f32'], 'gradients': " +
                 gradients + "}\ndef forward(*_, **__): pass\n");
        return error_of("python:derived:forward");
    };
    EXPECT_EQ(kernel("'autograd'").substr(0, 57),
              "python: derived.ATTEST has \"gradients\": \"autograd\", and /");
    EXPECT_EQ(kernel("{'autograd': ['q']}").substr(0, 36), "python: derived.ATTEST has \"gradient");
    EXPECT_EQ(kernel("'backprop'"),
              "python: derived.ATTEST: \"gradients\": \"backprop\" is no way to them: autograd or "
              "vjp, or a list");
}

TEST_F(LoadError, NoSuchInterpreter) {
    EXPECT_EQ(error_of("python:numpy_attention:forward", "./no_python"),
              "python: ./no_python cannot be run: No such file or directory");
}

TEST_F(LoadError, AProgramThatSpeaksNoFrames) {
    const std::string text = error_of("exec:" + file("silent", "#!/bin/sh\nexit 3\n"));
    EXPECT_NE(text.find(": its process ended by itself with exit code 3 while it was loaded\n"),
              std::string::npos)
        << text;
}

TEST_F(LoadError, FramesThatLieAreSeenThrough) {
    const std::string program = file("liar", R"(#!/usr/bin/env python3
import socket, struct
header = struct.Struct("<IHHII")
host = socket.socket(fileno=3)
magic, lie = 0x54544157, 0xFFFFFFFF
host.recv(1 << 17)
for frame in (b"short", header.pack(0, 2, 2, 16, 1), header.pack(magic, 2, 2, 9999, 1),
              header.pack(magic, 2, 2, 24, 99) + bytes(8), header.pack(magic, 2, 7, 16, 1)):
    host.send(frame)
text = b'{"name": "liar", "version": "1", "formats": ["f32"], "features": ["lse"]}'
host.send(header.pack(magic, 2, 2, 24 + len(text), 1) + struct.pack("<II", lie, 0) + text)
sequence = header.unpack_from(host.recv(1 << 17))[4]
host.send(header.pack(magic, 2, 5, 32, sequence) + struct.pack("<IIQ", 1, lie, 0))
sequence = header.unpack_from(host.recv(1 << 17))[4]
reply = struct.pack("<IiQQII", 77, 0, 0, lie, lie, 0)
host.send(header.pack(magic, 2, 7, 49, sequence) + reply + b"!")
host.recv(1 << 17)
)");
    Session session(kernel::parse_kernel_spec("exec:" + program), {});
    EXPECT_EQ(session.manifest().name, "liar");
    const Problem problem;
    const CallResult result =
        session.forward(problem, make_inputs({.problem = problem, .values = {}}));
    EXPECT_EQ(result.outcome, Outcome::error);
    EXPECT_EQ(result.reason, "!");
}

TEST_F(LoadError, AProgramOfAnOlderAttestIsToldSo) {
    const std::string program = file("older", R"(#!/usr/bin/env python3
import socket, struct
host = socket.socket(fileno=3)
host.recv(1 << 17)
host.send(struct.pack("<IHHII", 0x54544157, 1, 2, 26, 1) + struct.pack("<II", 2, 0) + b"{}")
host.recv(1 << 17)
)");
    const std::string text = error_of("exec:" + program);
    EXPECT_NE(text.find(": it speaks version 1 of the frames, attest version 2\n"), text.npos)
        << text;
}

TEST_F(LoadError, AFileNamesAKernel) {
    EXPECT_EQ(error_of(file("mine.json", "{\"library\": \"" + example("libplugin.so") + "\"}")),
              "");
}

}  // namespace
}  // namespace attest::worker
