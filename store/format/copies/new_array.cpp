// Arrays that appear only when they are complete.
//
// If nothing is at the path, the new array is written in place: first a marker (.tessera/unfinished.json), then chunks
// and attributes, then the metadata. Finally the marker is removed. A crash leaves a directory with a marker and no
// metadata: no reader opens it, `info` explains it, --resume continues it, and --overwrite removes it. The marker
// records the source and the metadata, so that only the same copy is resumed.
//
// An array to be replaced stays until the new one is complete beside it under a hidden name. Then the two directories
// are exchanged atomically (see replace_directory.cpp).
//
// The DestinationLock is held from before the first look until the array is in place. So an unfinished array found
// there belongs to a run that has ended. A failed run removes its directory, if the path still leads to that same
// directory.
//
// In another kind of store an array to be replaced cannot be exchanged. There the new one is complete in
// `.tessera/new/` of the old one first. Then a marker says that the array is unfinished, the old metadata goes, then
// the old chunks, and the new values are moved to their keys, the metadata last. So there is a moment without an array,
// but none in which the metadata of one lead to chunks of the other. A program that has the old one open must open the
// array again. In a store far away, whose values cannot be moved, the old array is removed before the new one is
// written (see remove_array.h).

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/copy.h>
#include <tessera/destination.h>
#include <tessera/destination_lock.h>
#include <tessera/error_text.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "array_access.h"
#include "array_state.h"
#include "dialects.h"
#include "directory_store.h"
#include "keys.h"
#include "move_aside.h"
#include "node_files.h"
#include "remove_array.h"
#include "replace_directory.h"
#include "stored_chunks.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view marker_key = unfinished_marker_key;
/// Where an array is built that replaces another one in a store without directories to exchange.
constexpr std::string_view new_folder = ".tessera/new";

/// A path without going through links, zips and exchanged directories.
Place place_at(const fs::path& path, const StoreOptions& options) {
    return store_kind_of(path).place(path, options);
}

bool has_marker(const Place& place) {
    return place.store->open(place.key(marker_key)) != nullptr;
}

void refuse_foreign(const fs::path& path, const StoreOptions& options) {
    const Place place = place_at(path, to_read(options));
    require_nothing_foreign(*place.store, {array_at(place)}, {}, ErrorCode::already_exists);
}

/// Moves all values at and below a prefix to another one. Values named `last` are moved last.
void move_values(KeyValueStore& store, const std::string& from, const std::string& to, std::string_view last) {
    const Listing listing = store.list(from);
    for (const std::string& name : listing.prefixes) {
        move_values(store, join_key(from, name), join_key(to, name), "");
    }
    for (const std::string& name : listing.keys) {
        if (name != last) store.replace(join_key(from, name), join_key(to, name));
    }
    if (!last.empty()) store.replace(join_key(from, last), join_key(to, last));
}

/// The identity of an unfinished copy, compared before it is resumed.
Value make_marker(const Dialect& dialect, const ArrayMetadata& metadata, std::string_view made_from) {
    const auto store = memory_store();
    dialect.save(*store, metadata, nullptr);
    Buffer text;
    (void)store->get(dialect.metadata_key, text);
    Value marker = Value::object();
    marker.set("about", "an unfinished copy by tessera: no array yet; resume goes on with it, overwrite replaces it");
    marker.set("format", dialect.name);
    marker.set("made_from", made_from);
    marker.set("metadata", Value::parse({reinterpret_cast<const char*>(text.data()), text.size()}));
    return marker;
}

/// Replaces the array at a place by the complete one in its `.tessera/new/`.
void replace_elsewhere(const Place& place, const Dialect& dialect, const ArrayMetadata& metadata) {
    KeyValueStore& store = *place.store;
    const StoreLock lock = store.lock(place.prefix, 0, LockMode::exclusive);
    const Node array = array_at(place);
    const NodeFiles old(store, array);
    // Matches no copy, so that --resume refuses it: some chunks may be the old array's.
    const std::string marker = make_marker(dialect, metadata, "a replacement that was interrupted").dump();
    store.put(place.key(marker_key), std::as_bytes(std::span(marker)));
    store.sync();
    if (array.dialect != nullptr) store.erase(place.key(array.dialect->metadata_key));
    erase_owned(place, old);
    erase_own_but(place, {marker_key, damaged_folder, new_folder});
    store.sync();
    move_values(store, place.key(new_folder), place.prefix, dialect.metadata_key);
    store.sync();
    store.erase(place.key(marker_key));
    store.sync();
}

