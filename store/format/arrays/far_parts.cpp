#include "far_parts.h"

#include <tessera/error.h>
#include <tessera/key_value_store.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "region_io.h"

namespace tessera {

namespace {

/// A guess at how much is fetched for one piece of a compressed chunk.
constexpr std::uint64_t usual_block = std::uint64_t{128} << 10;

}  // namespace

FarParts::FarParts(const ArrayState& array, const LoadedArray& loaded)
    : array_(array),
      loaded_(loaded),
      far_(array.store->is_far() && loaded.pipeline.shard() == nullptr && loaded.grid.regular()),
      usual_(far_ ? usual_bytes(loaded) : 0),
      worth_(far_ ? array.store->far()->worth_a_request() : 0) {}

bool FarParts::divides(std::uint64_t wanted) const {
    return far_ && wanted < usual_ && usual_ - wanted > worth_;
}

std::optional<ByteSource::Extent> FarParts::first(const Region& part) const {
    const auto bytes = static_cast<std::uint64_t>(byte_count(part.extent, loaded_.metadata.dtype.size()));
    return divides(bytes + usual_block) ? loaded_.pipeline.first_read(part) : std::nullopt;
}

std::optional<ByteSource::Extent> FarParts::first(std::uint64_t begin, std::uint64_t end, std::uint64_t pieces) const {
    return divides(pieces * usual_block) ? loaded_.pipeline.first_read(begin, end) : std::nullopt;
}

int FarParts::waiters(std::uint64_t wanted, bool announced) const {
    constexpr std::uint64_t most = 64;
    constexpr std::uint64_t most_bytes = std::uint64_t{128} << 20;
    const bool divided = divides(wanted + usual_block);
    if (!far_ || (announced && !divided)) return 1;
    const std::uint64_t each = divided ? wanted + usual_block : usual_;
    return static_cast<int>(std::clamp<std::uint64_t>(most_bytes / std::max<std::uint64_t>(each, 1), 1, most));
}

bool FarParts::read(const std::string& key, const std::optional<ByteSource::Extent>& first,
                    const std::function<void(const ByteSource&)>& decode) const {
    if (!far_) {
        const auto source = array_.store->open(key);
        if (source == nullptr) return false;
        decode(*source);
        return true;
    }
    const std::uint64_t replaced = array_.store->far()->replaced();
    try {
        const auto source = array_.store->far()->open_from(key, first.value_or(ByteSource::Extent()));
        if (source == nullptr) return false;
        decode(*source);
        return true;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::io || array_.store->far()->replaced() == replaced) throw;
    }
    return read_whole(key, decode);
}

bool FarParts::read_whole(const std::string& key, const std::function<void(const ByteSource&)>& decode) const {
    Buffer value;
    if (!array_.store->get(key, value, loaded_.pipeline.encoded_limit())) return false;
    decode(*memory_source(std::move(value), array_.store->name_of(key)));
    return true;
}

}  // namespace tessera
