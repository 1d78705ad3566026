#include "list_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "node_documents.h"

namespace tessera {

namespace {

constexpr std::size_t most_asked = 16;
constexpr std::size_t most_levels = 8;
constexpr std::chrono::seconds oldest{10};

}  // namespace

HttpTicket ListAhead::take(const std::string& folder, const Ask& ask) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard guard(mutex_);
    const std::uint64_t written = values_written();
    if (std::exchange(written_, written) != written) levels_.clear();
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
        HttpTicket ticket;
        if (const auto found = level->asked.find(folder); found != level->asked.end()) {
            if (now - found->second.when < oldest) ticket = std::move(found->second.ticket);
            level->asked.erase(found);
        } else {
            const auto waits = std::ranges::find(level->waiting, folder);
            if (waits == level->waiting.end()) continue;
            level->waiting.erase(level->waiting.begin(), waits + 1);
        }
        const std::size_t most = std::min(most_asked, 2 * ++level->taken);
        while (level->asked.size() < most && !level->waiting.empty()) {
            std::string next = std::move(level->waiting.front());
            level->waiting.pop_front();
            HttpTicket begun = ask(next);
            level->asked.insert_or_assign(std::move(next), Asked{std::move(begun), now});
        }
        return ticket;
    }
    return nullptr;
}

void ListAhead::found(std::vector<std::string> folders) {
    if (folders.size() < 2) return;
    const std::lock_guard guard(mutex_);
    Level& level = levels_.emplace_back();
    level.waiting.assign(std::move_iterator(folders.begin()), std::move_iterator(folders.end()));
    if (levels_.size() > most_levels) levels_.pop_front();
}

}  // namespace tessera
