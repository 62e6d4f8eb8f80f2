// {"case": {...}, "id": "...", "kernel": "...", "law": "...", "shrunk": true}, one file each, named
// ID.json; with "before": [{"case": {...}, "law": "...", "odd": false}, ...] where others have to
// run first. A failure is written the moment it is found; the shrunk one replaces it.

#include "properties/search/store.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reference/problem/case_json.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::search {

namespace {

using nlohmann::json;

/// A pipe or a device of that name would never end.
std::string read_whole(const std::string& path) {
    constexpr std::uintmax_t bytes_max = 64u << 20;  // a case with tensors of its own has fewer
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) throw BadInput(path + ": is no file");
    if (std::filesystem::file_size(path, error) > bytes_max)
        throw BadInput(path + ": is too large for a case");
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw BadInput(path + ": cannot be read");
    return text.str();
}

StoredFailure failure_from(const std::string& text, const std::string& path) {
    const JsonSource source{text, path};
    const Json object = parse_json(source);
    json_keys(source, object, {"before", "case", "id", "kernel", "law", "shrunk"});
    const auto member = [&](const char* key) -> const Json& {
        return json_member(source, object, key);
    };
    StoredFailure failure;
    failure.id = json_string(source, member("id"));
    failure.law = json_string(source, member("law"));
    failure.kernel = json_string(source, member("kernel"));
    failure.shrunk = json_boolean(source, member("shrunk"));
    failure.tried = case_from_json(source, member("case"));
    if (const Json* before = object.find("before"))
        for (const Json& item : json_array(source, *before)) {
            json_keys(source, item, {"case", "law", "odd"});
            failure.before.push_back({json_string(source, json_member(source, item, "law")),
                                      case_from_json(source, json_member(source, item, "case")),
                                      json_boolean(source, json_member(source, item, "odd"))
                                          ? PlacementOrder::odd
                                          : PlacementOrder::even});
        }
    if (failure.id != failure_id(failure.tried, failure.law))
        source.fail(member("id"), "this is not the name of this case and law; the file was edited",
                    "delete the file, or run again with another --out");
    return failure;
}

}  // namespace

std::string failure_id(const Case& tried, std::string_view law) {
    return sha256_hex(to_json(tried) + "\n" + std::string(law));
}

void store_failure(const std::string& directory, const StoredFailure& failure) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) throw InternalError(directory + ": " + error.message());
    json object = {{"case", json::parse(to_json(failure.tried))},
                   {"id", failure.id},
                   {"kernel", failure.kernel},
                   {"law", failure.law},
                   {"shrunk", failure.shrunk}};
    for (const EarlierCase& earlier : failure.before)
        object["before"].push_back({{"case", json::parse(to_json(earlier.tried))},
                                    {"law", earlier.law},
                                    {"odd", earlier.placement == PlacementOrder::odd}});
    const auto path = std::filesystem::path(directory) / (failure.id + ".json");
    write_file_atomically(path.string(), object.dump() + "\n");
}

StoredFailure load_failure(const std::string& path) {
    return failure_from(read_whole(path), path);
}

std::vector<StoredFailure> load_failures(const std::string& directory,
                                         std::vector<std::string>* unread) {
    std::vector<std::string> paths;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error))
        if (it->path().extension() == ".json") paths.push_back(it->path().string());
    if (error && error != std::errc::no_such_file_or_directory)
        throw BadInput(directory + ": " + error.message());
    std::sort(paths.begin(), paths.end());  // the order of names, not of the disk
    std::vector<StoredFailure> failures;
    for (const std::string& path : paths) try {
            failures.push_back(load_failure(path));
        } catch (const BadInput& broken) {
            if (unread == nullptr) throw;
            unread->push_back(broken.what());
        }
    return failures;
}

}  // namespace attest::search
