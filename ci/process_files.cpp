#include "ci/process_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ci/profile.hpp"
#include "ci/run.hpp"
#include "properties/law/property.hpp"
#include "properties/search/limited_kernel.hpp"
#include "properties/search/workbench.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

/// The lines of /proc/PID/maps: "5581-5592 r-xp 00000000 08:01 1234    /usr/lib/libm.so.6".
std::set<std::string> executed_by(int process_id) {
    std::ifstream maps("/proc/" + std::to_string(process_id) + "/maps");
    std::set<std::string> paths;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::string range, rights, offset, device, inode, path;
        words >> range >> rights >> offset >> device >> inode >> std::ws;
        std::getline(words, path);
        if (rights.size() == 4 && rights[2] == 'x' && path.starts_with("/")) paths.insert(path);
    }
    return paths;
}

/// Where Python looks for the module: PYTHONPATH, then the working directory.
std::string module_source(const std::string& text) {
    std::string module = text.substr(text.find(':') + 1);
    module = module.substr(0, module.find(':'));
    std::ranges::replace(module, '.', '/');
    const char* listed = std::getenv("PYTHONPATH");
    std::istringstream folders(std::string(listed == nullptr ? "" : listed) + ":.");
    for (std::string folder; std::getline(folders, folder, ':');)
        for (const char* form : {".py", "/__init__.py"}) {
            std::error_code error;
            const std::string path = (folder.empty() ? "." : folder) + "/" + module + form;
            if (fs::is_regular_file(path, error)) return path;
        }
    return {};
}

}  // namespace

std::map<std::string, std::string> process_files(int process_id, const kernel::KernelSpec& kernel) {
    std::set<std::string> paths = executed_by(process_id);
    if (kernel.interface == kernel::KernelInterface::python)
        if (const std::string source = module_source(kernel.text); !source.empty())
            paths.insert(source);
    std::map<std::string, std::string> files;
    for (const std::string& path : paths) {
        std::string name = fs::path(path).filename().string();
        while (files.contains(name)) name += "'";  // another of the same name
        if (const std::string digest = file_digest(path); !digest.empty()) files[name] = digest;
    }
    return files;
}

std::map<std::string, std::string> kernel_files(const kernel::KernelSpec& spec,
                                                const worker::SessionOptions& options) {
    search::CampaignOptions campaign;
    campaign.kernel = spec;
    campaign.profile = load_profile("quick");
    campaign.session = options;
    search::TimeLimit limit(options.timeout, search::patience_of(spec));
    auto loaded = std::make_unique<search::SessionKernel>(spec, options);
    const search::SessionKernel& session = *loaded;
    std::map<std::string, std::string> files = process_files(session.process_id(), spec);
    const auto& sources = session.manifest().sources;
    files.insert(sources.begin(), sources.end());
    search::LimitedKernel kernel(std::move(loaded), limit);
    std::vector<std::string> narrowed;
    const search::Capability capability = search::probed_capability(kernel, narrowed);
    search::Workbench bench(campaign, capability, limit);
    bench.try_slot(kernel, law::catalogue().front(), {0, 0, {}});
    files.merge(process_files(session.process_id(), spec));
    return files;
}

}  // namespace attest::ci
