#include <tessera/action.h>
#include <tessera/destination.h>

#include <tessera/array_file.h>
#include <tessera/error_text.h>
#include <tessera/open_files.h>
#include <tessera/place.h>
#include <tessera/zip_name.h>
#include <algorithm>
#include <deque>
#include <filesystem>
#include <span>

#include "zip_store.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// A planned array, begun at `place`. Of a hierarchy, `node` is its path below the root.
std::unique_ptr<NewArray> begin_array(const fs::path& place, const std::string& node, Existing existing,
                                      const PlannedArray& plan, std::string_view made_from) {
    if (!node.empty()) existing.lock = nullptr;  // `existing.lock` is for the root only
    existing.together = !node.empty();
    auto made = std::make_unique<NewArray>(place, *plan.dialect, plan.metadata, existing, made_from);
    if (plan.attributes) made->array().attributes().replace(*plan.attributes);
    return made;
}

/// Writes a group's document. One of another format is removed if it is replaced: other programs take one of the two,
/// and see nothing of what lies there in the other's format.
void save_document(const PlannedGroup& group, const PlaceRef& place, bool replaces) {
    group.dialect->save_group(place, group.attributes.value_or(Value::object()), group.unknown);
    if (!replaces || !group.attributes) return;
    for (const Dialect* other : dialect_table()) {
        if (!other->has_groups() || other->group_key == group.dialect->group_key) continue;
        if (place.store.open(place.key(other->group_key)) == nullptr) continue;
        for (const std::string_view key : other->documents) {
            if (std::ranges::count(group.dialect->documents, key) == 0) place.store.erase(place.key(key));
        }
        if (!other->consolidated_key.empty()) place.store.erase(place.key(other->consolidated_key));
    }
}

/// Arrays in a directory. Each is written in place or beside the one it replaces, and all appear at the end.
class DirectoryDestination final : public Destination {
public:
    DirectoryDestination(fs::path root, Existing existing)
        : root_(std::move(root)), existing_(existing), existed_(fs::exists(root_)) {}

    ~DirectoryDestination() override {
        if (committed_) return;
        arrays_.clear();  // removes the files that each has written
        groups_.clear();
        // Remove the created folders that are empty.
        std::error_code ignored;
        for (const std::string& node : nodes_) {
            for (fs::path folder = fs::path(node).parent_path(); !folder.empty(); folder = folder.parent_path()) {
                fs::remove(root_ / folder, ignored);
            }
        }
        if (!existed_) fs::remove(root_, ignored);
    }

    Array& add(const std::string& node, const PlannedArray& plan, std::string_view made_from) override {
        nodes_.push_back(node);
        require_no_link(node);
        rest();
        const fs::path place = node.empty() ? root_ : root_ / node;
        if (!node.empty()) fs::create_directories(place.parent_path());
        arrays_.push_back(begin_array(place, node, existing_, plan, made_from));
        return arrays_.back()->array();
    }

    [[nodiscard]] bool resumed() const override { return arrays_.back()->resumed(); }

    bool drop() override {
        arrays_.pop_back();
        return true;
    }

    void add_group(const PlannedGroup& group) override {
        require_no_link(group.node);
        groups_.push_back({group, {}});
        if (!group.node.empty()) groups_.back().lock = DestinationLock(root_ / group.node, existing_.store);
    }

    void commit() override {
        std::vector<NewArray*> made;
        for (const auto& array : arrays_) made.push_back(array.get());
        for (std::size_t done = 0; done < made.size(); done += most_) {
            const std::size_t count = std::min(most_, made.size() - done);
            commit_together(std::span(made).subspan(done, count));
            for (std::size_t i = done; i < done + count; ++i) arrays_[i].reset();  // closes its files
        }
        // Whether one wait can cover many documents.
        const bool together = directory_store(root_, existing_.store)->hold() != nullptr;
        // The root comes last, so that nobody takes a part for the whole hierarchy.
        for (auto added = groups_.rbegin(); added != groups_.rend(); ++added) {
            if (added->group.node.empty()) continue;
            StoreOptions options = existing_.store;
            // An old document must not be lost.
            if (together && !has_document(added->group)) options.durability = Durability::none;
            add_document(added->group, options);
        }
        if (together) sync_all();
        for (const NewGroup& added : groups_) {
            if (added.group.node.empty()) add_document(added.group, existing_.store);
        }
        committed_ = true;
    }

