// The keys of a node in a format of Zarr, as files and folders.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <http.h>
#include <served.h>

#include "entry.h"

namespace tessera::mount {

/// A node's documents and chunks, below the parts of a path. `format`: "v2" or "v3".
class ZarrFolder {
public:
    /// `top`: the node that is shown.
    ZarrFolder(serve::Served& served, serve::NodePointer top, std::string format)
        : served_(served), top_(std::move(top)), format_(std::move(format)) {}

    [[nodiscard]] std::optional<Entry> look(const std::vector<std::string>& parts) const;
    [[nodiscard]] std::vector<Listed> list(const std::vector<std::string>& parts) const;
    /// The bytes of a value. Throws not_found.
    [[nodiscard]] serve::HttpBody read(const std::vector<std::string>& parts) const;

private:
    /// The array or group that the first parts name, and what is left of them.
    struct At {
        serve::NodePointer node;
        std::vector<std::string> rest;
    };
    [[nodiscard]] std::optional<At> find(const std::vector<std::string>& parts) const;
    [[nodiscard]] std::vector<std::string> documents(const serve::ServedNode& node) const;
    [[nodiscard]] std::vector<Listed> chunks_below(const At& at) const;

    serve::Served& served_;
    serve::NodePointer top_;
    std::string format_;
};

}  // namespace tessera::mount
