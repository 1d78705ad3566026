// HDF5 and netCDF-4 as a format of array files. A helper (helper_process.h) works with libhdf5.
#include "hdf5_sink.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/outside.h>
#include <tessera/own_helper.h>
#include <tessera/parallel.h>

#include "array_file_row.h"
#include "convert_source.h"
#include "foreign.h"
#include "helper_process.h"
#include "netcdf_format.h"
#include "plain_array.h"
#include "wire.h"

namespace tessera {

extern const ArrayFileFormat hdf5_format;

namespace {

bool hdf5_recognise(ByteSpan first) {
    return starts_with(first, "\x89HDF\r\n\x1a\n");
}

ForeignFile foreign_file(const ArrayPath& path) {
    ForeignFile file{.array = 0,
                     .folder = folder_of_paths(),
                     .path = path.path.string(),
                     .member = path.member,
                     .outside = outside_allowed(),
                     .elsewhere = std::nullopt,
                     .version = {}};
    if (path.is_elsewhere()) file.elsewhere = path.opened->size();
    return file;
}

std::string name_of(const ArrayPath& path) {
    return path.member ? path.path.string() + "::" + *path.member : path.path.string();
}

/// Asks about a file. Errors of the helper itself do not know it.
Buffer ask_about(const std::string& name, const ArrayPath& path, HelperWish wish) {
    wish.library = ForeignLibrary::hdf5;
    wish.source = path.opened.get();
    wish.file = path.path.c_str();
    try {
        return ask_helper(wish);
    } catch (const Error& e) {
        const bool named = std::string_view(e.what()).find(wish.file) != std::string_view::npos;
        if (named || e.code() == ErrorCode::cancelled) throw;
        throw e.within(name);
    }
}

/// Asks for what one function of the row returns.
template <class Answer>
Answer ask_for(ForeignTask task, const ArrayPath& path) {
    const Buffer request = wired(foreign_file(path));
    Answer answer;
    (void)ask_about(name_of(path), path,
                    {.task = task, .request = request, .read = [&](WireReader in) { in(answer); }});
    return answer;
}

class HelperSource final : public ArraySource {
public:
    explicit HelperSource(ArrayPath path) : path_(std::move(path)), asked_(foreign_file(path_)) {
        std::shared_ptr<const ByteSource> file = path_.opened;
        if (!path_.is_elsewhere()) path_.opened = nullptr;
        asked_.array = next_id();
        opened_.name = name_of(path_);
        const Buffer request = wired(asked_);
        ask({.task = ForeignTask::hdf5_open, .request = request, .read = [&](WireReader in) {
                 opened_ = checked(in.next<ForeignArray>());
             }});
        asked_.version = opened_.version;
        const ArrayInfo& info = opened_.info;
        item_ = info.dtype.size();
        const auto bytes = static_cast<std::uint64_t>(byte_count(info.shape, item_));
        held_ = opened_.offset == 0;
        if (opened_.offset != 0) file_ = file ? std::move(file) : path_.bytes();
        if (file_ && (bytes > file_->size() || opened_.offset > file_->size() - bytes)) file_ = nullptr;
        pieces_ = ChunkGrid(info.shape, piece_shape());
        if (!info.chunks.empty()) chunk_bytes_ = static_cast<std::uint64_t>(byte_count(info.chunks, item_));
    }
    ~HelperSource() override {
        if (!held_) return;
        try {
            const Buffer request = wired(asked_.array);
            tell_helpers({.task = ForeignTask::hdf5_close, .library = ForeignLibrary::hdf5, .request = request});
        } catch (...) {
            return;  // it closes the file when it rests
        }
    }
    HelperSource(const HelperSource&) = delete;
    HelperSource& operator=(const HelperSource&) = delete;

    ArrayInfo info() const override { return opened_.info; }
    const std::string& name() const override { return opened_.name; }
    Value attribute_values() const override { return opened_.attributes; }
    std::optional<std::vector<std::byte>> absent_element() const override { return opened_.absent; }

    bool visit_stored(const std::function<void(const Region&)>& each) const override {
        std::optional<std::vector<Region>> stored;
        const auto read = [&](WireReader in) {
            in(stored);
            if (!stored) return;
            for (const Region& region : *stored) require_inside(region, opened_.info.shape);
        };
        const Buffer request = wired(asked_);
        ask({.task = ForeignTask::hdf5_stored, .request = request, .read = read});
        if (!stored) return false;
        std::ranges::for_each(*stored, each);
        return true;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        in_context([&] { return opened_.name; }, [&] { require_inside(region, opened_.info.shape); });
        if (region.empty()) return;
        if (file_) {
            const PlainLayout layout{.name = opened_.name,
                                     .data_offset = opened_.offset,
                                     .dtype = opened_.info.dtype,
                                     .shape = opened_.info.shape};
            return read_plain(*file_, layout, region, out, io);
        }
        const Region touched = pieces_.overlapping(region);
        parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
            const ChunkPart part = chunk_part(pieces_, region, touched, n);
            Region piece = part.in_request;
            for (int d = 0; d < piece.rank(); ++d) piece.start[d] += region.start[d];
            const StopScope scope(io.stop);
            opened_.info.dtype.is_variable() ? read_texts(piece, out.part(part.in_request))
                                             : read_elements(piece, out.part(part.in_request));
        });
    }

private:
    void ask(HelperWish wish) const {
        held_ = true;
        (void)ask_about(opened_.name, path_, std::move(wish));
    }

