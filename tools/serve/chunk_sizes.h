// The sizes of the chunks of an array that were sent last.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::serve {

/// Guesses the size of a chunk before it is made, so that a chunk that will not fit into memory is not made in vain.
/// Thread rule: any thread calls any member.
class ChunkSizes {
public:
    /// The size noted last for the array of the chunk that the request's path names; 0 if none was.
    [[nodiscard]] std::uint64_t guess(const std::vector<std::string>& segments) const;
    void note(const std::vector<std::string>& segments, std::uint64_t bytes);

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> sizes_;
};

}  // namespace tessera::serve