Occupant occupant_elsewhere(const fs::path& path, const StoreOptions& options) {
    const Place place = place_at(path, to_read(options));
    if (probe_dialect(place) != nullptr) return Occupant::array;
    if (has_marker(place)) return is_being_removed(place) ? Occupant::removed : Occupant::unfinished;
    const Listing top = place.store->list(place.prefix);
    if (top.keys.empty() && top.prefixes.empty()) {
        return is_anything_at(path, options) ? Occupant::other : Occupant::nothing;
    }
    const bool own = top.keys.empty() && top.prefixes == std::vector<std::string>{std::string(own_folder)};
    const auto passes = [](const std::string& name) {
        return join_key(own_folder, name) == lease_key || name.starts_with("probe-");
    };
    return own && std::ranges::all_of(place.store->list(place.key(own_folder)).keys, passes) ? Occupant::nothing
                                                                                             : Occupant::other;
}

}  // namespace

// Without locate(), which refuses an array with a damaged batch: --overwrite replaces that too.
Occupant occupant(const fs::path& path, const StoreOptions& options) {
    if (!is_local(path)) return occupant_elsewhere(path, options);
    std::error_code error;
    const fs::file_status status = status_of(path);
    if (!fs::exists(status)) {
        return fs::is_symlink(fs::symlink_status(path, error)) ? Occupant::other : Occupant::nothing;
    }
    if (!fs::is_directory(status)) return Occupant::other;
    const auto store = directory_store(path, {.read_only = true});
    if (probe_dialect(*store) != nullptr) return Occupant::array;
    if (store->open(marker_key) != nullptr) {
        return is_being_removed({*store, ""}) ? Occupant::removed : Occupant::unfinished;
    }
    // If not even the marker could be written, temporary files and an empty .tessera/ are left.
    bool ours = true;
    fs::directory_iterator entry(path, error);
    for (; !error && ours && entry != fs::directory_iterator(); entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        ours = name.starts_with(temporary_prefix) || (name == own_folder && store->list(name).keys.empty());
    }
    if (error) throw io_error("listing", path.string(), error.value());
    return ours ? Occupant::nothing : Occupant::other;
}

void require_outside_arrays(const fs::path& path) {
    if (!is_local(path)) return;
    const fs::path place = real_path(path);
    for (fs::path above = place.parent_path(); above.has_relative_path(); above = above.parent_path()) {
        if (!fs::is_directory(above)) continue;
        const auto store = directory_store(above, {.read_only = true});
        if (probe_dialect(*store) != nullptr) {
            throw invalid_argument("{}: nothing can lie in an array, and {} is one; choose another place",
                                   path.string(), above.string());
        }
        if (probe_group_dialect(*store) != nullptr) return;
    }
}

void require_may_replace(const fs::path& path, Occupant there, const Existing& existing) {
    const std::string name = path.string();
    if (there == Occupant::other) {
        throw already_exists(
            "{}: something that is no array is there, and is left alone; choose another name or move it away", name);
    }
    if (there == Occupant::array && !existing.overwrite) {
        throw already_exists("{}: an array is there already", name).advising(Action::overwrite, "replaces it");
    }
    if (there == Occupant::unfinished && !existing.overwrite && !existing.resume) {
        Error error = already_exists("{}: an unfinished copy is there", name);
        if (existing.resumable) error = error.advising(Action::resume, "goes on with it");
        throw error.advising(Action::overwrite, "starts afresh");
    }
}

void remove_unfinished(const fs::path& path, const StoreOptions& options) {
    const DestinationLock lock(path, options);
    if (const Occupant there = occupant(path, options); there != Occupant::unfinished && there != Occupant::removed) {
        throw not_found("{}: no unfinished copy is there any more", path.string());
    }
    refuse_foreign(path, options);
    remove_array(place_at(path, options));
    if (!is_local(path)) return;
    std::error_code error;
    fs::remove(path, error);
    if (error) throw io_error("cannot remove", path.string(), error.value());
}

