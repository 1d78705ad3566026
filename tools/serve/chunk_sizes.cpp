#include "chunk_sizes.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tessera::serve {

namespace {

constexpr std::size_t most_arrays = 256;

/// The path without the chunk's key: "0.1" of v2, "c/0/1" of v3.
std::string array_of(const std::vector<std::string>& segments) {
    const auto in_key = [](std::string_view part) {
        return part == "c" || part.find_first_not_of("0123456789.") == std::string_view::npos;
    };
    std::size_t n = segments.size();
    while (n > 0 && in_key(segments[n - 1])) --n;
    std::string path;
    for (std::size_t i = 0; i < n; ++i) path += segments[i] + '/';
    return path;
}

}  // namespace

std::uint64_t ChunkSizes::guess(const std::vector<std::string>& segments) const {
    const std::string array = array_of(segments);
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(array);
    return found == sizes_.end() ? 0 : found->second;
}

void ChunkSizes::note(const std::vector<std::string>& segments, std::uint64_t bytes) {
    std::string array = array_of(segments);
    const std::lock_guard lock(mutex_);
    if (sizes_.size() >= most_arrays && !sizes_.contains(array)) sizes_.clear();
    sizes_.insert_or_assign(std::move(array), bytes);
}

}  // namespace tessera::serve
