#ifdef TESSERA_HDF5
#include "hdf5_driver.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace tessera {

namespace {

thread_local std::exception_ptr failure;

/// A file of this driver.
struct DriverFile : H5FD_t {
    std::shared_ptr<const ByteSource> bytes;
    haddr_t end = 0;  ///< of what libhdf5 takes for allocated
};

/// What open_hdf5_bytes() opens. libhdf5 takes this driver for links from such a file to others, too: they find
/// nothing.
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

/// What lies beyond the end reads as zeros, as it does in libhdf5's own drivers.
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

hid_t bytes_driver() {
    static const hid_t driver = [] {
        static H5FD_class_t row{};
#ifdef H5FD_CLASS_VERSION  // since 1.14
        row.version = H5FD_CLASS_VERSION;
        constexpr int own = 513;  // of those that libhdf5 leaves to others
        row.value = static_cast<H5FD_class_value_t>(own);
#endif
        row.name = "tessera";
        row.maxaddr = HADDR_MAX;
        row.fc_degree = H5F_CLOSE_WEAK;
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

}  // namespace

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
#endif