struct NewArray::State {
    fs::path place;                  ///< the final path
    fs::path built;                  ///< the path it is written to: `place`, or a hidden directory
    bool in_folder = true;           ///< not in another kind of store
    std::optional<FileId> built_id;  ///< of `built`, once it is there
    bool made_directory = false;
    bool resumed = false;
    bool leave = false;                ///< committed or kept
    bool rests = false;                ///< its locks and files are released
    std::optional<ValueStamp> marker;  ///< while it rests: a new directory may reuse the inode of the old one
    StoreOptions options;
    DestinationLock own_lock;                     ///< holds nothing if the caller has the lock
    const DestinationLock* lock;                  ///< of `place`
    std::shared_ptr<KeyValueStore> successor_of;  ///< the array that is replaced, if any; null while it rests
    std::shared_ptr<KeyValueStore> store;         ///< of `built`
    std::string prefix;                           ///< of `built` in the store: "" in a folder
    StoreLock shape;                              ///< held, so that chunks need no lock between processes
    std::optional<Array> array;

    [[nodiscard]] Error gone() const {
        return {ErrorCode::io, fmt::format("{}: it was removed or replaced while it was written", built.string())};
    }

    void require_own() const {
        lock->require_held();
        if (in_folder && folder_id(built) != built_id) throw gone();
    }

    void wake() {
        if (!rests) return;
        if (lock == &own_lock) own_lock = DestinationLock(place, options);
        require_own();
        if (marker_stamp() != marker) throw gone();
        auto lock_of_shape = store->try_lock(prefix);
        if (!lock_of_shape) {
            throw Error(ErrorCode::io,
                        fmt::format("{}: another program works on it while it is written", built.string()));
        }
        shape = *std::move(lock_of_shape);
        take_permissions();
        rests = false;
    }

    /// As its files get them: those of the array that it replaces, or what the mask leaves.
    void take_permissions() {
        if (!in_folder) return;
        if (built == place) return follow_mask(*store);
        successor_of = place_at(place, to_read(options)).store;
        share_like(*store, *successor_of);
    }

    Occupant choose_place(Occupant there);
    void prepare(Occupant there, const Existing& existing, const Value& own_marker);
    void begin(const Dialect& dialect, ArrayMetadata metadata, const Existing& existing, const Value& own_marker);

    struct HeldDocuments {
        std::unique_ptr<HeldValues> values;  ///< null if nothing is held
        std::vector<std::string> keys;
    };
    HeldDocuments complete();
    void publish(HeldDocuments& held);
    void take_place();

    [[nodiscard]] std::optional<ValueStamp> marker_stamp() const { return store->stamp(join_key(prefix, marker_key)); }

    void replace_old() const {
        const Place old = place_at(place, options);
        if (in_folder) {
            replace_directory(built, *old.store, lock_nodes(*old.store), options);
        } else {
            replace_elsewhere(old, array->dialect(), array->metadata());
        }
    }

    void remove_unfinished() const {
        if (!in_folder) {
            if (!rests || marker_stamp() == marker) remove_array({*store, prefix});
            return;
        }
        if (!built_id || folder_id(built) != built_id) return;  // somebody else's by now
        if (rests && marker_stamp() != marker) return;          // or another directory with that inode
        if (built == place && !made_directory) {
            remove_array(place_at(place, options));  // the directory existed, empty or with an unfinished copy
        } else {
            remove_tree(built);
        }
    }
};

namespace {

void require_same_copy(const fs::path& path, const Value& wanted, const StoreOptions& options) {
    Buffer text;
    const Place at = place_at(path, to_read(options));
    (void)at.store->get(at.key(marker_key), text, metadata_limit);
    const std::string place = path.string();
    const Value found = in_context([&] { return fmt::format("{}: {}", place, marker_key); },
                                   [&] {
                                       return Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
                                   });
    for (const std::string_view member : {"format", "made_from", "metadata"}) {
        const Value* there = found.find(member);
        if (there != nullptr && *there == *wanted.find(member)) continue;
        throw invalid_argument(
            "{}: the unfinished copy there is another one: its {} is {}, this one's is {}; use the same "
            "options and source",
            place, member, there == nullptr ? "missing" : there->dump(), wanted.find(member)->dump())
            .advising(Action::overwrite, "starts afresh");
    }
}

/// Removes what a killed run left of the values that it was writing. The caller has the array to itself.
void remove_temporaries(const fs::path& folder) {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        std::error_code ignored;
        const bool left = entry->path().filename().string().starts_with(temporary_prefix);
        if (left && entry->symlink_status(ignored).type() == fs::file_type::regular) fs::remove(entry->path(), ignored);
    }
}

}  // namespace

