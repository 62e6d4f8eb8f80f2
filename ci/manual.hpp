#pragma once
// What shells complete and the manual page, made from the declarations of commands and options.

#include <CLI/App.hpp>
#include <memory>
#include <string>

namespace attest::ci {

/// What CLI11 says of commands and options, in lines of at most 80 columns.
std::string fitted_help(const std::string& help);

/// A script for bash or zsh. Throws BadInput for another shell.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// attest(1), in the macros of man(7), or the manual of a subject or a section of one. Throws
/// BadInput for another.
std::string manual_page(const CLI::App& app, const std::string& subject);

/// What --help is written with.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace attest::ci
