// Edit: see batch.cpp for how a batch takes effect.
#include <tessera/edit.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <tessera/group.h>
#include <tessera/place.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "array_access.h"
#include "array_state.h"
#include "batch.h"
#include "group_access.h"
#include "group_batch.h"
#include "replace_directory.h"
#include "staged_store.h"

namespace tessera {

struct Edit::State : Place {
    struct Part {
        std::shared_ptr<StagedStore> staged;
        Array array;
    };

    State(const NodeState& node, const EditOptions& o, bool group)
        : Place(node), name(node.name), options(o), of_group(group) {
        if (store->is_far()) {
            throw unsupported(
                "{}: changes that take effect together are made on this machine only; over the network one "
                "chunk is replaced at once, and several are not",
                name);
        }
        locks.push_back(node.lock_shape(LockMode::exclusive));
    }

    /// Begins to change the array at a path below the prefix.
    Part& begin(const std::string& path) {
        const std::string array = join_key(prefix, path);
        const std::string folder = join_key(array, batch_folder);
        store->erase_below(folder);  // leftovers of a batch that never happened
        auto staged = std::make_shared<StagedStore>(Place(store, array), folder, id);
        Array handle = ArrayAccess::open_settled({staged, array});
        return parts.emplace(path, Part{std::move(staged), std::move(handle)}).first->second;
    }

    void drop() {
        for (const auto& [path, part] : parts) {
            if (of_group) {
                drop_batch({*store, join_key(prefix, path)});
            } else {
                store->erase_below(join_key(prefix, batch_folder));
            }
        }
        for (const std::string& path : arrays) drop_lock_file({*store, path});
        drop_lock_file(*this);
    }

    [[nodiscard]] std::vector<BatchPart> changed() const {
        std::vector<BatchPart> all;
        for (const auto& [path, part] : parts) {
            Journal journal{.id = id, .keeps_old = options.keep_old, .entries = part.staged->changes()};
            sort_batch(journal, part.array.dialect().metadata_key);
            if (journal.entries.empty()) {
                store->erase_below(join_key(join_key(prefix, path), batch_folder));
            } else {
                all.push_back({path, std::move(journal)});
            }
        }
        return all;
    }

    std::string name;
    EditOptions options;
    bool of_group;
    std::uint64_t id = new_batch_id();
    std::vector<StoreLock> locks;
    std::set<std::string> arrays;                    ///< of a group: the paths in the store of those that are locked
    std::map<std::string, Part, std::less<>> parts;  ///< by their paths below the group; of an array one, ""
    bool over = false;
    int process = process_number();
};

Edit::Edit(const Array& array, const EditOptions& options) {
    if (!ArrayAccess::state(array)->published) {
        throw invalid_argument("{}: an array that is not complete yet has no batches", array.name());
    }
    state_ = std::make_unique<State>(*ArrayAccess::state(array), options, false);
    state_->begin("");
}

Edit::Edit(const Group& group, const EditOptions& options)
    : state_(std::make_unique<State>(*GroupAccess::state(group), options, true)) {
    LockedNodes locked = lock_arrays_below(*state_);
    for (const Node& node : locked.nodes) {
        finish_batch({*state_->store, node.path});
        state_->arrays.insert(node.path);
    }
    for (StoreLock& lock : locked.locks) state_->locks.push_back(std::move(lock));
    state_->store->erase_below(state_->key(batch_folder));  // leftovers of a batch that never happened
}

Edit::~Edit() {
    if (!state_ || state_->over) return;
    if (state_->process != process_number()) return;  // a forked child has a copy of the batch, but not the batch
    try {
        state_->drop();
    } catch (const Error&) {
        // Without a journal it is nothing: the next opening discards it.
    }
}

Edit::Edit(Edit&&) noexcept = default;
Edit& Edit::operator=(Edit&&) noexcept = default;

Array& Edit::array() {
    if (state_->of_group) {
        throw invalid_argument("{}: a batch over a group; name the array that is to be changed", state_->name);
    }
    return array("");
}

Array& Edit::array(std::string_view path) {
    if (state_->over) throw invalid_argument("{}: the batch is over", state_->name);
    const auto begun = state_->parts.find(path);
    if (begun != state_->parts.end()) return begun->second.array;
    const std::string place = state_->key(path);
    if (!state_->of_group || path.empty()) {
        throw invalid_argument("{}: the batch is over one array, and has none at '{}'", state_->name, path);
    }
    if (!state_->arrays.contains(place)) {
        if (probe_dialect({*state_->store, place}) == nullptr) {
            throw absence({*state_->store, place}, "array");
        }
        throw invalid_argument(
            "{}: a batch over {} changes only arrays that lay in it when it began, and none behind a symbolic link",
            state_->store->name_of(place), state_->name);
    }
    state_->store->require_unsealed(place);
    return state_->begin(std::string(path)).array;
}

std::int64_t Edit::commit() {
    if (state_->over) throw invalid_argument("{}: the batch is over", state_->name);
    std::vector<BatchPart> parts = state_->changed();
    std::int64_t count = 0;
    for (const BatchPart& part : parts) count += std::ssize(part.journal.entries);
    try {
        if (!parts.empty() && state_->of_group) {
            record_group_batch(*state_, parts);
        } else if (!parts.empty()) {
            record_batch(*state_, parts.front().journal);
        }
    } catch (const Error& e) {
        state_->over = e.code() == ErrorCode::recorded;  // then the staged values are still needed
        throw;
    }
    state_->over = true;
    state_->locks.clear();
    return count;
}

}  // namespace tessera
