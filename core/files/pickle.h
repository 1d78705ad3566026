// Python pickles of NumPy object arrays whose elements are str or bytes, protocols 0 to 5. Private to the library.
//
// The reader is no unpickler. It knows the few opcodes and names that such an array needs, looks names up in a table of
// constants and calls nothing. Anything else ends the reading with an Error that names it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/dtype.h>
#include <tessera/shape.h>
#include <tessera/view.h>

namespace tessera {

/// The size of one element in bytes.
inline constexpr std::uint64_t longest_pickled_string = std::numeric_limits<std::uint32_t>::max();

/// The strings of a pickled object array. Thread rule: a move-only value.
struct PickledStrings {
    DType dtype;  ///< variable_text or variable_bytes; text if there is no element
    Shape shape;
    std::vector<VariableSlot> elements;  ///< in C order
    std::unique_ptr<Arena> arena;        ///< what the elements point into; the pickle itself is part of it

    [[nodiscard]] ArrayView view() const {
        return view_bytes(reinterpret_cast<const std::byte*>(elements.data()), dtype, shape);
    }
};

/// Reads a pickle and ignores bytes after its end. Memory: the pickle, and at most some 50 bytes for each byte of it.
/// Throws corrupt if it is no pickle of an array. Throws unsupported, naming other elements ("a dict at element 1"),
/// names ("os.system") and opcodes.
[[nodiscard]] PickledStrings read_pickled_strings(Buffer pickle);

/// Writes what pickle.dumps(array, protocol=3) of Python 3.11 with NumPy 1.24 returns for an object array of str or
/// bytes. Its elements are different objects, except empty and one-character ones, which CPython shares.
class PickleWriter {
public:
    using Put = std::function<void(ByteSpan)>;
    /// `kind` is variable_text or variable_bytes; `put` takes the bytes as they come. `fortran` is NumPy's note of the
    /// array's memory order; the elements come in C order regardless.
    PickleWriter(Kind kind, const Shape& shape, bool fortran, Put put);
    /// The next element. Throws invalid_argument for text that is not UTF-8, unsupported from 4 GiB on.
    void add(std::string_view element);
    void finish();

private:
    void put_state(Kind kind, const Shape& shape, bool fortran);
    void memoize();
    bool add_single(std::string_view element);
    void add_content(std::string_view element);
    void put_out();

    Kind kind_;
    Put put_;
    std::string out_;         // not yet put
    std::int64_t left_;       // elements to come
    bool single_ = false;     // one element in all: no batch
    std::int64_t batch_ = 0;  // elements in the open batch
    std::uint32_t next_memo_ = 0;
    std::vector<std::int64_t> singles_;  // memo numbers of the empty object and of those of one character; -1: none
};

}  // namespace tessera