/// Chooses where the array is built beside what is there. Returns what is there afterwards.
Occupant NewArray::State::choose_place(Occupant there) {
    if (there == Occupant::removed) {
        remove_array(place_at(place, options));
        return Occupant::nothing;
    }
    if (there != Occupant::array) return there;
    if (in_folder) {
        built.replace_filename(hidden_name(place, "new"));
        return there;
    }
    const Place old = place_at(place, options);
    if (!old.store->is_far()) {
        built /= new_folder;
        return there;
    }
    if (options.waiter != nullptr) {
        options.waiter->notes(
            fmt::format("{}: the old array was removed before the new one is written", place.string()));
    }
    remove_array(old);
    return Occupant::nothing;
}

/// Removes what is in the way of the array, and makes its folder.
void NewArray::State::prepare(Occupant there, const Existing& existing, const Value& own_marker) {
    options = existing.store;
    place = lock->place();
    built = place;
    in_folder = is_local(place);
    if (there != Occupant::nothing) refuse_foreign(place, options);
    there = choose_place(there);
    const Occupant before = built == place ? there : occupant(built, existing.store);
    if (before == Occupant::unfinished && existing.resume) {
        require_same_copy(built, own_marker, options);
        const Place at = place_at(built, options);
        at.store->abandon_uploads(at.prefix);
        resumed = true;
    } else if (built != place && in_folder) {
        rescue_set_aside(built, place, options);
        remove_tree(built);  // leftovers of an earlier attempt: a copy, or a part of the replaced array
    } else if (built != place || before == Occupant::unfinished) {
        remove_array(place_at(built, options));
    }
    if (in_folder) {
        const Durability waits = existing.together ? Durability::none : options.durability;
        made_directory = !make_directories(built, waits).empty();
        built_id = folder_id(built);
    }
    Place at = place_at(built, options);
    store = std::move(at.store);
    prefix = std::move(at.prefix);
    take_permissions();
}

/// Writes the marker, and makes the array without its metadata.
void NewArray::State::begin(const Dialect& dialect, ArrayMetadata metadata, const Existing& existing,
                            const Value& own_marker) {
    const std::string text = own_marker.dump(python_json_style);
    bool others = false;
    try {
        if (existing.together) store->sync_later();
        if (!resumed) {
            store->put(join_key(prefix, marker_key), std::as_bytes(std::span(text)));
            // Without the marker, chunks would belong to nothing after a power failure. For many arrays, this is
            // accepted to avoid a wait for each.
            if (!existing.together) store->sync();
        }
        auto lock_of_shape = store->try_lock(prefix);
        others = !lock_of_shape;
        if (others) {
            throw already_exists("{}: another program is writing this copy just now", place.string());
        }
        shape = *std::move(lock_of_shape);
        if (resumed && in_folder) remove_temporaries(built);
        array = Array::create({store, prefix}, dialect, std::move(metadata), false);
        store->sync_later();
    } catch (...) {
        if (!resumed && !(others && !in_folder)) remove_unfinished();
        throw;
    }
}

NewArray::NewArray(const fs::path& path, const ArrayOptions& options, Existing existing, std::string_view made_from)
    : NewArray(path, *choose_format(options).dialect,
               in_context([&] { return path.string(); }, [&] { return make_metadata(options); }), existing, made_from) {
    const Value attributes = new_attributes(options);
    if (!attributes.as_object().empty()) array().attributes().replace(attributes);
}

NewArray::NewArray(const fs::path& path, const Dialect& dialect, ArrayMetadata metadata, Existing existing,
                   std::string_view made_from)
    : state_(std::make_unique<State>()) {
    const auto name = [&] { return path.string(); };
    require_node_names(path.string());
    in_context(name, [&] { dialect.require_expressible(metadata); });
    if (existing.lock == nullptr) {
        require_outside_arrays(path);
        state_->own_lock = DestinationLock(path, existing.store);
    }
    state_->lock = existing.lock == nullptr ? &state_->own_lock : existing.lock;
    const Occupant there = occupant(path, existing.store);
    require_may_replace(path, there, existing);
    const Value marker = in_context(name, [&] { return make_marker(dialect, metadata, made_from); });
    state_->prepare(there, existing, marker);
    state_->begin(dialect, std::move(metadata), existing, marker);
}

