#include "hdf5_driver.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/descriptor.h>

namespace tessera {

namespace {

thread_local std::exception_ptr failure;

/// A file of this driver.
struct DriverFile : H5FD_t {
    std::shared_ptr<const ByteSource> bytes;
    haddr_t end = 0;  ///< of what libhdf5 takes for allocated
};

/// The bytes that open_hdf5_bytes() opens. libhdf5 takes this driver for links from such a file to others, too: they
/// find nothing.
thread_local std::shared_ptr<const ByteSource> opening;

H5FD_t* driver_open(const char* /*name*/, unsigned flags, hid_t /*properties*/, haddr_t /*most*/) {
    if (opening == nullptr || (flags & H5F_ACC_RDWR) != 0) return nullptr;
    try {
        auto file = std::make_unique<DriverFile>();
        file->bytes = std::exchange(opening, nullptr);
        return file.release();
    } catch (...) {
        failure = std::current_exception();
        return nullptr;
    }
}

herr_t driver_close(H5FD_t* file) {
    delete static_cast<DriverFile*>(file);
    return 0;
}

herr_t driver_query(const H5FD_t* /*file*/, unsigned long* flags) {
    *flags = 0;
    return 0;
}

haddr_t driver_end_allocated(const H5FD_t* file, H5FD_mem_t /*type*/) {
    return static_cast<const DriverFile*>(file)->end;
}

herr_t driver_set_end(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t end) {
    static_cast<DriverFile*>(file)->end = end;
    return 0;
}

haddr_t driver_end(const H5FD_t* file, H5FD_mem_t /*type*/) {
    return static_cast<const DriverFile*>(file)->bytes->size();
}

/// Reads zeros beyond the end, as libhdf5's own drivers do.
herr_t driver_read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t offset, std::size_t size, void* to) {
    const ByteSource& bytes = *static_cast<const DriverFile*>(file)->bytes;
    auto* const out = static_cast<std::byte*>(to);
    const std::uint64_t there = std::min<std::uint64_t>(size, bytes.size() - std::min(offset, bytes.size()));
    std::fill(out + there, out + size, std::byte{0});
    try {
        if (there > 0) bytes.read(offset, {out, static_cast<std::size_t>(there)});
        return 0;
    } catch (...) {
        failure = std::current_exception();
        return -1;
    }
}

herr_t driver_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*offset*/, std::size_t /*size*/,
                    const void* /*from*/) {
    return -1;
}

H5FD_class_t new_driver(const char* name, [[maybe_unused]] int number) {
    H5FD_class_t row{};
#ifdef H5FD_CLASS_VERSION  // since 1.14
    row.version = H5FD_CLASS_VERSION;
    constexpr int own = 513;  // of those that libhdf5 leaves to others
    row.value = static_cast<H5FD_class_value_t>(own + number);
#endif
    row.name = name;
    row.maxaddr = HADDR_MAX;
    row.fc_degree = H5F_CLOSE_WEAK;
    return row;
}

hid_t bytes_driver() {
    static const hid_t driver = [] {
        static H5FD_class_t row = new_driver("tessera", 0);
        row.open = driver_open;
        row.close = driver_close;
        row.query = driver_query;
        row.get_eoa = driver_end_allocated;
        row.set_eoa = driver_set_end;
        row.get_eof = driver_end;
        row.read = driver_read;
        row.write = driver_write;
        return H5FDregister(&row);
    }();
    return driver;
}

// ---- files that are written

struct WrittenFile : H5FD_t {
    Descriptor file;
    haddr_t end_allocated = 0, end = 0;
    std::shared_ptr<int> error;
    std::vector<std::pair<haddr_t, Buffer>> kept;  ///< metadata that could not be written
};

/// Like `opening`, for open_hdf5_output().
thread_local std::shared_ptr<int> opening_output;

WrittenFile& written(H5FD_t* file) {
    return *static_cast<WrittenFile*>(file);
}

