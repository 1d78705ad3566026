// Each index of a dimension of a data set as a data set of its own.
#include <tessera/unstack.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/apart.h>
#include <tessera/copy.h>
#include <tessera/data_set.h>
#include <tessera/error_text.h>
#include <tessera/place.h>

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// The length of a dimension, which all arrays that have it share.
std::int64_t length_of(const DataSet& set, const std::string& dimension) {
    std::optional<std::int64_t> length;
    for (const std::string& name : set.names()) {
        const auto& member = set.member(name);
        const std::optional<int> axis = member.axis(dimension);
        if (!axis) continue;
        if (length.value_or(member.shape[*axis]) != member.shape[*axis]) {
            throw invalid_argument("{}: its dimension {} is {} long, and that of others {}", set.path_of(name),
                                   dimension, member.shape[*axis], *length);
        }
        length = member.shape[*axis];
    }
    if (length) return *length;
    throw invalid_argument("axis: {} holds several arrays: name a dimension; {}", set.path(),
                           names_there(set.dimensions()));
}

/// Removes what was made unless all of it was.
class Fresh {
public:
    Fresh() = default;
    ~Fresh() {
        std::error_code ignored;
        for (const std::string& path : made_) fs::remove_all(path, ignored);
        for (const fs::path& folder : folders_) fs::remove(folder, ignored);
    }
    Fresh(const Fresh&) = delete;
    Fresh& operator=(const Fresh&) = delete;

    void make_folder(const fs::path& folder) {
        for (fs::path above = folder; !above.empty() && !fs::exists(above); above = above.parent_path()) {
            folders_.push_back(above);
        }
        if (!folder.empty()) fs::create_directories(folder);
    }
    void add(const std::string& path) { made_.push_back(path); }
    void keep() {
        made_.clear();
        folders_.clear();
    }

private:
    std::vector<std::string> made_;
    std::vector<fs::path> folders_;  ///< the lowest first
};

void require_free(const std::vector<std::string>& paths, const std::string& source, bool overwrite) {
    require_local(paths.front(), "what `unstack` makes");
    for (const std::string& path : paths) {
        require_apart({source}, path);
        if (!overwrite && fs::exists(fs::symlink_status(path))) {
            throw already_exists("{} exists", path).advising(Action::overwrite, "replaces it");
        }
    }
}

}  // namespace

Unstacked unstack_set(const Recipe& copy, const ResultOptions& result, const std::string& pattern,
                      const std::string& dimension, const UnstackOptions& o) {
    const DataSet set = *DataSet::at(std::get<CopyRecipe>(copy.make).source.path);
    if (o.resume) throw invalid_argument("resume: not with several arrays; those of a failure are removed");
    Unstacked made{.paths = step_paths(pattern, length_of(set, dimension)), .shape = {}, .dtype = {}};
    if (made.paths.empty()) throw invalid_argument("{}: its dimension {} has no step", set.path(), dimension);
    require_free(made.paths, set.path(), o.overwrite);
    if (o.dry_run) return made;
    Fresh fresh;
    fresh.make_folder(fs::path(made.paths.front()).parent_path());
    for (std::size_t i = 0; i < made.paths.size(); ++i) {
        const std::string& path = made.paths[i];
        Recipe step = copy;
        step.selection = fmt::format("{}@{}", dimension, i);
        const auto say = [&](const Note& note) {
            if (o.note && i == 0) o.note(note);  // of the first; the others are like it
        };
        HierarchyOptions options = hierarchy_options(step, result, path, o.io, say);
        options.arrays.preferred_format = o.arrays.preferred_format;
        options.store = o.store;
        options.note = say;
        if (!fs::exists(fs::symlink_status(path))) fresh.add(path);
        (void)copy_hierarchy(set.path(), path, options);
    }
    fresh.keep();
    return made;
}

}  // namespace tessera