    static ForeignArray checked(ForeignArray array) {
        const ArrayInfo& info = array.info;
        (void)byte_count(info.shape, info.dtype.size());
        if ((!info.chunks.empty() && info.chunks.rank() != info.shape.rank()) ||
            (array.absent && std::cmp_not_equal(array.absent->size(), info.dtype.size()))) {
            throw corrupt("what the helper says of it contradicts itself");
        }
        if (!info.chunks.empty()) (void)byte_count(info.chunks, info.dtype.size());
        return array;
    }

    static std::uint64_t next_id() {
        static std::atomic<std::uint64_t> last = 0;
        return ++last;
    }

    /// Whole chunks of a few MiB, so that little memory is shared and several helpers work on large regions.
    [[nodiscard]] Shape piece_shape() const {
        constexpr std::int64_t wanted = 4 << 20;
        const Shape& shape = opened_.info.shape;
        Shape piece = opened_.info.chunks.empty() ? Shape::filled(shape.rank(), 1) : opened_.info.chunks;
        for (int d = 0; d < piece.rank(); ++d) piece[d] = std::max<std::int64_t>(piece[d], 1);
        for (int d = piece.rank() - 1; d >= 0; --d) {
            const std::int64_t bytes = std::max<std::int64_t>(byte_count(piece, item_), 1);
            const std::int64_t times = std::max<std::int64_t>(wanted / bytes, 1);
            const std::int64_t most = ceil_div(std::max<std::int64_t>(shape[d], 1), piece[d]);
            piece[d] *= std::min(times, most);
            if (times < most) break;
        }
        return piece;
    }

    void read_elements(const Region& region, const MutableArrayView& out) const {
        const Buffer request = wired(asked_, region);
        const auto take = [&](ByteSpan space) {
            copy_elements(view_bytes(space.data(), opened_.info.dtype, region.extent), out);
        };
        ask_for_elements(
            {.request = request, .space = static_cast<std::size_t>(byte_count(region.extent, item_)), .take = take});
    }

    void read_texts(const Region& region, const MutableArrayView& out) const {
        const Buffer request = wired(asked_, region);
        ask_for_elements({.request = request, .read = [&](WireReader in) {
                              const auto count = static_cast<std::size_t>(element_count(region.extent));
                              const MemoryHold held(count * sizeof(VariableSlot));
                              std::vector<VariableSlot> slots(count);
                              for (VariableSlot& slot : slots) {
                                  const std::string_view text = in.text();
                                  if (!text.empty()) slot = out.arena->add(text);
                              }
                              const auto* const bytes = reinterpret_cast<const std::byte*>(slots.data());
                              copy_elements(view_bytes(bytes, opened_.info.dtype, region.extent), out);
                          }});
    }

    void ask_for_elements(HelperWish wish) const {
        wish.task = ForeignTask::hdf5_read;
        wish.granted = 2 * chunk_bytes_;  // as stored and decoded
        const MemoryHold held(wish.granted);
        ask(std::move(wish));
    }

    ArrayPath path_;     ///< `opened` only if it is elsewhere
    ForeignFile asked_;  ///< its folder, too: a read may come when the program is in another one
    ForeignArray opened_;
    mutable std::atomic<bool> held_ = false;  ///< a helper may have it open
    std::int64_t item_ = 0;
    std::shared_ptr<const ByteSource> file_;  ///< if the elements lie in it as they are
    std::uint64_t chunk_bytes_ = 0;
    ChunkGrid pieces_{Shape{}, Shape{}};
};

// ---- the row

std::vector<std::string> hdf5_names(const ArrayPath& path) {
    return ask_for<std::vector<std::string>>(ForeignTask::hdf5_members, path);
}

std::vector<ArrayFileMember> hdf5_all_listed(const ArrayPath& path) {
    std::vector<ArrayFileMember> members;
    for (ForeignMember& member : ask_for<std::vector<ForeignMember>>(ForeignTask::hdf5_listed, path)) {
        ArrayFileMember& made =
            members.emplace_back(ArrayFileMember{.name = std::move(member.name), .info = {}, .error = {}});
        if (member.info) {
            (void)byte_count(member.info->shape, member.info->dtype.size());
            made.info = *std::move(member.info);
        } else if (member.error) {
            made.error = error_of(*member.error);
        } else {
            throw corrupt("{}: what the helper says of {} says nothing", path.path.string(), made.name);
        }
    }
    return members;
}

std::vector<ArrayFileGroup> hdf5_all_groups(const ArrayPath& path) {
    return ask_for<std::vector<ArrayFileGroup>>(ForeignTask::hdf5_groups, path);
}

