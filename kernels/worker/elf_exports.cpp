#include "kernels/worker/elf_exports.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

namespace attest::worker {
namespace {

/// Reads count T's at an offset, none where they do not fit.
template <typename T>
std::vector<T> read_array(std::span<const char> file, std::uint64_t offset, std::uint64_t count) {
    if (offset > file.size() || count > (file.size() - offset) / sizeof(T)) return {};
    std::vector<T> out(count);
    if (count != 0) std::memcpy(out.data(), file.data() + offset, count * sizeof(T));
    return out;
}

}  // namespace

std::vector<std::string> exported_symbols(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
    const auto header = read_array<Elf64_Ehdr>(file, 0, 1);
    if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
    if (header[0].e_ident[EI_CLASS] != ELFCLASS64) return {};
    const auto sections = read_array<Elf64_Shdr>(file, header[0].e_shoff, header[0].e_shnum);
    std::vector<std::string> names;
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
        const Elf64_Shdr& strings = sections[section.sh_link];
        const auto text = read_array<char>(file, strings.sh_offset, strings.sh_size);
        const auto symbols =
            read_array<Elf64_Sym>(file, section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
        for (const Elf64_Sym& symbol : symbols) {
            const auto binding = ELF64_ST_BIND(symbol.st_info);
            if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= text.size()) continue;
            if (binding != STB_GLOBAL && binding != STB_WEAK) continue;
            const char* name = text.data() + symbol.st_name;
            names.emplace_back(name, ::strnlen(name, text.size() - symbol.st_name));
        }
    }
    return names;
}

}  // namespace attest::worker
