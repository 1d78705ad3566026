// How large the chunks of an array were that were sent last.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::serve {

/// A guess at the size of a chunk before it is made, so that what will not fit into memory is not made first. Thread
/// rule: any thread calls any member.
class ChunkSizes {
public:
    /// What was noted last of the array that a chunk belongs to, by the path of the request; 0 if nothing was.
    [[nodiscard]] std::uint64_t guess(const std::vector<std::string>& segments) const;
    void note(const std::vector<std::string>& segments, std::uint64_t bytes);

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> sizes_;
};

}  // namespace tessera::serve
