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

/// Unless this very file is there.
void add(FileDigests& files, std::string name, const std::string& digest) {
    while (files.contains(name) && files[name] != digest) name += "'";
    if (!digest.empty()) files[name] = digest;
}

}  // namespace

FileDigests process_files(int process_id, const kernel::KernelSpec& kernel) {
    std::set<std::string> paths = executed_by(process_id);
    if (kernel.interface == kernel::KernelInterface::python)
        if (const std::string source = module_source(kernel.text); !source.empty())
            paths.insert(source);
    FileDigests files;
    for (const std::string& path : paths)
        add(files, fs::path(path).filename().string(), file_digest(path));
    return files;
}

FileDigests kernel_files(const kernel::KernelSpec& spec, const worker::SessionOptions& options) {
    search::CampaignOptions campaign;
    campaign.kernel = spec;
    campaign.profile = load_profile("quick");
    campaign.session = options;
    search::TimeLimit limit(options, search::patience_of(spec));
    auto loaded = std::make_unique<search::SessionKernel>(spec, options);
    const search::SessionKernel& session = *loaded;
    FileDigests files = process_files(session.process_id(), spec);
    const auto& sources = session.manifest().sources;
    files.insert(sources.begin(), sources.end());
    search::LimitedKernel kernel(std::move(loaded), limit);
    std::vector<std::string> narrowed;
    const search::Capability capability = search::probed_capability(kernel, narrowed);
    search::Workbench bench(campaign, capability, limit);
    bench.try_slot(kernel, law::catalogue().front(), {0, 0, {}});
    for (const auto& [name, digest] : process_files(session.process_id(), spec))
        add(files, name, digest);
    return files;
}

void LaterFiles::look(worker::Session& session) noexcept try {
    const std::set<std::string> mapped = executed_by(session.process_id());
    const FileDigests sources = session.sources_now();
    const std::lock_guard lock(mutex_);
    FileDigests all = known_;
    all.insert(found_.begin(), found_.end());
    for (const std::string& path : mapped)
        if (paths_.insert(path).second)
            add(all, fs::path(path).filename().string(), file_digest(path));
    for (const auto& [name, digest] : sources) add(all, name, digest);
    for (const auto& [name, digest] : known_) all.erase(name);
    found_ = std::move(all);
} catch (const std::exception&) {  // it could not be looked at: a record of it is lost, no verdict
}

FileDigests LaterFiles::found() {
    const std::lock_guard lock(mutex_);
    return found_;
}

}  // namespace attest::ci
