#include <tessera/convert.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "array_access.h"
#include "chunk_memory.h"
#include "copy_bytes.h"
#include "fill_attribute.h"
#include "region_io.h"
#include "resize.h"
#include "stored_chunks.h"

namespace tessera {

namespace {

// ---- codecs

/// Maps names that produce the same bytes to one: the native name, and the one with numcodecs' spelling of the
/// configuration.
std::string_view plain_name(std::string_view name) {
    constexpr std::string_view prefix = "numcodecs.";
    if (!name.starts_with(prefix)) return name;
    const std::string_view bare = name.substr(prefix.size());
    return find_codec(bare) != nullptr ? bare : name;
}

bool is_compressor(const CodecConfig& codec) {
    const CodecRow* row = find_codec(plain_name(codec.name));
    return row != nullptr && row->compressor;
}

/// Whether `b` decodes what `a` encoded.
bool same_bytes(const CodecConfig& a, const CodecConfig& b, const ArrayMetadata& m) {
    if (plain_name(a.name) != plain_name(b.name)) return false;
    if (a.name == "bytes") {
        const auto endian = [&](const CodecConfig& codec) {
            const Value* v = codec.configuration.find("endian");
            if (m.dtype.swap_unit() == 1) return std::string();
            return v != nullptr ? v->as_string() : m.dtype.order() == ByteOrder::big ? "big" : "little";
        };
        return endian(a) == endian(b);
    }
    // blosc without zstd was chosen for a program that cannot read zstd.
    const auto zstd = [](const CodecConfig& codec) {
        const Value* cname = codec.name == "blosc" ? codec.configuration.find("cname") : nullptr;
        return cname != nullptr && *cname == Value("zstd");
    };
    if (zstd(a) && !zstd(b) && b.name == "blosc") return false;
    // The data of these codecs describes how to decode it; their configuration matters only for encoding.
    const CodecRow* row = find_codec(plain_name(a.name));
    if (row != nullptr && row->self_describing) return true;
    return a.configuration == b.configuration;
}

// ---- the nearest codecs, one concession after the other

/// Makes one change that lets more dialects express the metadata, and describes it; nullopt if it does not apply.
using Concession = std::optional<std::string> (*)(ArrayMetadata& m);

/// Removes the codecs for which `out` is true, and completes the chain.
template <class Out>
std::optional<std::string> without(ArrayMetadata& m, std::string_view what, const Out& out) {
    std::vector<std::string> gone;
    std::vector<CodecConfig> kept;
    for (CodecConfig& codec : m.codecs) {
        if (out(codec)) {
            gone.push_back(codec_text(codec));
        } else {
            kept.push_back(codec);
        }
    }
    if (gone.empty()) return {};
    m.codecs = complete_codecs(m.dtype, m.shape.rank(), Order::C, std::move(kept));
    return fmt::format("{} {} {} left out", what, fmt::join(gone, ", "), gone.size() == 1 ? "is" : "are");
}

std::optional<std::string> unshard(ArrayMetadata& m) {
    const ChunkLayout layout = chunk_layout(m);
    if (layout.shards.empty()) return {};
    m.codecs = layout.codecs;
    m.chunks = layout.chunks;
    m.edges.clear();
    return fmt::format("shards of {} become chunks of {}, a file each", layout.shards.to_string(),
                       layout.chunks.to_string());
}

std::optional<std::string> plain_blosc(ArrayMetadata& m) {
    std::optional<std::string> said;
    for (CodecConfig& codec : m.codecs) {
        if (plain_name(codec.name) != "blosc") continue;
        const std::string before = codec_text(codec);
        Value automatic = Value::object();
        automatic.set("cname", codec.configuration.at("cname"));
        const Value* clevel = codec.configuration.find("clevel");
        automatic.set("clevel", clevel != nullptr ? *clevel : Value(5));
        const Value* shuffle = codec.configuration.find("shuffle");
        if (shuffle != nullptr && shuffle->is_integer()) {
            // numcodecs' numbers; -1 is bitshuffle for single bytes and shuffle for all else.
            const std::int64_t n = shuffle->as_int64();
            const bool bits = n == 2 || (n == -1 && m.dtype.size() == 1);
            automatic.set("shuffle", n == 0 ? "noshuffle" : bits ? "bitshuffle" : "shuffle");
        } else {
            automatic.set("shuffle", shuffle != nullptr ? *shuffle : Value("shuffle"));
        }
        if (codec.name == "blosc" && codec.configuration == automatic) continue;
        codec = {"blosc", automatic};
        if (codec_text(codec) != before) said = fmt::format("the codec {} becomes {}", before, codec_text(codec));
        if (!said) said = "";
    }
    return said;
}

std::optional<std::string> without_filters(ArrayMetadata& m) {
    return without(m, "the filter", [&](const CodecConfig& codec) {
        const CodecRow* row = find_codec(codec.name);
        if (row == nullptr || row->bytes_to_bytes || codec.name == "transpose") return false;
        if (row->array_to_array) return true;
        const bool plain = codec.name == "bytes" && codec.configuration.find("endian") == nullptr;
        const bool of_numbers = row->objects == Kind::object && !row->shard;
        return codec.name.starts_with("numcodecs.") || (of_numbers && !plain);
    });
}

std::optional<std::string> without_transpose(ArrayMetadata& m) {
    return without(m, "the codec", [](const CodecConfig& codec) { return codec.name == "transpose"; });
}

std::optional<std::string> one_compressor(ArrayMetadata& m) {
    const auto last = std::find_if(m.codecs.rbegin(), m.codecs.rend(), is_compressor);
    const CodecConfig* kept = last == m.codecs.rend() ? nullptr : &*last;
    return without(m, "the codec", [&](const CodecConfig& codec) {
        const CodecRow* row = find_codec(codec.name);
        return row != nullptr && row->bytes_to_bytes && &codec != kept;
    });
}

/// The level of a compressor, limited to the levels of blosc and zlib.
std::int64_t level_of(const CodecConfig& codec) {
    for (const std::string_view member : {"level", "preset", "clevel"}) {
        const Value* v = codec.configuration.find(member);
        if (v != nullptr && v->is_integer()) return std::clamp<std::int64_t>(v->as_int64(), 1, 9);
    }
    return 5;
}

/// Replaces the compressor, or appends one if there is none.
std::optional<std::string> with_compressor(ArrayMetadata& m, const CodecConfig& codec) {
    const auto present = std::ranges::find_if(m.codecs, is_compressor);
    if (present == m.codecs.end()) {
        m.codecs.push_back(codec);
        return fmt::format("chunks without compression become {}", codec_text(codec));
    }
    const std::string before = codec_text(*present);
    *present = codec;
    return fmt::format("the codec {} becomes {}", before, codec_text(codec));
}

std::optional<std::string> zlib_for_gzip(ArrayMetadata& m) {
    const auto present = std::ranges::find_if(m.codecs, is_compressor);
    if (present == m.codecs.end() || plain_name(present->name) != "gzip") return {};
    CodecConfig zlib{"numcodecs.zlib"};
    zlib.configuration.set("level", level_of(*present));
    return with_compressor(m, zlib);
}

/// Only for dialects whose own programs cannot read zstd.
std::optional<std::string> blosc_instead(ArrayMetadata& m) {
    const auto present = std::ranges::find_if(m.codecs, is_compressor);
    const std::string_view name = present == m.codecs.end() ? "" : plain_name(present->name);
    if (name == "blosc") return {};
    CodecConfig blosc{"blosc"};
    blosc.configuration.set("cname", name.empty() || name == "numcodecs.lz4" ? "lz4" : "zlib");
    blosc.configuration.set("clevel", name.empty() ? 0 : level_of(*present));  // level 0: blosc only stores
    blosc.configuration.set("shuffle", name.empty() ? "noshuffle" : "shuffle");
    return with_compressor(m, blosc);
}

constexpr Concession concessions[] = {unshard,        plain_blosc,   without_filters, without_transpose,
                                      one_compressor, zlib_for_gzip, blosc_instead};

/// Changes codecs until `to` can express the metadata.
void choose_codecs(ArrayMetadata& m, const Dialect& to, std::vector<std::string>& changes) {
    std::vector<std::string> said;
    ErrorCode code{};
    std::string refusal;
    const auto expressible = [&] {
        try {
            to.require_expressible(m);
            return true;
        } catch (const Error& e) {
            code = e.code();
            refusal = e.what();
            return false;
        }
    };
    if (expressible()) return;
    const std::string why = refusal;
    for (const Concession concession : concessions) {
        const std::optional<std::string> change = concession(m);
        if (!change) continue;
        if (!change->empty()) said.push_back(*change);
        if (!expressible()) continue;
        for (const std::string& s : said) changes.push_back(fmt::format("{} ({})", s, why));
        return;
    }
    throw Error(code, refusal);  // codecs are not the cause
}

/// The program of `to` reads blosc, but not the zstd that is written inside it today.
void avoid_zstd(ArrayMetadata& m, const Dialect& to, std::vector<std::string>& changes) {
    for (CodecConfig& codec : m.codecs) {
        const Value* cname = plain_name(codec.name) == "blosc" ? codec.configuration.find("cname") : nullptr;
        if (cname == nullptr || *cname != Value("zstd")) continue;
        const std::string before = codec_text(codec);
        codec.configuration.set("cname", "zlib");
        changes.push_back(fmt::format("the codec {} becomes {} ({} cannot read zstd)", before, codec_text(codec),
                                      to.cannot_read_zstd));
    }
}

// ---- elements and fill

std::string zeros_text(const DType& dtype) {
    const ElementBytes zeros = zero_element(dtype);
    const VariableSlot empty;
    const auto* element = dtype.is_variable() ? reinterpret_cast<const std::byte*>(&empty) : zeros.data();
    return element_to_value(dtype, element).dump();
}

bool is_named(const Conversion& c) {
    return !c.metadata.dimension_names.empty() || c.metadata.spelling.find("dimension_names") != nullptr ||
           (c.attributes && c.attributes->find(dimensions_attribute) != nullptr);
}

/// v3 has no null; an attribute marks its replacement, so that converting back restores null. Of numbers with names of
/// dimensions null says that none is missing, and so does zero in v3.
void move_null_fill(Conversion& c, const Dialect& from, const Dialect& to) {
    ArrayMetadata& m = c.metadata;
    const Value* marked = c.attributes ? c.attributes->find(null_fill_attribute) : nullptr;
    if (to.null_fill) {
        if (marked == nullptr) return;
        c.attributes->erase(null_fill_attribute);
        if (m.fill.bytes != zero_element(m.dtype)) return;  // the fill was changed since
        m.fill = {};
        c.changes.emplace_back("the fill_value becomes null again");
        return;
    }
    if (m.fill.bytes) return;
    m.fill.bytes = zero_element(m.dtype);
    if (from.fill_is_missing && is_named(c) && is_number(m.dtype)) return;
    if (!c.attributes) c.attributes = Value::object();
    c.attributes->set(null_fill_attribute, "null");
    c.changes.push_back(fmt::format("the fill_value null becomes {}, because {} has no null; the attribute {} says so",
                                    zeros_text(m.dtype), to.name, null_fill_attribute));
}

void move_missing_mark(Conversion& c, const Dialect& from, const Dialect& to) {
    if (!is_named(c)) return;
    Value attributes = c.attributes.value_or(Value::object());
    const bool before = attributes.find(fill_attribute) != nullptr;
    move_missing(c.metadata, from, to, attributes);
    if ((attributes.find(fill_attribute) != nullptr) == before) {
        if (!before && from.fill_is_missing && !to.fill_is_missing &&
            c.metadata.fill.bytes == zero_element(c.metadata.dtype) && is_number(c.metadata.dtype)) {
            c.changes.push_back(
                fmt::format("elements that equal the fill_value {} are no missing ones there, although xarray takes "
                            "them for such in {}",
                            zeros_text(c.metadata.dtype), from.name));
        }
        return;
    }
    c.attributes = std::move(attributes);
    c.changes.push_back(
        before ? fmt::format("the attribute {} is left out: the fill_value says so", fill_attribute)
               : fmt::format("the attribute {} says that the fill_value marks missing elements", fill_attribute));
}

// ---- dimension names

/// The names in xarray's attribute, if it has one name or null for each dimension.
std::optional<std::vector<std::optional<std::string>>> names_in(const Value& attributes, int rank) {
    const Value* list = attributes.find(dimensions_attribute);
    if (list == nullptr || !list->is_array() || list->as_array().size() != static_cast<std::size_t>(rank)) return {};
    std::vector<std::optional<std::string>> names;
    for (const Value& name : list->as_array()) {
        if (!name.is_string() && !name.is_null()) return {};
        names.push_back(name.is_string() ? std::optional(name.as_string()) : std::nullopt);
    }
    return names;
}

void move_dimension_names(Conversion& c, const Dialect& to) {
    const auto given = c.attributes ? names_in(*c.attributes, c.metadata.shape.rank()) : std::nullopt;
    // A 0-d array has no names, but xarray needs the empty attribute.
    const bool none = c.metadata.shape.empty() && c.metadata.spelling.find("dimension_names") != nullptr;
    if (to.dimension_names) {
        if (!given || !c.metadata.dimension_names.empty()) return;
        c.metadata.dimension_names = *given;
        if (given->empty()) c.metadata.spelling.set("dimension_names", Value::array());
        c.attributes->erase(dimensions_attribute);
        c.changes.push_back(fmt::format("the attribute {} becomes dimension_names", dimensions_attribute));
        return;
    }
    c.metadata.spelling.erase("dimension_names");
    if (c.metadata.dimension_names.empty() && !none) return;
    if (c.attributes && c.attributes->find(dimensions_attribute) != nullptr && given != c.metadata.dimension_names) {
        throw unsupported(
            "{} has no dimension_names, and the attribute {} that stands for them is there already with other names",
            to.name, dimensions_attribute);
    }
    if (!c.attributes) c.attributes = Value::object();
    c.attributes->set(dimensions_attribute, dimension_names_json(c.metadata.dimension_names));
    c.metadata.dimension_names.clear();
    c.changes.push_back(fmt::format("dimension_names become the attribute {}", dimensions_attribute));
}

}  // namespace

Conversion convert_metadata(const ArrayMetadata& metadata, const std::optional<Value>& attributes, const Dialect& from,
                            const Dialect& to, bool codecs_chosen, bool fill_marks) {
    Conversion c{.metadata = metadata, .attributes = attributes, .changes = {}};
    ArrayMetadata& m = c.metadata;
    if (m.dtype.is_variable()) m.spelling.erase("order");  // which the chunks do not have: see v2.cpp
    if (&from == &to) return c;
    if (!m.fill.error.empty()) {
        throw unsupported("the fill_value {} means nothing outside {}: {}; give another one",
                          m.fill.spelling ? m.fill.spelling->dump() : "", from.name, m.fill.error);
    }
    // zarrita's null becomes the undefined fill of other dialects. There absent chunks may read as anything, so all
    // chunks are stored.
    if (to.null_fill && !from.null_fill && m.fill.spelling && m.fill.spelling->is_null()) m.fill.bytes.reset();
    m.fill.spelling.reset();  // the other dialect has its own spelling
    if (!m.unknown.as_object().empty()) {
        std::vector<std::string> names;
        for (const auto& [name, value] : m.unknown.as_object()) names.push_back(name);
        c.changes.push_back(
            fmt::format("members that only {} has are left out: {}", from.name, fmt::join(names, ", ")));
        m.unknown = Value::object();
    }
    const KeyScheme keys = m.keys;
    m.keys = to.keys_like(keys);
    if (!m.edges.empty() && !to.edges && chunk_layout(m).shards.empty()) {
        m.edges.clear();
        c.changes.push_back(
            fmt::format("the chunks, which differ in length, become chunks of {}", m.chunks.to_string()));
    }
    move_dimension_names(c, to);
    if (fill_marks) move_missing_mark(c, from, to);
    move_null_fill(c, from, to);
    if (c.attributes) fill_attribute_for(to, m.dtype, *c.attributes);
    m.fill.always_stored = m.fill.bytes && to.default_fill(m.dtype).always_stored;
    to.adapt(m, c.changes);
    choose_codecs(m, to, c.changes);
    if (!to.cannot_read_zstd.empty() && !codecs_chosen) avoid_zstd(m, to, c.changes);
    return c;
}

std::optional<std::string> why_recode(const ArrayMetadata& from, const ArrayMetadata& to) {
    if (!(from.dtype == to.dtype)) {
        return fmt::format("the dtype becomes {}", to.dtype.to_string());
    }
    if (!(from.shape == to.shape)) return "another shape";
    if (from.edges != to.edges) return "the lengths of chunks change";
    if (!(from.chunks == to.chunks))
        return fmt::format("chunks of {} become {}", from.chunks.to_string(), to.chunks.to_string());
    const auto read = [](const ArrayMetadata& m) {  // of absent chunks: zeros for an undefined fill
        return m.fill.error.empty() ? std::optional(fill_element(m)) : std::nullopt;
    };
    if (read(from) != read(to)) {
        return "another fill value, which chunks that are absent read as";
    }
    if (may_omit(from.fill) && !may_omit(to.fill)) {
        return "chunks that are absent must be stored there, where other programs do not read them as the fill";
    }
    if (!std::ranges::equal(from.codecs, to.codecs,
                            [&](const CodecConfig& a, const CodecConfig& b) { return same_bytes(a, b, from); })) {
        const auto text = [](const std::vector<CodecConfig>& codecs) {
            std::vector<std::string> names;
            for (const CodecConfig& codec : codecs) names.push_back(codec_text(codec));
            return fmt::format("{}", fmt::join(names, " + "));
        };
        return fmt::format("the codecs {} become {}", text(from.codecs), text(to.codecs));
    }
    return {};
}

namespace {

/// Copies the chunks of one array to another as they are.
class ChunkCopier {
public:
    ChunkCopier(const Array& from, Array& to, const ChunkCopyOptions& options)
        : options_(options),
          source_(*ArrayAccess::state(from)),
          target_(*ArrayAccess::state(to)),
          from_(source_.loaded()),
          to_(target_.loaded()),
          decoded_(from_->pipeline.shard() == nullptr ? from_->grid
                                                      : ChunkGrid(from_->grid.shape(), from.info().chunks)),
          far_(source_.store->is_far() && from_->pipeline.shard() == nullptr),
          whole_(far_ && !target_.store->is_far()),
          verified_(far_ && !whole_ && options.verify),
          kept_(options.verify && !far_ ? source_.store->keep_parts(true) : nullptr) {
        one_thread_.threads = 1;
        if (options.io.progress != nullptr) {
            options.io.progress->start(from_->grid.chunk_count() * from_->chunk_bytes(), from.name());
        }
    }

