#include "group_growth.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <tessera/dialect.h>
#include <tessera/error_text.h>

#include "array_access.h"
#include "array_state.h"
#include "batch.h"
#include "far_batch.h"
#include "group_access.h"
#include "resize.h"
#include "staged_store.h"

namespace tessera {

namespace {

[[noreturn]] void throw_overtaken(const std::string& array) {
    throw Error(ErrorCode::io, fmt::format("{}: another writer changed its metadata meanwhile: nothing of this change "
                                           "shows, and it can be repeated",
                                           array));
}

/// Stages the document with the new shape.
BatchPart staged_part(const std::string& path, const HeldAppend& append, std::uint64_t id) {
    const ArrayState& array = append.array();
    const auto staged = std::make_shared<StagedStore>(array, array.key(batch_folder), id);
    array.dialect->save({*staged, array.prefix}, append.grown().metadata, nullptr);
    BatchPart part{path, {.id = id, .entries = staged->changes()}};
    for (Journal::Entry& entry : part.journal.entries) {
        const auto old = array.store->stamp(array.key(entry.key));
        entry.had_old = entry.old_known = old.has_value();
        if (old) entry.old = *old;
    }
    return part;
}

}  // namespace

GroupGrowth::GroupGrowth(const Group& group)
    : group_(group), lease_(GroupAccess::state(group)->store->lock_destination(GroupAccess::state(group)->prefix)) {
    finish_leased_batch(*GroupAccess::state(group_));
}

GroupGrowth::~GroupGrowth() = default;

Shape GroupGrowth::append(const std::string& path, const Shape& before, int axis,
                          std::span<const std::unique_ptr<ArraySource>> parts, const IoOptions& io) {
    const NodeState& group = *GroupAccess::state(group_);
    const Array array = ArrayAccess::open_settled({group.store, group.key(path)});
    const std::shared_ptr<ArrayState>& state = ArrayAccess::state(array);
    auto held = std::make_unique<HeldAppend>(state);
    if (held->old().grid.shape() != before) throw_overtaken(array.name());
    held->write(parts, axis, io);
    Shape after = held->grown().grid.shape();
    parts_.push_back({path, std::move(held)});
    return after;
}

void GroupGrowth::commit() {
    if (parts_.empty()) return;
    const NodeState& group = *GroupAccess::state(group_);
    const std::uint64_t id = new_batch_id();
    std::vector<BatchPart> staged;
    std::vector<std::pair<std::string, Shape>> wanted;
    for (const Part& part : parts_) {
        staged.push_back(staged_part(part.path, *part.append, id));
        wanted.emplace_back(part.path, part.append->grown().grid.shape());
    }
    record_far_batch(
        group, staged,
        [&] {
            for (const Part& part : parts_) {
                if (part.append->was_overtaken()) throw_overtaken(part.append->array().name);
            }
        },
        [&] { parts_.clear(); });
    for (const auto& [path, shape] : wanted) {
        if (group_.open_array(path).shape() == shape) continue;
        throw Error(ErrorCode::recorded, fmt::format("{}: another writer changed its metadata at the same time, and it "
                                                     "has not grown; the other arrays have",
                                                     group.name_of(path)));
    }
}

}  // namespace tessera
