// How kernels are named on the command line.

#include "kernels/interface/kernel_spec.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "reference/problem/errors.hpp"

namespace attest::kernel {
namespace {

namespace fs = std::filesystem;

class Spec : public testing::Test {
protected:
    Spec() {
        folder_ = fs::temp_directory_path() / ("attest_spec_" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    ~Spec() override { fs::remove_all(folder_); }

    std::string file(const std::string& name, const std::string& content, unsigned mode = 0644) {
        const fs::path path = folder_ / name;
        std::ofstream(path) << content;
        ::chmod(path.c_str(), mode);
        return path.string();
    }
    static std::string error_of(const std::string& text) {
        try {
            parse_kernel_spec(text);
        } catch (const BadInput& error) {
            return error.what();
        }
        return "";
    }
    fs::path folder_;
};

TEST_F(Spec, Libraries) {
    const std::string path = file("libmine.so", "");
    KernelSpec spec = parse_kernel_spec(path);
    EXPECT_EQ(spec.interface, KernelInterface::c_abi);
    EXPECT_EQ(spec.path, path);
    EXPECT_EQ(spec.index, 0u);
    EXPECT_EQ(spec.id, "libmine");
    spec = parse_kernel_spec(path + "#12");
    EXPECT_EQ(spec.path, path);
    EXPECT_EQ(spec.index, 12u);
    EXPECT_EQ(spec.id, "libmine#12");
    EXPECT_EQ(spec.text, path + "#12");
    EXPECT_NE(error_of(path + "#x"), "");
    EXPECT_NE(error_of(path + "#-1"), "");
    EXPECT_NE(error_of(path + "#"), "");
    EXPECT_NE(error_of((folder_ / "other.so").string()), "");
}

TEST_F(Spec, PythonFunctions) {
    KernelSpec spec = parse_kernel_spec("python:a.b:f", "/opt/python");
    EXPECT_EQ(spec.interface, KernelInterface::python);
    EXPECT_EQ(spec.module, "a.b");
    EXPECT_EQ(spec.function, "f");
    EXPECT_EQ(spec.interpreter, "/opt/python");
    EXPECT_EQ(spec.id, "a.b:f");
    EXPECT_EQ(parse_kernel_spec("python:a").function, "forward");
    EXPECT_EQ(parse_kernel_spec("python:a").interpreter, "python3");
    for (const char* bad : {"python:", "python::f", "python:a:", "python:a/b:f"}) {
        EXPECT_NE(error_of(bad), "") << bad;
    }
}

TEST_F(Spec, Programs) {
    const std::string path = file("kernel", "", 0755);
    const KernelSpec spec = parse_kernel_spec("exec:" + path);
    EXPECT_EQ(spec.interface, KernelInterface::executable);
    EXPECT_EQ(spec.path, path);
    EXPECT_EQ(error_of("exec:" + file("data", "")),
              (folder_ / "data").string() + ": this file may not be run");
    EXPECT_EQ(error_of("exec:" + folder_.string()), folder_.string() + ": this is a folder");
}

TEST_F(Spec, Files) {
    file("libmine.so", "");
    file("run", "", 0755);
    KernelSpec spec =
        parse_kernel_spec(file("a.json", R"({"library": "libmine.so", "index": 3, "id": "mine"})"));
    EXPECT_EQ(spec.interface, KernelInterface::c_abi);
    EXPECT_EQ(spec.path, (folder_ / "libmine.so").string());
    EXPECT_EQ(spec.index, 3u);
    EXPECT_EQ(spec.id, "mine");
    spec = parse_kernel_spec(file("b.json", R"({"command": ["run", "--fast", "2"]})"));
    EXPECT_EQ(spec.interface, KernelInterface::executable);
    EXPECT_EQ(spec.path, (folder_ / "run").string());
    EXPECT_EQ(spec.arguments, (std::vector<std::string>{"--fast", "2"}));
    spec = parse_kernel_spec(file("c.json", R"({"python": "m:f", "interpreter": "/opt/python"})"));
    EXPECT_EQ(spec.module, "m");
    EXPECT_EQ(spec.interpreter, "/opt/python");
    for (const char* bad : {"{}", "[]", R"({"library": 3})", R"({"librry": "libmine.so"})",
                            R"({"library": "libmine.so", "python": "m"})", R"({"command": []})",
                            R"({"library": "libmine.so", "index": -1})", R"({"python": ""})"}) {
        EXPECT_NE(error_of(file("bad.json", bad)), "") << bad;
    }
}

TEST_F(Spec, NothingElse) {
    EXPECT_EQ(error_of(""), "no kernel is named");
    EXPECT_EQ(error_of("./" + std::string("nowhere")), "./nowhere: there is no such file");
    EXPECT_EQ(error_of(file("notes.txt", "")),
              (folder_ / "notes.txt").string() + ": not a .so and not a .json");
}

}  // namespace
}  // namespace attest::kernel