    CopiedChunks run() {
        if (source_.store->lists()) {
            add_stored();
        } else {  // which of them there are shows when they are asked for
            for (std::int64_t chunk = 0; chunk < from_->grid.chunk_count(); ++chunk) add(chunk);
        }
        copy_batch();
        return {.chunks = copied_, .linked = linked_};
    }

private:
    void add_stored() {
        for_each_stored(source_, *from_,
                        {.each =
                             [&](const Index& chunk, const std::string&, const auto&) {
                                 if (in_grid(from_->grid, chunk)) add(from_->grid.linear(chunk));
                             },
                         .in_the_way =
                             [&](const Index* chunk, const std::string&, const std::string& text) {
                                 if (chunk == nullptr || in_grid(from_->grid, *chunk)) throw corrupt(text);
                             }});
    }

    /// In batches: the names of all chunks may be too many to hold at once.
    void add(std::int64_t chunk) {
        constexpr std::size_t batch_size = 16384;
        batch_.push_back(chunk);
        if (batch_.size() == batch_size) copy_batch();
    }

    void copy_batch() {
        look_for_batch();
        const auto next = [&, n = std::size_t{0}](ReadWish& wish) mutable {
            if (n == batch_.size()) return false;
            wish.key = source_.chunk_key(*from_, from_->grid.index(batch_[n]));
            wish.whole = fetches(n++);
            return true;
        };
        const auto ahead = source_.store->read_ahead(whole_ || verified_ ? usual_bytes(*from_) : 0, next);
        parallel_in_memory(static_cast<std::int64_t>(batch_.size()), options_.io,
                           [&](std::int64_t n) { copy_one(static_cast<std::size_t>(n)); });
        batch_.clear();
    }

