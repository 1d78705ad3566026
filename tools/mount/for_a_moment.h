// What was found a moment ago, because a program that looks at one file asks for the folders above it again and again.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tessera::mount {

/// Keeps what was found for a second, as the kernel keeps attributes. What was not found is looked for again.
/// Thread rule: any thread.
template <class Found>
class ForAMoment {
public:
    /// What is kept under a name, or what `find` returns, a std::optional<Found>. Calls it without a lock.
    template <class Find>
    [[nodiscard]] std::optional<Found> get(const std::string& name, const Find& find) {
        const auto now = std::chrono::steady_clock::now();
        {
            const std::lock_guard lock(mutex_);
            const auto kept = kept_.find(name);
            if (kept != kept_.end() && now - kept->second.first < fresh) return kept->second.second;
        }
        std::optional<Found> found = find();
        if (!found) return found;
        const std::lock_guard lock(mutex_);
        if (kept_.size() >= most)
            std::erase_if(kept_, [&](const auto& one) { return now - one.second.first >= fresh; });
        if (kept_.size() >= most) kept_.clear();
        kept_.insert_or_assign(name, std::pair(now, *found));
        return found;
    }

private:
    static constexpr std::chrono::seconds fresh{1};
    static constexpr std::size_t most = 256;

    std::mutex mutex_;
    std::map<std::string, std::pair<std::chrono::steady_clock::time_point, Found>> kept_;
};

}  // namespace tessera::mount
