#include "ci/profile.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ci/embedded.hpp"
#include "ci/suggest.hpp"
#include "properties/law/property.hpp"
#include "properties/search/glob.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"

namespace attest::ci {

namespace {

// Reads the members of one object; every mistake points at its place.
class Reader {
public:
    Reader(const JsonSource& source, const Json& object) : source_(source), object_(object) {
        if (object.kind != Json::Kind::object)
            source.fail(object, "a profile is a JSON object", "ci/profiles/quick.json is one");
    }

    void whole(const std::string& key, std::int64_t least, std::int64_t& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        const auto number = value->kind == Json::Kind::number
                                ? parse_integer<std::int64_t>(value->text)
                                : std::nullopt;
        if (!number || *number < least)
            fail(key, *value, "a whole number, at least " + std::to_string(least));
        out = *number;
    }
    void sizes(const char* key, search::Sizes& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (value->kind != Json::Kind::object)
            fail(key, *value, "an object, such as {\"batch\": 9}");
        Reader read(source_, *value);
        out = {};
        for (int n = 0; n < search::size_axis_count; ++n) {
            const auto axis = static_cast<search::SizeAxis>(n);
            read.whole(std::string(search::name(axis)), 1, out[axis]);
        }
        read.finish({});
    }
    void share(const char* key, double& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        const auto number =
            value->kind == Json::Kind::number ? parse_decimal(value->text) : std::nullopt;
        if (!number || !(*number >= 0 && *number <= 1)) fail(key, *value, "a share, from 0 to 1");
        out = *number;
    }
    void flag(const char* key, bool& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (value->kind != Json::Kind::boolean) fail(key, *value, "true or false");
        out = value->boolean;
    }
    void text(const char* key, std::string& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (value->kind != Json::Kind::string || value->text.empty()) fail(key, *value, "a text");
        out = value->text;
    }
    void texts(const char* key, const std::vector<std::string>& allowed,
               std::vector<std::string>& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (value->kind != Json::Kind::array) fail(key, *value, "a list of texts");
        out.clear();
        for (const Json& one : value->items) {
            if (one.kind != Json::Kind::string) fail(key, one, "a list of texts");
            if (!allowed.empty() &&
                std::find(allowed.begin(), allowed.end(), one.text) == allowed.end())
                fail(key, one, "made of " + listed(allowed));
            out.push_back(one.text);
        }
    }
    /// Globs on laws, each of which names one at least.
    void laws(const char* key, std::vector<std::string>& out) {
        texts(key, {}, out);
        const Json* value = object_.find(key);
        std::vector<std::string> ids;
        for (const law::Property& law : law::catalogue()) ids.push_back(law.id);
        for (std::size_t n = 0; value != nullptr && n < out.size(); ++n)
            if (std::ranges::none_of(
                    ids, [&](const std::string& id) { return search::matches(out[n], id); }))
                source_.fail(value->items[n],
                             "no law is named \"" + out[n] + "\"" + suggestion(out[n], ids),
                             "attest list laws shows them");
    }
    void finish(const std::vector<std::string>& required) const {
        for (const JsonMember& member : object_.members)
            if (std::find(seen_.begin(), seen_.end(), member.key) == seen_.end())
                source_.fail(
                    member.begin, member.end,
                    "no key \"" + member.key + "\" in a profile" + suggestion(member.key, seen_),
                    "the keys are " + listed(seen_));
        for (const std::string& key : required)
            if (object_.find(key) == nullptr)
                source_.fail(object_, "a profile needs the key \"" + key + "\"",
                             "required are " + listed(required));
    }

private:
    const Json* find(const std::string& key) {
        seen_.push_back(key);
        return object_.find(key);
    }
    [[noreturn]] void fail(const std::string& key, const Json& value,
                           const std::string& allowed) const {
        source_.fail(value, "\"" + key + "\" must be " + allowed, "");
    }
    static std::string listed(const std::vector<std::string>& words) {
        std::string all;
        for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
        return all;
    }

    const JsonSource& source_;
    const Json& object_;
    std::vector<std::string> seen_;
};

ProfileSummary parse(std::string_view text, const std::string& source_name) {
    const JsonSource source{text, source_name};
    const Json object = parse_json(source);
    ProfileSummary out;
    search::Profile& p = out.profile;
    Reader read(source, object);
    read.text("name", p.name);
    read.whole("version", 1, p.version);
    read.text("summary", out.summary);
    read.whole("cases_per_law", 1, p.cases_per_law);
    read.whole("scores_max", 1, p.scores_max);
    read.whole("len_max", 1, p.len_max);
    read.whole("len_min", 1, p.len_min);
    read.whole("dim_max", 1, p.dim_max);
    read.sizes("reach", p.reach);
    read.laws("laws", p.laws);
    read.laws("laws_excluded", p.laws_excluded);
    read.flag("backward", p.backward);
    read.texts("fails", {"violation", "structure", "suspect"}, p.fails);
    read.share("discard_max", p.discard_max);
    read.share("refuse_max", p.refuse_max);
    read.whole("undrawn_pairs_max", 0, p.undrawn_pairs_max);
    read.finish({"name", "version", "cases_per_law"});
    return out;
}

}  // namespace

search::Profile parse_profile(std::string_view json, const std::string& source_name) {
    return parse(json, source_name).profile;
}

std::vector<ProfileSummary> builtin_profiles() {
    std::vector<ProfileSummary> all;
    for (const EmbeddedFile& file : embedded_profiles())
        all.push_back(parse(file.text, std::string(file.path)));
    std::stable_sort(all.begin(), all.end(), [](const ProfileSummary& a, const ProfileSummary& b) {
        const auto cost = [](const search::Profile& p) { return p.cases_per_law * p.scores_max; };
        return cost(a.profile) < cost(b.profile);
    });
    return all;
}

search::Profile load_profile(const std::string& name) {
    if (name.ends_with(".json")) {
        std::ifstream file(name, std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        if (!file) throw BadInput("--profile " + name + ": no such file");
        return parse_profile(text.str(), name);
    }
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_profiles()) {
        if (file.name == name) return parse_profile(file.text, std::string(file.path));
        names.emplace_back(file.name);
    }
    throw BadInput("--profile " + name + ": no such profile" + suggestion(name, names),
                   {"attest list profiles shows them; a file's name ends in .json"});
}

}  // namespace attest::ci