    /// Which chunks of the batch an earlier run has copied.
    void look_for_batch() {
        if (options_.fresh) return;
        std::vector<std::string> keys;
        for (const std::int64_t chunk : batch_) keys.push_back(target_.chunk_key(*to_, from_->grid.index(chunk)));
        here_ = target_.store->stamps(keys);
    }

    void copy_one(std::size_t n) {
        const Index index = from_->grid.index(batch_[n]);
        const std::string key = source_.chunk_key(*from_, index);
        const std::string new_key = target_.chunk_key(*to_, index);
        if (!(fetches(n) ? fetch_one(n, index, key, new_key) : copy_here(n, index, key, new_key))) return;
        ++copied_;
        if (options_.io.progress != nullptr) options_.io.progress->advance(from_->chunk_bytes());
    }

    [[nodiscard]] bool is_here(std::size_t n) const { return !options_.fresh && here_[n]; }
    /// From far away a chunk comes by one request, unless it is already here.
    [[nodiscard]] bool fetches(std::size_t n) const { return verified_ || (whole_ && !is_here(n)); }

    /// False for a chunk that is not there.
    bool fetch_one(std::size_t n, const Index& index, const std::string& key, const std::string& new_key) const {
        ScratchPool::Loan scratch(source_.scratch);
        Buffer& value = scratch->encoded;
        if (!source_.store->get(key, value, from_->pipeline.encoded_limit())) return false;
        if (options_.verify || value.empty()) check_value(source_, *from_, index, key, value);
        if (!verified_ || !is_here(n)) target_.store->put(new_key, value);
        return true;
    }

