#include "ci/fixture.hpp"

#include <filesystem>

#include "ci/case_source.hpp"
#include "ci/commands.hpp"
#include "ci/embedded.hpp"
#include "ci/exit_code.hpp"
#include "properties/law/property.hpp"
#include "properties/search/draw.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/file.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

void require_law(const std::string& id, const Case& tried) {
    if (!search::in_space(law_named(id), tried))
        throw BadInput("--law " + id + ": is not tried on such a case",
                       {"attest replay CASE --kernel KERNEL shows the laws that are"});
}

}  // namespace

const std::vector<NamedFixture>& builtin_fixtures() {
    static const std::vector<NamedFixture> all = [] {
        std::vector<NamedFixture> fixtures;
        for (const EmbeddedFile& file : embedded_fixtures())
            fixtures.push_back({std::string(file.name),
                                fixtures::fixture_from_json(file.text, std::string(file.path))});
        return fixtures;
    }();
    return all;
}

int fixture_command(const CommandOptions& o) {
    const std::vector<std::string> usage = {
        "attest fixture fixtures/NAME.json CASE --story \"...\" --law ID"};
    if (o.arguments.size() < 2) throw BadInput("fixture: a file and a case", usage);
    if (o.story.empty()) throw BadInput("fixture: no --story; which mistake does it hunt?", usage);
    if (o.match.empty()) throw BadInput("fixture: no --law; which law sees it?", usage);
    const std::string& path = o.arguments.front();
    if (!path.ends_with(".json")) throw BadInput(path + ": a fixture is a .json file", usage);
    if (!o.replace && fs::exists(path))
        throw BadInput(path + ": exists", {"--replace writes over it"});
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty() && !fs::is_directory(folder))
        throw BadInput(path + ": " + folder.string() + " is no folder", usage);
    const fixtures::Fixture fixture{o.story, o.match, find_case(o.arguments.back(), o.out).tried};
    for (const std::string& law : fixture.laws) require_law(law, fixture.tried);
    write_file_atomically(path, to_json(fixture));
    write_out(path + "  " + print(fixture.tried) + "\n");
    return exit_holds;
}

}  // namespace attest::ci
