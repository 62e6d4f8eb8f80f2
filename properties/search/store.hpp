#pragma once
// Stored failures: one JSON file a (case, law), written atomically, named by its id.

#include <string>
#include <string_view>
#include <vector>

#include "properties/search/confirmation.hpp"

namespace attest::search {

struct StoredFailure {
    std::string id, law, kernel;
    Case tried;
    bool shrunk = false;  ///< its smallest form, which fails by itself every time
    std::vector<EarlierCase> before;  ///< without which it does not fail
};
std::string failure_id(const Case& tried, std::string_view law);
void store_failure(const std::string& directory, const StoredFailure& failure);
/// Of one file. Throws BadInput.
StoredFailure load_failure(const std::string& path);
/// What is wrong with a file goes into `unread`, and the others are read all the same; without it,
/// BadInput.
std::vector<StoredFailure> load_failures(const std::string& directory,
                                         std::vector<std::string>* unread = nullptr);

}  // namespace attest::search