NewArray::NewArray(NewArray&&) noexcept = default;
NewArray& NewArray::operator=(NewArray&&) noexcept = default;

NewArray::~NewArray() {
    // A failure must not delete a resumed copy's earlier progress.
    if (!state_ || state_->leave || state_->resumed || !state_->array) return;
    try {
        state_->remove_unfinished();
    } catch (const Error&) {
        // If this fails, the marker stays: the array does not open, and `info` explains it.
    }
}

Array& NewArray::array() {
    return *state_->array;
}

bool NewArray::resumed() const {
    return state_->resumed;
}

fs::path NewArray::keep() {
    state_->leave = true;
    return state_->built;
}

bool NewArray::rests() const {
    return state_->rests;
}

void rest_together(std::span<NewArray* const> arrays) {
    std::vector<KeyValueStore*> stores;
    for (NewArray* const made : arrays) {
        NewArray::State& state = *made->state_;
        state.require_own();
        state.marker = state.marker_stamp();
        state.shape.unlock();
        stores.push_back(state.store.get());
    }
    rest_together(stores);
    for (NewArray* const made : arrays) {
        made->state_->own_lock.unlock();
        made->state_->successor_of.reset();
        made->state_->rests = true;
    }
}

/// Ends the writing of chunks, and holds the metadata where its store can.
NewArray::State::HeldDocuments NewArray::State::complete() {
    wake();
    require_own();
    const ArrayState& state = *ArrayAccess::state(*array);
    record_stored_chunks(state, *state.loaded());
    HeldDocuments held{.values = store->hold(), .keys = {}};
    if (held.values) held.keys = ArrayAccess::state(*array)->hold_documents(*held.values);
    return held;
}

void NewArray::State::publish(HeldDocuments& held) {
    if (held.values) {
        ArrayAccess::state(*array)->place_documents(*held.values, held.keys);
    } else {
        array->publish();
    }
    // A failure from here on affects the marker or the exchange, but not the array.
    if (built == place) leave = true;
}

void NewArray::State::take_place() {
    shape.unlock();
    leave = true;
    if (built != place) {
        in_context([&] { return fmt::format("the new array is complete in {}", built.string()); },
                   [&] { replace_old(); });
    }
    own_lock.unlock();
}

void commit_together(std::span<NewArray* const> arrays) {
    std::vector<NewArray::State::HeldDocuments> documents;
    std::vector<KeyValueStore*> stores;
    for (NewArray* const made : arrays) {
        documents.push_back(made->state_->complete());
        stores.push_back(made->state_->store.get());
    }
    sync_together(stores);  // the chunks, before the metadata refers to them
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i]->state_->publish(documents[i]);
    sync_together(stores);
    for (NewArray* const made : arrays) {
        const Place place{made->state_->store, made->state_->prefix};
        // The lease is released by who holds it.
        erase_own_but(place, {stored_record_key, job_key, lease_key});
    }
    sync_together(stores);
    for (NewArray* const made : arrays) made->state_->take_place();
}

Array NewArray::commit() {
    const std::array<NewArray*, 1> alone{this};
    commit_together(alone);
    return Array::open(state_->place, state_->options);
}

Array Array::create(const std::filesystem::path& path, const ArrayOptions& options, const StoreOptions& store) {
    // Attributes are a document of their own in most formats: a crash before the metadata would leave only that.
    if (!new_attributes(options).as_object().empty()) {
        return NewArray(path, options, {.store = store}, "Array::create").commit();
    }
    require_node_names(path.string());
    require_outside_arrays(path);
    const DestinationLock building(path, store);
    const Occupant there = occupant(path, store);
    require_may_replace(path, there, {});
    Place place = store_kind_of(path).place(path, store);
    if (there == Occupant::removed) {
        refuse_foreign(path, store);
        remove_array(place);
    }
    return ArrayAccess::create_whole(std::move(place), options, store.waiter);
}

}  // namespace tessera
