// Edit: see batch.cpp for how a batch takes effect.
#include <fmt/format.h>
#include <tessera/edit.h>
#include <tessera/error.h>
#include <tessera/fork.h>

#include <optional>
#include <utility>

#include "array_state.h"
#include "batch.h"
#include "staged_store.h"

namespace tessera {

struct Edit::State {
    std::shared_ptr<KeyValueStore> store;
    std::string prefix;
    EditOptions options;
    std::uint64_t id = new_batch_id();
    StoreLock lock;
    std::shared_ptr<StagedStore> staged;
    std::optional<Array> array;
    bool over = false;
    int process = process_number();
};

Edit::Edit(const Array& array, const EditOptions& options) : state_(std::make_unique<State>()) {
    state_->store = ArrayAccess::state(array)->store;
    state_->prefix = ArrayAccess::state(array)->prefix;
    state_->options = options;
    if (!ArrayAccess::state(array)->published) {
        throw invalid_argument(fmt::format("{}: an array that is not complete yet has no batches", array.name()));
    }
    state_->lock = ArrayAccess::state(array)->lock_shape(LockMode::exclusive);
    const std::string folder = join_key(state_->prefix, batch_folder);
    state_->store->erase_below(folder);  // leftovers of a batch that never happened
    state_->staged = std::make_shared<StagedStore>(state_->store, state_->prefix, folder, state_->id);
    state_->array = ArrayAccess::open_settled(state_->staged, state_->prefix);
}

Edit::~Edit() {
    if (!state_ || state_->over) return;
    if (state_->process != process_number()) return;  // a forked child has a copy of the batch, but not the batch
    try {
        state_->array.reset();
        state_->store->erase_below(join_key(state_->prefix, batch_folder));
    } catch (const Error&) {
        // Without a journal it is nothing: the next opening discards it.
    }
}

Edit::Edit(Edit&&) noexcept = default;
Edit& Edit::operator=(Edit&&) noexcept = default;

Array& Edit::array() {
    if (state_->over) throw invalid_argument(fmt::format("{}: the batch is over", state_->store->name()));
    return *state_->array;
}

std::int64_t Edit::commit() {
    (void)array();
    Journal journal{.id = state_->id, .keeps_old = state_->options.keep_old, .entries = state_->staged->changes()};
    sort_batch(journal, state_->array->dialect().metadata_key);
    if (!journal.entries.empty()) {
        try {
            record_batch(*state_->store, state_->prefix, journal);
        } catch (const Error& e) {
            state_->over = e.code() == ErrorCode::recorded;  // then the staged values are still needed
            throw;
        }
    } else {
        state_->store->erase_below(join_key(state_->prefix, batch_folder));
    }
    state_->over = true;
    state_->lock.unlock();
    return static_cast<std::int64_t>(journal.entries.size());
}

}  // namespace tessera
