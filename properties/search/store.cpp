// Stored failures: {"case": {...}, "id": "...", "kernel": "...", "law": "...", "shrunk": true}, one
// file each, named ID.json. A failure is written the moment it is found; the shrunk one replaces
// it.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "properties/search/campaign.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

using nlohmann::json;

std::string read_whole(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw BadInput(path + ": cannot be read");
    return text.str();
}

json parsed(const std::string& text, const std::string& path) {
    try {
        return json::parse(text);
    } catch (const json::parse_error& error) {
        const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
        const auto upto = text.begin() + static_cast<std::ptrdiff_t>(at);
        const auto line = 1 + std::count(text.begin(), upto, '\n');
        const std::size_t start = text.rfind('\n', at == 0 ? 0 : at - 1);
        const std::size_t column = at + 1 - (start == std::string::npos || at == 0 ? 0 : start + 1);
        throw BadInput(
            path + ":" + std::to_string(line) + ":" + std::to_string(column) + ": this is not JSON",
            {"delete the file, or run again with another --out"});
    }
}

StoredFailure failure_from(const std::string& text, const std::string& path) {
    const json object = parsed(text, path);
    const auto refuse = [&](const std::string& what) {
        throw BadInput(path + ":1:1: " + what,
                       {"a stored failure has the keys case, id, kernel, law, shrunk"});
    };
    if (!object.is_object()) refuse("not a JSON object");
    for (const auto& [key, value] : object.items())
        if (key != "case" && key != "id" && key != "kernel" && key != "law" && key != "shrunk")
            refuse("unknown key '" + key + "'");
    for (const char* key : {"id", "kernel", "law"})
        if (!object.contains(key) || !object[key].is_string())
            refuse(std::string("'") + key + "' must be a text");
    if (!object.contains("shrunk") || !object["shrunk"].is_boolean())
        refuse("'shrunk' must be true or false");
    if (!object.contains("case") || !object["case"].is_object()) refuse("'case' must be a case");
    StoredFailure failure;
    failure.id = object["id"];
    failure.law = object["law"];
    failure.kernel = object["kernel"];
    failure.shrunk = object["shrunk"];
    failure.subject = case_from_json(object["case"].dump(), path);
    if (failure.id != failure_id(failure.subject, failure.law))
        refuse("'id' is not the name of this case and law; the file was edited");
    return failure;
}

}  // namespace

std::string failure_id(const Case& subject, std::string_view law) {
    return sha256_hex(to_json(subject) + "\n" + std::string(law));
}

void store_failure(const std::string& directory, const StoredFailure& failure) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) throw InternalError(directory + ": " + error.message());
    const json object = {{"case", json::parse(to_json(failure.subject))},
                         {"id", failure.id},
                         {"kernel", failure.kernel},
                         {"law", failure.law},
                         {"shrunk", failure.shrunk}};
    const auto path = std::filesystem::path(directory) / (failure.id + ".json");
    write_file_atomically(path.string(), object.dump() + "\n");
}

std::vector<StoredFailure> load_failures(const std::string& directory) {
    std::vector<std::string> paths;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error))
        if (it->path().extension() == ".json") paths.push_back(it->path().string());
    if (error && error != std::errc::no_such_file_or_directory)
        throw BadInput(directory + ": " + error.message());
    std::sort(paths.begin(), paths.end());  // the order of names, not of the disk
    std::vector<StoredFailure> failures;
    for (const std::string& path : paths) failures.push_back(failure_from(read_whole(path), path));
    return failures;
}

}  // namespace attest
