// The index of an array's chunks: what the elements of each amount to, in `.tessera/index`. See chunk_index.cpp for
// what makes an entry count, and tools/docs/formats.md for the bytes.
#pragma once

#include <tessera/array.h>
#include <tessera/array_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/element.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>
#include <tessera/value.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

/// What making or completing an index came to, in stored chunks (with shards: shards).
struct Indexed {
    std::int64_t chunks = 0;
    std::int64_t kept = 0;     ///< entries that still counted
    std::int64_t counted = 0;  ///< chunks that were read
    /// Of these, chunks without an entry: they changed a moment ago, so that a further change might not show in their
    /// times.
    std::int64_t unsettled = 0;
    std::uint64_t bytes = 0;  ///< of the index
};

/// The summaries of what the elements of a stored array stand for (decoded()), unit by unit: a unit is a chunk, or with
/// shards an inner chunk. Thread rule: const members from one thread at a time for each object.
class ChunkIndex {
public:
    /// Of an array in a directory whose elements are real numbers or times. nullptr for any other source, and with
    /// `raw` where elements stand for something else than themselves. `why`, unless null, becomes a sentence about it.
    [[nodiscard]] static std::shared_ptr<const ChunkIndex> of(const ArraySource& source, bool raw,
                                                              std::string* why = nullptr);
    /// The same, only of an array that has an index; whether its entries count is not looked at.
    [[nodiscard]] static std::shared_ptr<const ChunkIndex> there(const ArraySource& source, bool raw);

    enum class Entries : std::uint8_t {
        use,     ///< entries that count are used
        ignore,  ///< all is read: for the same results bit by bit
        only,    ///< nothing is read: only units of which an entry counts are taken, each as a whole
    };
    /// A part of the array, and how to go about it.
    struct Part {
        Region region;
        bool bins = false;  ///< whether histograms are needed
        bool sums = false;  ///< whether exact sums are
        /// Whether entries are made of what is read: in a `.tessera` that is there, of this user and not sealed.
        bool keep = false;
        /// Whether to give up if most chunks would have to be read, as far as the first ones tell.
        bool mostly_known = false;
        Entries entries = Entries::use;
    };
    /// A unit's part within the region asked for: the saved ColumnSummary of its elements, with histograms as asked.
    using TakeUnit = std::function<void(const Region& elements, std::string_view summary)>;
    /// Calls `take` for what is stored of a part, in C order of the chunks, whoever is faster; in the calling thread.
    /// Returns how many elements these are; all others are absent. nullopt, before the first call, if that cannot be
    /// told, or with mostly_known: elements are to be read in another way then. Throws as reading does, but not for an
    /// index that cannot be written.
    [[nodiscard]] std::optional<std::int64_t> for_each_unit(const Part& part, const TakeUnit& take,
                                                            const IoOptions& io) const;

    /// Makes the index, or completes it, and writes what changed. Throws unsupported, with the reason, where none may
    /// be written: in another user's array, in a sealed one, on a file system whose times cannot be relied on.
    Indexed complete(const IoOptions& io) const;

    /// The elements that all this is about, in host order, and the fill that is counted among them.
    [[nodiscard]] const ArraySource& elements() const { return *elements_; }
    [[nodiscard]] const std::optional<ElementBytes>& fill() const { return fill_; }
    /// The grid of units.
    [[nodiscard]] ChunkGrid units() const;
    /// The least and the greatest element of a summary, in host order; nullopt if there is none but NaN.
    [[nodiscard]] std::optional<std::pair<ElementBytes, ElementBytes>> extremes(std::string_view summary) const;
    /// What elements read as that are not stored; nullopt if that is not known.
    [[nodiscard]] std::optional<ElementBytes> absent_element() const;

private:
    ChunkIndex(const Array& array, std::unique_ptr<ArraySource> elements, const Value& attributes);

    Array array_;
    std::shared_ptr<const struct LoadedArray> loaded_;
    std::unique_ptr<const ArraySource> elements_;
    std::optional<ElementBytes> fill_;
    std::string sense_;  ///< a hash of everything that gives the bytes of chunks their sense

    friend class IndexWalk;
};

/// ChunkIndex::complete() of a source. Throws unsupported, with the reason, if it can have no index.
Indexed index_chunks(const ArraySource& source, const IoOptions& io = {});

}  // namespace tessera