/// Throws corrupt for what no helper of this build says.
PackedArray checked_packed(PackedArray array) {
    (void)byte_count(array.shape, array.dtype.size());
    array.held.add(array.stored.size() * sizeof(PackedArray::Chunk));
    if (array.chunks.empty()) return array;
    if (array.chunks.rank() != array.shape.rank()) throw corrupt("{}: its chunks have another rank", array.name);
    const std::int64_t count = ChunkGrid(array.shape, array.chunks).chunk_count();
    for (const PackedArray::Chunk& chunk : array.stored) {
        if (chunk.number < 0 || chunk.number >= count)
            throw corrupt("{}: there is no chunk {}", array.name, chunk.number);
    }
    return array;
}

std::vector<PackedArray> hdf5_all_packed(const ArrayPath& path) {
    auto arrays = ask_for<std::vector<PackedArray>>(ForeignTask::hdf5_packed, path);
    for (PackedArray& array : arrays) array = checked_packed(std::move(array));
    return arrays;
}

std::optional<PackedArray> hdf5_as_chunks(const ArrayPath& path) {
    auto array = ask_for<std::optional<PackedArray>>(ForeignTask::hdf5_chunked, path);
    if (array) array = checked_packed(*std::move(array));
    return array;
}

std::unique_ptr<ArraySource> open_hdf5(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    return std::make_unique<HelperSource>(path);
}

Value hdf5_facts(const ArrayPath& path) {
    return ask_for<Value>(ForeignTask::hdf5_describe, path);
}

std::unique_ptr<ArraySource> hdf5_convert(const ArraySource& source, const ArrayFileOptions& /*options*/,
                                          const IoOptions& /*io*/) {
    if (source.info().dtype.kind() == Kind::text) return variable_strings(source);
    return source.info().dtype.kind() == Kind::bfloat16 ? widened_bfloat16(source) : nullptr;
}

void hdf5_check(const ArrayPath& path, ArrayFileChecker& checker) {
    for (const std::string& name : hdf5_format.members(path)) checker.read_array(name);
}

/// What the groups say of the dimensions of an array in them.
void add_unlimited(const std::string& array, const std::vector<ArrayFileGroup>& groups, Value& attributes) {
    const Value* const names = attributes.find(netcdf_dimensions);
    if (names == nullptr || !names->is_array()) return;
    Value all = Value::array();
    for (const std::string& name : take_unlimited(attributes)) all.push_back(name);
    for (const ArrayFileGroup& group : groups) {
        if (!group.name.empty() && !array.starts_with(group.name + "/")) continue;
        for (const std::string& name : group.unlimited) {
            if (std::ranges::count(names->as_array(), Value(name)) > 0) all.push_back(name);
        }
    }
    if (!all.as_array().empty()) attributes.set(unlimited_attribute, std::move(all));
}

void hdf5_bundle(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                 const IoOptions& io) {
    HelperWriter writer(path, options.durable);
    for (const ArrayFileGroup& group : bundle.groups) writer.group(group);
    for (const std::string& name : bundle.names) {
        const std::unique_ptr<ArraySource> stored = bundle.open(name);
        const auto converted = hdf5_convert(*stored, options, io);
        const ArraySource& source = converted ? *converted : *stored;
        Value attributes = bundle.attributes ? bundle.attributes(*stored) : stored->attribute_values();
        add_unlimited(name, bundle.groups, attributes);
        const auto sink = writer.add(name, source.info(), attributes, options.deflate_level);
        bundle.copy(source, *sink);
        bundle.made(name, source.info());
    }
    writer.finish();
}

}  // namespace

void expect_files(const std::vector<std::string>& paths) noexcept {
    const auto is_hdf5 = [](const std::string& text) {
        std::error_code error;
        const std::filesystem::path path = split_array_path(text).path;
        // Nothing else is looked at twice.
        static constexpr std::array names{".h5", ".hdf5", ".hdf", ".nc", ".nc4", ".he5", ".cdf"};
        if (std::ranges::find(names, path.extension()) == names.end()) return false;
        if (!std::filesystem::is_regular_file(path, error)) return false;
        std::array<std::byte, 8> first{};
        const auto file = open_file(path);
        if (file->size() < first.size()) return false;
        file->read(0, first);
        return hdf5_recognise(first);
    };
    try {
        if (std::ranges::any_of(paths, is_hdf5)) expect_helper(ForeignLibrary::hdf5);
    } catch (...) {
        return;  // whoever reads it says why
    }
}

extern constinit const ArrayFileFormat hdf5_format{
    .name = "hdf5",
    .extension = ".h5",
    .also = ".hdf5 .nc4 .he5 ",
    .about = "HDF5 and netCDF-4",
    .deflates = true,
    .ranged = true,
    .keeps_attributes = true,
    .adds_members = true,
    .recognise = hdf5_recognise,
    .members = hdf5_names,
    .listed = hdf5_all_listed,
    .groups = hdf5_all_groups,
    .packed = hdf5_all_packed,
    .chunked = hdf5_as_chunks,
    .open = open_hdf5,
    .create = create_hdf5,
    .convert = hdf5_convert,
    .describe = hdf5_facts,
    .check = hdf5_check,
    .bundle = hdf5_bundle,
};

}  // namespace tessera
