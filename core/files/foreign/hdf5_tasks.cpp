// Requests about files of HDF5 that are read: the arrays that are open, and what goes over.
#include <hdf5.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/ndarray.h>
#include <tessera/outside.h>

#include "hdf5_reader.h"
#include "server.h"

namespace tessera {

namespace {

/// Differs between versions of a file; the part before the first space differs between files.
std::string version_of(const std::string& path) {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) return {};
    return fmt::format("{}:{} {} {} {}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

/// An array that is open.
struct OpenArray {
    std::uint64_t id = 0;
    std::string version;  ///< of its file
    std::unique_ptr<ArraySource> source;
};

std::deque<OpenArray>& open_arrays() {
    static std::deque<OpenArray> arrays;
    return arrays;
}

void close_arrays() {
    open_arrays().clear();
}

/// libhdf5 shares its cache of an open file with later openings, even if the file was written meanwhile. Older versions
/// are closed first.
void close_older(const std::string& version) {
    const std::string_view file = std::string_view(version).substr(0, version.find(' ') + 1);
    std::erase_if(open_arrays(),
                  [&](const OpenArray& a) { return a.version.starts_with(file) && a.version != version; });
}

/// The subject of a request.
struct AskedFile {
    ForeignFile asked;
    ArrayPath path;
    std::string version;  ///< of the file now; empty if it is elsewhere
};

AskedFile asked_file(ForeignCall& call) {
    AskedFile file{.asked = call.request.next<ForeignFile>(), .path = {}, .version = {}};
    enter_folder(file.asked.folder);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    file.path.path = file.asked.path;
    file.path.member = file.asked.member;
    allow_outside(file.asked.outside);
    if (file.asked.elsewhere) {
        file.path.opened = std::make_shared<ParentBytes>(file.asked.path, *file.asked.elsewhere);
    } else {
        file.version = version_of(file.asked.path);
        close_older(file.version);
    }
    return file;
}

const ArraySource& array_of(const AskedFile& file) {
    auto& arrays = open_arrays();
    const auto known = std::ranges::find(arrays, file.asked.array, &OpenArray::id);
    if (known != arrays.end()) return *known->source;
    if (!file.asked.version.empty() && file.asked.version != file.version) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: the file has changed since it was opened; open it again", file.asked.path));
    }
    constexpr std::size_t most = 32;
    if (arrays.size() >= most) arrays.pop_front();
    arrays.push_back({file.asked.array, file.version, hdf5_open(file.path)});
    when_helper_rests(close_arrays);
    return *arrays.back().source;
}

/// Where the elements begin if they lie in the file as they are; else 0.
std::uint64_t plain_offset(const AskedFile& file, const ArrayInfo& info) {
    if (!info.chunks.empty() || info.dtype.is_variable() || element_count(info.shape) == 0) return 0;
    try {
        const std::vector<PackedArray> arrays = hdf5_packed(file.path);
        const bool plain = arrays.size() == 1 && arrays.front().chunks.empty() && arrays.front().row_stride == 0 &&
                           arrays.front().dtype == info.dtype && arrays.front().shape == info.shape;
        return plain ? arrays.front().offset : 0;
    } catch (const Error&) {
        return 0;  // the library reads them
    }
}

void open_array(ForeignCall& call) {
    const AskedFile file = asked_file(call);
    const ArraySource& source = array_of(file);
    const std::uint64_t offset = plain_offset(file, source.info());
    call.answer(ForeignArray{.version = file.version,
                             .name = source.name(),
                             .info = source.info(),
                             .attributes = source.attribute_values(),
                             .offset = offset,
                             .absent = source.absent_element()});
    if (offset != 0) open_arrays().pop_back();  // nothing of it is asked for
}

void put_stored(ForeignCall& call) {
    std::optional<std::vector<Region>> stored(std::in_place);
    const AskedFile file = asked_file(call);
    if (!array_of(file).visit_stored([&](const Region& region) { stored->push_back(region); })) stored.reset();
    call.answer(stored);
}

void put_elements(ForeignCall& call) {
    const AskedFile file = asked_file(call);
    const auto region = call.request.next<Region>();
    const ArraySource& source = array_of(file);
    const DType dtype = source.info().dtype;
    if (!dtype.is_variable()) {
        if (std::cmp_greater(byte_count(region.extent, dtype.size()), call.space.size())) {
            throw corrupt("the array has other elements than it had");
        }
        const MutableArrayView out{call.space.data(), dtype, region.extent,
                                   contiguous_strides(region.extent, dtype.size()), nullptr};
        return source.read_into(region, out, {.threads = 1});
    }
    NDArray texts(dtype, region.extent);
    source.read_into(region, texts.view(), {.threads = 1});
    const auto* const slots = reinterpret_cast<const VariableSlot*>(std::as_const(texts).view().data);
    for (std::int64_t i = 0; i < element_count(region.extent); ++i) call.answer(slots[i].view());
}

void close_array(ForeignCall& call) {
    const auto id = call.request.next<std::uint64_t>();
    std::erase_if(open_arrays(), [&](const OpenArray& a) { return a.id == id; });
}

void put_members(ForeignCall& call) {
    std::vector<ForeignMember> members;
    for (const ArrayFileMember& member : hdf5_listed(asked_file(call).path)) {
        ForeignMember& made = members.emplace_back(ForeignMember{.name = member.name, .info = {}, .error = {}});
        member.error ? (void)made.error.emplace(foreign_error(*member.error)) : (void)made.info.emplace(member.info);
    }
    call.answer(members);
}

/// Answers with what a function of the file says.
template <auto function>
void put(ForeignCall& call) {
    const AskedFile file = asked_file(call);
    call.answer(function(file.path));
}

}  // namespace

std::span<const ForeignRow> hdf5_tasks() {
    static constexpr std::array rows{
        ForeignRow{ForeignTask::hdf5_members, put<hdf5_members>},
        ForeignRow{ForeignTask::hdf5_listed, put_members},
        ForeignRow{ForeignTask::hdf5_groups, put<hdf5_groups>},
        ForeignRow{ForeignTask::hdf5_packed, put<hdf5_packed>},
        ForeignRow{ForeignTask::hdf5_chunked, put<hdf5_chunked>},
        ForeignRow{ForeignTask::hdf5_describe, put<hdf5_describe>},
        ForeignRow{ForeignTask::hdf5_open, open_array},
        ForeignRow{ForeignTask::hdf5_stored, put_stored},
        ForeignRow{ForeignTask::hdf5_read, put_elements},
        ForeignRow{ForeignTask::hdf5_close, close_array},
    };
    return rows;
}

}  // namespace tessera
