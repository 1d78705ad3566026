#include "zarr_array.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ranges.h"

namespace tessera::serve {

namespace {

/// How often a chunk is read again that was replaced meanwhile.
constexpr int most_tries = 4;

HttpBody body_of(ZarrValue value) {
    const std::uint64_t size = value.size();
    return value.source ? HttpBody(std::move(value.source), 0, size) : HttpBody(std::move(value.bytes));
}

}  // namespace

const ZarrArray& ZarrArrays::in(const ServedNode& node, ZarrFormat format) {
    const std::lock_guard lock(mutex_);
    auto& made = format == ZarrFormat::v2 ? v2_ : v3_;
    if (made == nullptr) {
        made = node.array ? std::make_unique<ZarrArray>(*node.array, format)
                          : std::make_unique<ZarrArray>(node.file, format);
    }
    return *made;
}

HttpResponse chunk_response(const ServedNode& node, const ZarrArray& array, const Index& index,
                            const HttpRequest& request, const IoOptions& io) {
    const std::string& version = node.zarr->version();
    const auto stamp = [&]() -> std::string {
        const auto now = array.passes_values() ? node.values->stamp(index) : node.stamp_of(index);
        return now ? stamp_text(*now) : "";
    };
    const bool stamped = array.passes_values() || node.stamps_chunks();
    HttpResponse response;
    for (int tries = 1;; ++tries) {
        const std::string before = stamp();
        response.etag = before.empty() ? version : fmt::format("{}-{}", version, before);
        if (stamped && is_known(request, response.etag)) return response;
        std::optional<ZarrValue> value = array.read(index, io);
        if (!value) return not_found_response();
        response.body = body_of(*std::move(value));
        if (stamped && stamp() == before) return response;
        if (!stamped || tries == most_tries) break;
    }
    response.etag.clear();
    response.cache_control = "no-store";
    return response;
}

}  // namespace tessera::serve
