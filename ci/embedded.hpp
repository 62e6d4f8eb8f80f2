#pragma once
// Files built into the command, so that it needs none at run time: the profiles, the
// fixtures, what pages are made with, the kernels to begin with, and the manuals.

#include <span>
#include <string_view>

namespace attest::ci {

struct EmbeddedFile {
    std::string_view name;  ///< without folder and extension: "quick"
    std::string_view path;  ///< from the repository's root: "ci/profiles/quick.json"
    std::string_view text;
};

std::span<const EmbeddedFile> embedded_profiles();
std::span<const EmbeddedFile> embedded_fixtures();
std::span<const EmbeddedFile> embedded_pages();  ///< style and script of report.html

std::span<const EmbeddedFile> embedded_examples();  ///< what `attest new` begins with

/// The C interface with the manifest word by word, Python and programs; the frames between the
/// worker and its host; the worker itself; what the fields of a problem mean; CUDA on a CPU.
std::span<const EmbeddedFile> embedded_manuals();

std::string_view attest_version() noexcept;

}  // namespace attest::ci