    /// False for a chunk that was erased since it was listed.
    bool copy_here(std::size_t n, const Index& index, const std::string& key, const std::string& new_key) {
        if (options_.verify) check(index);
        if (options_.link && target_.store->local_files().link(new_key, *source_.store, key)) {
            ++linked_;
            return true;
        }
        const bool is_new = !target_.published && !options_.link;
        if (is_new && target_.store->local_files().copy_new(new_key, *source_.store, key)) return true;
        const auto value = source_.store->open(key);
        if (value == nullptr) return false;
        if (value->size() == 0) check(index);  // damaged: says so
        // A resumed copy may find a chunk that was cut short: it has another size.
        if (!is_here(n) || here_[n]->size != value->size()) copy_bytes(*value, *target_.store, new_key);
        return true;
    }

    /// Decodes a chunk, or a shard by its inner chunks.
    void check(const Index& index) const {
        const Region region = from_->grid.chunk_region(index);
        const Region overlapped = decoded_.overlapping(region);
        for (std::int64_t n = 0; n < overlapped.count(); ++n) {
            const Region part = decoded_.chunk_region(chunk_part(decoded_, region, overlapped, n).chunk);
            in_chunk_memory(*from_, [&] {
                NDArray elements(from_->metadata.dtype, part.extent);
                read_region(source_, *from_, part, elements, one_thread_);
            });
        }
    }

    const ChunkCopyOptions& options_;
    const ArrayState& source_;
    const ArrayState& target_;
    std::shared_ptr<const LoadedArray> from_;
    std::shared_ptr<const LoadedArray> to_;
    ChunkGrid decoded_;
    bool far_;
    bool whole_;
    bool verified_;  ///< each is read, also where it is already here
    std::unique_ptr<ReadAhead> kept_;
    IoOptions one_thread_ = options_.io;
    std::vector<std::int64_t> batch_;
    std::vector<std::optional<ValueStamp>> here_;  ///< of the batch's chunks; of no use if nothing was here
    std::atomic<std::int64_t> copied_ = 0;
    std::atomic<std::int64_t> linked_ = 0;
};

}  // namespace

CopiedChunks copy_chunks(const Array& from, Array& to, const ChunkCopyOptions& options) {
    return ChunkCopier(from, to, options).run();
}

}  // namespace tessera
