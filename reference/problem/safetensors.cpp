#include "reference/problem/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "reference/problem/case.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"
#include "reference/problem/text.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 6> dtypes = {"F64", "F32", "F16", "BF16", "I32", "U8"};
constexpr std::size_t prefix_bytes = 8;
constexpr std::uint64_t header_bytes_max = 100'000'000;  // the format's own limit
constexpr std::int64_t elements_max = std::int64_t{1} << 40;

struct Entry {
    std::string name;
    ElementType type;
    Shape shape;
    std::uint64_t begin, end;
    const Json* place;
};

ElementType read_type(const JsonSource& source, const Json& value) {
    const auto found = std::find(dtypes.begin(), dtypes.end(), json_string(source, value));
    if (found == dtypes.end())
        source.fail(value, "no such element type here", "one of " + joined(dtypes, ", "));
    return static_cast<ElementType>(found - dtypes.begin());
}

std::int64_t whole(const JsonSource& source, const Json& value) {
    const std::int64_t number = json_integer(source, value);
    if (number < 0) source.fail(value, "negative", "a whole number from 0");
    return number;
}

Shape read_shape(const JsonSource& source, const Json& value) {
    const std::vector<Json>& extents = json_array(source, value);
    Shape shape{1, 1, 1, 1};
    if (extents.size() > shape.size()) source.fail(value, "more than four axes", "at most four");
    std::int64_t count = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        shape[i] = whole(source, extents[i]);
        if (shape[i] > elements_max || count > elements_max / std::max<std::int64_t>(shape[i], 1))
            source.fail(extents[i], "a tensor of more than 2^40 elements", "make it smaller");
        count *= shape[i];
    }
    return shape;
}

Entry read_entry(const JsonSource& source, const JsonMember& member) {
    const Json& object = member.value;
    json_keys(source, object, {"dtype", "shape", "data_offsets"});
    Entry entry{member.key,
                read_type(source, json_member(source, object, "dtype")),
                read_shape(source, json_member(source, object, "shape")),
                0,
                0,
                &object};
    const Json& offsets = json_member(source, object, "data_offsets");
    if (json_array(source, offsets).size() != 2)
        source.fail(offsets, "data_offsets has two numbers", "write [begin, end]");
    entry.begin = static_cast<std::uint64_t>(whole(source, offsets.items[0]));
    entry.end = static_cast<std::uint64_t>(whole(source, offsets.items[1]));
    const Shape& s = entry.shape;
    const auto bytes = static_cast<std::uint64_t>(s[0] * s[1] * s[2] * s[3]) * size_of(entry.type);
    if (entry.end < entry.begin || entry.end - entry.begin != bytes)
        source.fail(offsets, "data_offsets do not span the tensor",
                    "end - begin is " + std::to_string(bytes));
    return entry;
}

std::vector<Entry> read_header(const JsonSource& source, const Json& header) {
    if (header.kind != Json::Kind::object)
        source.fail(header, "the header is no object", "write {...}");
    std::vector<Entry> entries;
    for (const JsonMember& member : header.members) {
        if (member.key != "__metadata__") {
            entries.push_back(read_entry(source, member));
            continue;
        }
        if (member.value.kind != Json::Kind::object)
            source.fail(member.value, "__metadata__ is no object", "write {...}");
        for (const JsonMember& note : member.value.members) json_string(source, note.value);
    }
    return entries;
}

[[noreturn]] void fail(std::string_view source, const std::string& what) {
    throw BadInput(std::string(source) + ": " + what,
                   {"write it again with a safetensors writer; the file may be cut"});
}

}  // namespace

std::map<std::string, Tensor> parse_safetensors(std::string_view bytes, std::string_view source) {
    std::uint64_t header_bytes = 0;
    if (bytes.size() < prefix_bytes) fail(source, "shorter than the 8 bytes every file has");
    std::memcpy(&header_bytes, bytes.data(), prefix_bytes);
    const std::size_t rest = bytes.size() - prefix_bytes;
    if (header_bytes > std::min<std::uint64_t>(rest, header_bytes_max))
        fail(source, "a header of " + std::to_string(header_bytes) + " bytes in a file of " +
                         std::to_string(bytes.size()));
    const JsonSource text{bytes.substr(prefix_bytes, header_bytes), source};
    const std::string_view data = bytes.substr(prefix_bytes + header_bytes);
    const Json header = parse_json(text);
    std::vector<Entry> entries = read_header(text, header);
    std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
        return std::pair(x.begin, x.end) < std::pair(y.begin, y.end);
    });
    std::uint64_t covered = 0;
    for (const Entry& entry : entries) {
        if (entry.begin != covered)
            text.fail(*entry.place,
                      entry.begin < covered ? "overlaps another tensor" : "leaves a hole",
                      "begin at " + std::to_string(covered));
        covered = entry.end;
    }
    if (covered != data.size())
        fail(source, std::to_string(data.size()) + " bytes of data where the header has " +
                         std::to_string(covered));
    std::map<std::string, Tensor> tensors;
    for (const Entry& entry : entries) {
        Tensor tensor(entry.type, entry.shape);
        if (tensor.size() > 0)
            std::memcpy(tensor.bytes().data(), data.data() + entry.begin, tensor.bytes().size());
        tensors.emplace(entry.name, std::move(tensor));
    }
    return tensors;
}

std::string safetensors_bytes(const std::map<std::string, Tensor>& tensors) {
    std::string header = "{", data;
    for (const auto& [name, tensor] : tensors) {
        const bool plain =
            name.find_first_of("\"\\") == name.npos &&
            std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20; });
        require(plain && name != "__metadata__", "a tensor's name needs no escape in JSON");
        const Shape& s = tensor.shape();
        if (header.size() > 1) header += ',';
        header += '"' + name + "\":{\"dtype\":\"" +
                  std::string(dtypes[static_cast<std::size_t>(tensor.type())]) + "\",\"shape\":[" +
                  std::to_string(s[0]) + ',' + std::to_string(s[1]) + ',' + std::to_string(s[2]) +
                  ',' + std::to_string(s[3]) + "],\"data_offsets\":[" +
                  std::to_string(data.size()) + ',';
        data.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
        header += std::to_string(data.size()) + "]}";
    }
    header += '}';
    header.append((8 - header.size() % 8) % 8, ' ');  // data aligned to 8 bytes, as readers expect
    const std::uint64_t header_bytes = header.size();
    std::string out(prefix_bytes, '\0');
    std::memcpy(out.data(), &header_bytes, prefix_bytes);
    return out + header + data;
}

std::map<std::string, Tensor> read_safetensors(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               std::fclose);
    const auto refuse = [&] {
        throw BadInput(path + ": " + std::strerror(errno), {"a safetensors file is read here"});
    };
    if (!file) refuse();
    std::string bytes;
    std::vector<char> part(1 << 16);
    while (const std::size_t count = std::fread(part.data(), 1, part.size(), file.get()))
        bytes.append(part.data(), count);
    if (std::ferror(file.get()) != 0) refuse();
    return parse_safetensors(bytes, path);
}

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
    write_file_atomically(path, safetensors_bytes(tensors));
}

}  // namespace attest