    std::string keep() override {
        std::string kept = root_.string();
        for (const auto& array : arrays_) kept = array->keep().string();
        committed_ = true;
        return arrays_.size() == 1 ? kept : root_.string();
    }

private:
    /// Lets written arrays rest once as many as possible are open.
    void rest() {
        if (arrays_.size() - resting_ < most_) return;
        std::vector<NewArray*> written;
        for (std::size_t i = resting_; i < arrays_.size(); ++i) written.push_back(arrays_[i].get());
        rest_together(written);
        resting_ = arrays_.size();
    }

    /// The number of arrays that may be open at once. Each takes up to six files, and twice as many arrays are open
    /// while those that rested are completed; the source and the groups take some too.
    static std::size_t most_open() { return static_cast<std::size_t>(share_of_open_files(13, 16, 1000)); }

    /// Throws if the path of a node below the root passes through a link, or ends at one.
    void require_no_link(const std::string& node) const {
        if (existing_.store.follow_links) return;
        fs::path place = root_;
        std::error_code ignored;
        for (const fs::path& part : fs::path(node)) {
            place /= part;
            if (!fs::is_symlink(place, ignored)) continue;
            throw invalid_argument(
                "{} is a symbolic link: nothing is written or deleted through it; name what it leads to",
                place.string())
                .advising(Action::follow_links, "allows it");
        }
    }

    [[nodiscard]] fs::path place_of(const PlannedGroup& group) const {
        return group.node.empty() ? root_ : root_ / group.node;
    }

    [[nodiscard]] bool has_document(const PlannedGroup& group) const {
        return probe_group_dialect(*directory_store(place_of(group), {.read_only = true})) != nullptr;
    }

    void add_document(const PlannedGroup& group, const StoreOptions& options) const {
        const fs::path place = place_of(group);
        fs::create_directories(place);
        if (group.dialect == nullptr || !group.dialect->has_groups()) return;
        if (!group.attributes && has_document(group)) return;
        const auto store = directory_store(place, options);
        save_document(group, *store, existing_.overwrite);
        store->sync();
    }

    /// Syncs everything written below the root, with one wait.
    void sync_all() const {
        if (groups_.empty() || !fs::exists(root_)) return;
        const auto store = directory_store(root_, existing_.store);
        (void)store->list("");  // opens it
        store->sync_later();
        store->sync();
    }

    /// A group and its lock. The caller has the root's lock.
    struct NewGroup {
        PlannedGroup group;
        DestinationLock lock;
    };

    fs::path root_;
    Existing existing_;
    bool existed_;
    bool committed_ = false;
    std::vector<std::string> nodes_;
    std::vector<std::unique_ptr<NewArray>> arrays_;
    std::size_t most_ = most_open();
    std::size_t resting_ = 0;  ///< number of resting arrays, from the first on
    std::vector<NewGroup> groups_;
};

/// Arrays at a place in another kind of store. They appear at the end, one after the other.
class PlaceDestination final : public Destination {
public:
    PlaceDestination(std::string path, Existing existing)
        : path_(std::move(path)), existing_(existing), place_(find_place(path_, existing.store)) {}

    Array& add(const std::string& node, const PlannedArray& plan, std::string_view made_from) override {
        arrays_.push_back(begin_array(join_key(path_, node), node, existing_, plan, made_from));
        return arrays_.back()->array();
    }
    [[nodiscard]] bool resumed() const override { return arrays_.back()->resumed(); }
    bool drop() override {
        arrays_.pop_back();
        return true;
    }
    void add_group(const PlannedGroup& group) override { groups_.push_back(group); }