H5FD_t* written_open(const char* name, unsigned flags, hid_t /*properties*/, haddr_t /*most*/) {
    const std::shared_ptr<int> error = std::exchange(opening_output, nullptr);
    if (error == nullptr) return nullptr;
    constexpr mode_t anyone = 0666;
    const int create = (flags & H5F_ACC_CREAT) != 0 ? O_CREAT | O_EXCL : 0;
    try {
        auto made = std::make_unique<WrittenFile>();
        made->file = Descriptor(::open(name, O_RDWR | O_CLOEXEC | create, anyone));
        const off_t end = made->file ? ::lseek(made->file.get(), 0, SEEK_END) : -1;
        if (end < 0) {
            *error = errno;
            return nullptr;
        }
        made->end = static_cast<haddr_t>(end);
        made->error = error;
        return made.release();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

herr_t written_close(H5FD_t* file) {
    const std::unique_ptr<WrittenFile> own(&written(file));
    const int error = own->file.close();
    if (*own->error == 0) *own->error = error;
    return 0;
}

/// As libhdf5's own driver for files.
herr_t written_query(const H5FD_t* /*file*/, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

haddr_t written_end_allocated(const H5FD_t* file, H5FD_mem_t /*type*/) {
    return static_cast<const WrittenFile*>(file)->end_allocated;
}

herr_t written_set_end(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t end) {
    written(file).end_allocated = end;
    return 0;
}

haddr_t written_end(const H5FD_t* file, H5FD_mem_t /*type*/) {
    return static_cast<const WrittenFile*>(file)->end;
}

herr_t written_read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t offset, std::size_t size, void* to) {
    const WrittenFile& from = written(file);
    const MutableByteSpan out{static_cast<std::byte*>(to), size};
    const auto read = pread_all(from.file.get(), out, offset);
    if (!read) return -1;
    std::ranges::fill(out.subspan(*read), std::byte{0});
    for (const auto& [at, bytes] : from.kept) {
        const haddr_t begin = std::max(at, offset);
        const haddr_t end = std::min(at + bytes.size(), offset + size);
        if (begin < end) std::copy_n(bytes.data() + (begin - at), end - begin, out.data() + (begin - offset));
    }
    return 0;
}

herr_t written_write(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t offset, std::size_t size,
                     const void* from) {
    WrittenFile& to = written(file);
    const ByteSpan bytes{static_cast<const std::byte*>(from), size};
    if (*to.error == 0 && !pwrite_all(to.file.get(), bytes, offset)) *to.error = errno;
    to.end = std::max(to.end, offset + size);
    if (*to.error == 0 || type == H5FD_MEM_DRAW) return 0;  // it reads no elements to close the file
    try {
        to.kept.emplace_back(offset, Buffer(bytes));
        return 0;
    } catch (...) {
        return -1;
    }
}

herr_t written_truncate(H5FD_t* file, hid_t /*transfer*/, hbool_t /*closing*/) {
    WrittenFile& to = written(file);
    if (to.end == to.end_allocated) return 0;
    if (*to.error == 0 && ::ftruncate(to.file.get(), static_cast<off_t>(to.end_allocated)) != 0) *to.error = errno;
    to.end = to.end_allocated;
    return 0;
}

hid_t output_driver() {
    static const hid_t driver = [] {
        static H5FD_class_t row = new_driver("tessera-output", 1);
        row.open = written_open;
        row.close = written_close;
        row.query = written_query;
        row.get_eoa = written_end_allocated;
        row.set_eoa = written_set_end;
        row.get_eof = written_end;
        row.read = written_read;
        row.write = written_write;
        row.truncate = written_truncate;
        constexpr std::array<H5FD_mem_t, H5FD_MEM_NTYPES> lists = H5FD_FLMAP_DICHOTOMY;
        std::ranges::copy(lists, std::begin(row.fl_map));
        return H5FDregister(&row);
    }();
    return driver;
}

}  // namespace

Hdf5Id open_hdf5_output(const std::string& path, bool adds, hid_t creation, std::shared_ptr<int> error) {
    const Hdf5Id properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    if (H5Pset_driver(properties.get(), output_driver(), nullptr) < 0) return {};
    opening_output = std::move(error);
    Hdf5Id file(adds ? H5Fopen(path.c_str(), H5F_ACC_RDWR, properties.get())
                     : H5Fcreate(path.c_str(), H5F_ACC_EXCL, creation, properties.get()),
                H5Fclose);
    opening_output = nullptr;
    return file;
}

Hdf5Id open_hdf5_bytes(std::shared_ptr<const ByteSource> bytes) {
    const Hdf5Id properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    if (H5Pset_driver(properties.get(), bytes_driver(), nullptr) < 0) return {};
    const std::string name = bytes->name();
    opening = std::move(bytes);
    Hdf5Id file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, properties.get()), H5Fclose);
    opening = nullptr;
    return file;
}

void rethrow_hdf5() {
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
}

void forget_hdf5_failure() {
    failure = nullptr;
}

}  // namespace tessera
