// MappedArray: the elements of a file, mapped into memory. Access to a region touches only its pages, and pages are
// read only when they are used. Base of MappedNpy and MappedRawArray.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include <tessera/byte_io.h>
#include <tessera/view.h>

namespace tessera {

struct PlainLayout;

/// Thread rule: as plain memory. If the file is truncated meanwhile, access ends the process with SIGBUS.
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

}  // namespace tessera