    void commit() override {
        std::vector<NewArray*> made;
        for (const auto& array : arrays_) made.push_back(array.get());
        commit_together(made);
        // The root last, so that nobody takes a part for the whole hierarchy.
        for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) add_document(*group);
        place_.store->sync();
    }

    std::string keep() override {
        for (const auto& array : arrays_) (void)array->keep();
        return path_;
    }

private:
    void add_document(const PlannedGroup& group) {
        if (group.dialect == nullptr || !group.dialect->has_groups()) return;
        const std::string prefix = place_.key(group.node);
        if (!group.attributes && probe_group_dialect({*place_.store, prefix}) != nullptr) return;
        save_document(group, {*place_.store, prefix}, existing_.overwrite);
    }

    std::string path_;
    Existing existing_;
    Place place_;
    std::vector<std::unique_ptr<NewArray>> arrays_;
    std::vector<PlannedGroup> groups_;
};

/// A new zip, which appears at once.
class ZipDestination final : public Destination {
public:
    ZipDestination(const fs::path& path, const Existing& existing) {
        const bool there = fs::exists(path);
        if (existing.resume) {
            throw invalid_argument("{}: a zip is written afresh, never resumed", path.string());
        }
        if (there && !existing.overwrite) {
            throw already_exists("{} exists", path.string()).advising(Action::overwrite, "replaces it");
        }
        store_ = new_zip_store(path, there ? ZipMode::replace : ZipMode::create,
                               existing.store.durability != Durability::none);
    }

    Array& add(const std::string& node, const PlannedArray& plan, std::string_view /*made_from*/) override {
        arrays_.push_back(Array::create({store_, node}, *plan.dialect, plan.metadata, false));
        if (plan.attributes) arrays_.back().attributes().replace(*plan.attributes);
        return arrays_.back();
    }
    [[nodiscard]] bool resumed() const override { return false; }
    bool drop() override { return false; }  // its chunks are in the zip
    void add_group(const PlannedGroup& group) override {
        if (group.dialect == nullptr || !group.dialect->has_groups()) return;
        group.dialect->save_group({*store_, group.node}, group.attributes.value_or(Value::object()), group.unknown);
    }
    void commit() override {
        for (Array& array : arrays_) array.publish();
        store_->finish();
    }
    std::string keep() override { return store_->name(); }  // never called: a zip cannot be resumed

private:
    std::shared_ptr<KeyValueStore> store_;
    std::deque<Array> arrays_;
};

}  // namespace

void require_destination(const std::string& path) {
    const bool array_file = named_array_file_format(path) != nullptr;
    if (!array_file && !is_zip_name(path)) return;
    const fs::path file = array_file ? split_array_path(path).path : fs::path(path);
    require_local(file, array_file ? "an array file" : "a zip");
    require_outside_arrays(file);
}

std::unique_ptr<Destination> open_destination(const std::string& path, Existing existing) {
    require_destination(path);
    if (!is_local(path)) return std::make_unique<PlaceDestination>(path, existing);
    if (is_zip_name(path)) return std::make_unique<ZipDestination>(path, existing);
    require_outside_arrays(path);
    return std::make_unique<DirectoryDestination>(path, existing);
}

DestinationLock lock_destination(const std::string& path, const StoreOptions& options) {
    require_destination(path);
    const bool array_file = named_array_file_format(path) != nullptr;
    const fs::path place = array_file ? split_array_path(path).path : fs::path(path);
    const bool file = array_file || is_zip_name(place);
    if (file && !fs::is_directory(fs::absolute(place).parent_path())) return {};
    return DestinationLock(place, options);
}

void require_free_file(const fs::path& path, bool overwrite) {
    if (fs::is_directory(path)) {
        throw invalid_argument("{} is a directory; choose another name for the file", path.string());
    }
    if (fs::exists(path) && !overwrite) {
        throw already_exists("{} exists", path.string()).advising(Action::overwrite, "replaces it");
    }
}

}  // namespace tessera
