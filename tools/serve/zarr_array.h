// Arrays of nodes in the formats of Zarr, as responses.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <tessera/zarr_array.h>

#include "http.h"
#include "served.h"

namespace tessera::serve {

/// The formats of one node, made on demand. Thread rule: any thread.
class ZarrArrays {
public:
    explicit ZarrArrays(std::string version) : version_(std::move(version)) {}
    /// Throws unsupported for what the format cannot say.
    [[nodiscard]] const ZarrArray& in(const ServedNode& node, ZarrFormat format);
    /// A hash of the node's version.
    [[nodiscard]] const std::string& version() const { return version_; }

private:
    const std::string version_;
    std::mutex mutex_;
    std::unique_ptr<ZarrArray> v2_;
    std::unique_ptr<ZarrArray> v3_;
};

/// The value of a chunk. Status 404 where it is absent and reads as the fill.
[[nodiscard]] HttpResponse chunk_response(const ServedNode& node, const ZarrArray& array, const Index& index,
                                          const HttpRequest& request, const IoOptions& io);

}  // namespace tessera::serve
