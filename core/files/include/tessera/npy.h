// .npy, NumPy's array file, versions 1.0 to 3.0: read, written byte for byte as NumPy 1.24 does, and mapped; and
// MappedArray, the elements of a .npy or .ra in memory.
// Source of the facts: NumPy's numpy/lib/format.py (1.24); tools/docs/formats.md in this project.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>
#include <tessera/ndarray.h>
#include <tessera/view.h>

namespace tessera {

struct PlainLayout;

/// The elements of a file, mapped into memory: base of MappedNpy and MappedRawArray. Access to a region touches only
/// its pages, and pages are read only when they are used. Thread rule: as plain memory. If the file is truncated
/// meanwhile, access ends the process with SIGBUS.
class MappedArray {
public:
    enum class Mode : std::uint8_t {
        read,        ///< NumPy's "r": writing through the view is a fault
        read_write,  ///< "r+": writes go to the file
    };
    MappedArray(MappedArray&&) noexcept;
    MappedArray& operator=(MappedArray&&) noexcept;
    virtual ~MappedArray();

    [[nodiscard]] ArrayView view() const;
    [[nodiscard]] MutableArrayView mutable_view();  ///< throws invalid_argument in Mode::read
    /// Writes changed pages to the file now (msync) and reports failures.
    void flush();

protected:
    /// Maps the file; throws not_found or io. There are no elements before set_layout.
    MappedArray(const std::filesystem::path& path, Mode mode);
    [[nodiscard]] const ByteSource& file() const;
    /// The caller has checked `layout` against the file's size.
    void set_layout(const PlainLayout& layout);

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The facts in the header of a .npy.
struct NpyHeader {
    int major = 1;
    int minor = 0;
    DType dtype;
    Order order = Order::C;
    Shape shape;
    std::uint64_t data_offset = 0;  ///< from the start of the file
};

/// The longest header text that is read: far above what any dtype needs (NumPy's own default refuses 10,000).
inline constexpr std::uint64_t npy_header_limit = 16 << 20;

/// Reads and checks a header, and that all data are there (object arrays: only the header). Throws corrupt or
/// unsupported, naming what was expected and found.
[[nodiscard]] NpyHeader read_npy_header(const ByteSource& file);
/// The bytes up to the data, exactly as NumPy 1.24's np.save writes them: the lowest version that can hold the header,
/// growth room, padding to 64. Throws unsupported for dtypes that .npy cannot express (bfloat16, variable length).
[[nodiscard]] std::string npy_header_bytes(const DType& dtype, const Shape& shape, Order order);

/// A .npy as a source. Large regions are read with several threads. An object array is read into memory here, by a
/// reader that executes nothing. If its elements are all str or all bytes, the source's dtype is variable_text or
/// variable_bytes. If not, the dtype stays `O`, and read_into throws an error that names what was found.
[[nodiscard]] std::unique_ptr<ArraySource> open_npy(std::shared_ptr<const ByteSource> file);
/// A new .npy of this dtype and shape, in `order`, into `sink`; regions come in any order if the sink is random-access,
/// else in memory order. Elements never written are zero. variable_text and variable_bytes become an object array (a
/// pickle of protocol 3, which NumPy loads with allow_pickle=True), whose regions come in C order.
[[nodiscard]] std::unique_ptr<ArraySink> create_npy(std::unique_ptr<ByteSink> sink, const DType& dtype,
                                                    const Shape& shape, Order order = Order::C);

/// Reads a whole .npy into memory, and writes one.
[[nodiscard]] NDArray load_npy(const std::filesystem::path& path);
void save_npy(const std::filesystem::path& path, const ArrayView& array);

/// A .npy mapped into memory: NumPy's np.memmap.
class MappedNpy : public MappedArray {
public:
    /// Throws as read_npy_header, and unsupported for object arrays.
    explicit MappedNpy(const std::filesystem::path& path, Mode mode = Mode::read);
    /// "w+": a new file of zeros, over any old one.
    [[nodiscard]] static MappedNpy create(const std::filesystem::path& path, const DType& dtype, const Shape& shape,
                                          Order order = Order::C);
    [[nodiscard]] const NpyHeader& header() const { return header_; }

private:
    NpyHeader header_;
};

}  // namespace tessera
