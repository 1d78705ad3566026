// What the routes of tiles keep between requests: tile sources by path, and the cache that they share.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include <tessera/tile.h>

#include "served.h"
#include "shown.h"

namespace tessera::serve {

/// Thread rule: any thread calls any member.
class TileShelf {
public:
    explicit TileShelf(const ServedOptions& options)
        : cache_(std::make_shared<TileCache>(options.max_memory / 2)) {}  // the other half is for reading

    /// The tile source of an array. It stays the same as long as the node's version does. Throws as TileSource.
    [[nodiscard]] std::shared_ptr<const TileSource> source(const Shown& shown);
    [[nodiscard]] const TileCache& cache() const { return *cache_; }

private:
    struct Open {
        Shown shown;
        std::shared_ptr<const TileSource> source;
    };
    std::shared_ptr<TileCache> cache_;
    std::mutex mutex_;
    std::list<Open> open_;  ///< the last used first
};

/// A slice by the parameters `axes` (two dimensions, "0,2") and `at` (an index for every dimension, "5,0,0"; without
/// it zeros). Throws invalid_argument.
[[nodiscard]] TileSlice slice_of(const HttpRequest& request, int rank);
/// The numbers of a parameter, "3,-1": `count` of them. Throws invalid_argument, naming the parameter.
[[nodiscard]] Index numbers_of(const HttpRequest& request, std::string_view name, int count);
/// `at` as numbers_of(), inside the shape; zeros if it is absent.
[[nodiscard]] Index index_of(const HttpRequest& request, const Shape& shape);

/// A hash of a node's version, which changes with its metadata, its attributes, or its file.
[[nodiscard]] std::string node_tag(const ServedNode& node);

HttpResponse answer_value(Served& served, const HttpRequest& request);      ///< api/value
HttpResponse answer_rows(Served& served, const HttpRequest& request);       ///< api/rows
HttpResponse answer_profile(Served& served, const HttpRequest& request);    ///< api/profile
HttpResponse answer_chunks(Served& served, const HttpRequest& request);     ///< api/chunks
HttpResponse answer_picture(Served& served, const HttpRequest& request);    ///< api/picture
HttpResponse answer_first(Served& served, const HttpRequest& request);      ///< api/first
HttpResponse answer_selection(Served& served, const HttpRequest& request);  ///< api/selection
HttpResponse answer_find(Served& served, const HttpRequest& request);       ///< api/find
HttpResponse answer_version(Served& served, const HttpRequest& request);    ///< api/version

}  // namespace tessera::serve
