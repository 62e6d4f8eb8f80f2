#pragma once
// Text from outside (kernel names, reasons, paths, what a kernel says) made harmless in each of the
// languages that reports are written in. Control characters are gone first: screen.hpp, clean().

#include <string>
#include <string_view>

namespace attest::ci {

/// & < > " ': for HTML and XML, between tags and in attributes.
std::string xml_escaped(std::string_view text, std::size_t most = 300);
/// For a line, a table's cell or a heading of Markdown.
std::string markdown_escaped(std::string_view text);
/// For the message of a workflow command of GitHub: % and line ends, which stay line ends.
std::string annotation_escaped(std::string_view text);
/// For its properties: : and , too.
std::string annotation_property(std::string_view text);
/// A relative reference, or file:// where the path is absolute.
std::string uri_of(std::string_view path);
/// One word of a shell's line: quoted, unless it needs no quotes.
std::string shell_word(std::string_view text);

}  // namespace attest::ci
