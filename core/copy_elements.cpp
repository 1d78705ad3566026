#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <tessera/element.h>
#include <tessera/ndarray.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera {

namespace {

/// One loop of a nest: `n` steps, each moving the two pointers by these bytes.
struct Loop {
    std::int64_t n = 0;
    std::int64_t to = 0;
    std::int64_t from = 0;
};

/// The loops over all elements, outermost first. Dimensions of length 1 are dropped. The innermost loop has the
/// smallest step in `to`. Neighbouring loops that step as one are merged.
struct Nest {
    std::array<Loop, max_rank> loops;
    int depth = 0;
};

Nest make_nest(const Shape& shape, const Strides& to, const Strides& from) {
    Nest nest;
    for (int d = 0; d < shape.rank(); ++d) {
        if (shape[d] != 1) nest.loops[nest.depth++] = {shape[d], to[d], from[d]};
    }
    const auto begin = nest.loops.begin();
    std::stable_sort(begin, begin + nest.depth,
                     [](const Loop& a, const Loop& b) { return std::abs(a.to) > std::abs(b.to); });
    int kept = 0;
    for (int k = 0; k < nest.depth; ++k) {
        const Loop inner = nest.loops[k];
        if (kept > 0) {
            Loop& outer = nest.loops[kept - 1];
            if (outer.to == inner.to * inner.n && outer.from == inner.from * inner.n) {
                outer = {outer.n * inner.n, inner.to, inner.from};
                continue;
            }
        }
        nest.loops[kept++] = inner;
    }
    nest.depth = kept;
    return nest;
}

/// Runs body(to, from) for every combination of the outer `depth` loops.
template <class Body>
void run_nest(const Loop* loops, int depth, std::byte* to, const std::byte* from, const Body& body) {
    if (depth == 0) {
        body(to, from);
        return;
    }
    for (std::int64_t i = 0; i < loops->n; ++i) {
        run_nest(loops + 1, depth - 1, to, from, body);
        to += loops->to;
        from += loops->from;
    }
}

template <std::size_t Size>
void copy_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n) {
    const auto run = [&](std::int64_t t, std::int64_t f) {
        for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * t, from + i * f, Size);  // one load and one store
    };
    constexpr auto size = static_cast<std::int64_t>(Size);
    // Reversed rows; constant steps for the compiler.
    if (to_step == size && from_step == -size) return run(size, -size);
    if (to_step == -size && from_step == size) return run(-size, size);
    run(to_step, from_step);
}

/// Copies a number with its bytes reversed.
template <std::size_t Size>
void turn(std::byte* to, const std::byte* from) {
    using Bits =
        std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>;
    Bits v;
    std::memcpy(&v, from, Size);
    if constexpr (Size == 2) v = __builtin_bswap16(v);
    if constexpr (Size == 4) v = __builtin_bswap32(v);
    if constexpr (Size == 8) v = __builtin_bswap64(v);
    std::memcpy(to, &v, Size);
}

/// Byte-swaps elements of `Size` bytes that are one number, or two if complex.
template <std::size_t Size, std::size_t Number>
void turn_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n) {
    const auto run = [&](std::int64_t t, std::int64_t f) {
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::size_t part = 0; part < Size; part += Number)
                turn<Number>(to + i * t + part, from + i * f + part);
        }
    };
    constexpr auto size = static_cast<std::int64_t>(Size);
    if (to_step == size && from_step == size) return run(size, size);  // constant steps for the compiler
    run(to_step, from_step);
}

using RowCopy = void (*)(std::byte*, std::int64_t, const std::byte*, std::int64_t, std::int64_t);

/// The byte-swapping copy for rows of elements of `size` bytes that consist of numbers of `number` bytes; nullptr for
/// other elements.
RowCopy row_turn(std::int64_t size, std::int64_t number) {
    if (size == 2 && number == 2) return turn_row<2, 2>;
    if (size == 4 && number == 4) return turn_row<4, 4>;
    if (size == 8 && number == 8) return turn_row<8, 8>;
    if (size == 8 && number == 4) return turn_row<8, 4>;
    if (size == 16 && number == 8) return turn_row<16, 8>;
    return nullptr;
}

/// The copy for rows of elements of this size; nullptr for other sizes. The one switch on the element size.
RowCopy row_copy(std::int64_t size) {
    switch (size) {
        case 1:
            return copy_row<1>;
        case 2:
            return copy_row<2>;
        case 4:
            return copy_row<4>;
        case 8:
            return copy_row<8>;
        case 16:
            return copy_row<16>;
        default:
            return nullptr;
    }
}

void copy_strided(std::int64_t size, std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                  std::int64_t n) {
    if (const RowCopy row = row_copy(size)) {
        row(to, to_step, from, from_step, n);
        return;
    }
    for (std::int64_t i = 0; i < n; ++i)
        std::memcpy(to + i * to_step, from + i * from_step, static_cast<std::size_t>(size));
}

constexpr std::int64_t cache_line = 64;

/// 16 bytes as a vector type of the compiler, which chooses the machine's instructions for it.
template <class T>
struct Row {
    typedef T Vector __attribute__((vector_size(16)));  // NOLINT(modernize-use-using): templates drop it from an alias
    Vector v;
};

/// Interleaves the first halves of two vectors, or from Begin = n / 2 their last halves.
template <int Begin, class V, int... K>
V interleave(V a, V b, std::integer_sequence<int, K...>) {
    constexpr int n = sizeof...(K);
    return __builtin_shufflevector(a, b, (Begin + K / 2 + K % 2 * n)...);
}

/// Transposes a square: 16 bytes per row, and as many rows as elements in a row. Each round interleaves the first half
/// of the rows with the second half. After log2(rows) rounds, rows have become columns.
template <class T>
void transpose_square(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step) {
    constexpr int n = 16 / sizeof(T);
    constexpr std::make_integer_sequence<int, n> elements;
    std::array<Row<T>, n> rows;
    for (int i = 0; i < n; ++i) std::memcpy(&rows[i], from + i * from_step, sizeof rows[i]);
    for (int round = 1; round < n; round *= 2) {
        const auto old = rows;
        for (int i = 0; i < n / 2; ++i) {
            rows[2 * i].v = interleave<0>(old[i].v, old[i + n / 2].v, elements);
            rows[2 * i + 1].v = interleave<n / 2>(old[i].v, old[i + n / 2].v, elements);
        }
    }
    for (int i = 0; i < n; ++i) std::memcpy(to + i * to_step, &rows[i], sizeof rows[i]);
}

/// Copies a plane in tiles, so that each cache line of both sides is used up before it is dropped. `inner` has the
/// smallest steps in `to`, `across` in `from`. The side whose rows are farther apart is the large array, which is not
/// in cache: it is passed in long runs along its rows, which the processor foresees. The other side is a chunk, which
/// is. `tile` copies the elements from a to a_end of `across` and from b to b_end of `inner`.
template <class Tile>
void run_tiles(std::int64_t size, const Loop& across, const Loop& inner, const Tile& tile) {
    const std::int64_t line = std::max<std::int64_t>(cache_line / size, 4);
    constexpr std::int64_t few = 64;
    if (std::abs(across.to) > std::abs(inner.from)) {
        for (std::int64_t a = 0; a < across.n; a += line) {
            for (std::int64_t b = 0; b < inner.n; b += few) {
                tile(a, std::min(a + line, across.n), b, std::min(b + few, inner.n));
            }
        }
    } else {
        for (std::int64_t b = 0; b < inner.n; b += line) {
            for (std::int64_t a = 0; a < across.n; a += few) {
                tile(a, std::min(a + few, across.n), b, std::min(b + line, inner.n));
            }
        }
    }
}

/// For elements that are adjacent on both sides: transposes squares, then copies the rest of the tile row by row.
/// `turned`, unless nullptr, byte-swaps the numbers while the tile is in cache.
template <class T>
void transpose_plane(std::byte* to, const std::byte* from, const Loop& across, const Loop& inner, RowCopy turned) {
    constexpr std::int64_t edge = 16 / sizeof(T);
    run_tiles(sizeof(T), across, inner, [&](std::int64_t a, std::int64_t a_end, std::int64_t b, std::int64_t b_end) {
        const std::int64_t first = a;
        for (; a < a_end; a += edge) {
            std::byte* t = to + a * across.to;
            const std::byte* f = from + a * across.from;
            std::int64_t k = b;
            for (; a + edge <= a_end && k + edge <= b_end; k += edge) {
                transpose_square<T>(t + k * inner.to, across.to, f + k * inner.from, inner.from);
            }
            for (std::int64_t r = 0; k < b_end && r < std::min(edge, a_end - a); ++r) {
                copy_row<sizeof(T)>(t + r * across.to + k * inner.to, inner.to, f + r * across.from + k * inner.from,
                                    inner.from, b_end - k);
            }
        }
        for (a = first; turned != nullptr && a < a_end; ++a) {
            std::byte* const row = to + a * across.to + b * inner.to;
            turned(row, inner.to, row, inner.to, b_end - b);
        }
    });
}

void copy_across(std::int64_t size, std::byte* to, const std::byte* from, const Loop& across, const Loop& inner,
                 RowCopy turned) {
    if (across.from == size && inner.to == size) {
        switch (size) {
            case 1:
                return transpose_plane<std::uint8_t>(to, from, across, inner, turned);
            case 2:
                return transpose_plane<std::uint16_t>(to, from, across, inner, turned);
            case 4:
                return transpose_plane<std::uint32_t>(to, from, across, inner, turned);
            case 8:
                return transpose_plane<std::uint64_t>(to, from, across, inner, turned);
            default:
                break;
        }
    }
    run_tiles(size, across, inner, [&](std::int64_t a, std::int64_t a_end, std::int64_t b, std::int64_t b_end) {
        for (; a < a_end; ++a) {
            std::byte* const t = to + a * across.to + b * inner.to;
            const std::byte* const f = from + a * across.from + b * inner.from;
            if (turned != nullptr) {
                turned(t, inner.to, f, inner.from, b_end - b);
            } else {
                copy_strided(size, t, inner.to, f, inner.from, b_end - b);
            }
        }
    });
}

/// Makes one element of each row if rows are contiguous on both sides and as long as an element may be. Returns the
/// size of an element.
std::int64_t merge_short_rows(std::int64_t size, Nest& nest) {
    if (nest.depth < 2) return size;
    const Loop inner = nest.loops[nest.depth - 1];
    if (inner.to != size || inner.from != size || row_copy(inner.n * size) == nullptr) return size;
    --nest.depth;
    return inner.n * size;
}

/// Copies units of `size` bytes; `turned`, unless nullptr, copies a row and byte-swaps each unit.
void copy_units(std::int64_t size, const ArrayView& from, const MutableArrayView& to, RowCopy turned) {
    Nest nest = make_nest(from.shape, to.strides, from.strides);
    if (turned == nullptr) size = merge_short_rows(size, nest);
    const Loop inner = nest.depth > 0 ? nest.loops[nest.depth - 1] : Loop{1, size, size};
    const int around = std::max(nest.depth - 1, 0);
    if (inner.to == size && inner.from == size && turned == nullptr) {
        run_nest(nest.loops.data(), around, to.data, from.data, [&](std::byte* t, const std::byte* f) {
            std::memcpy(t, f, static_cast<std::size_t>(inner.n * size));
        });
        return;
    }
    // A transposition: some other loop steps through `from` in smaller steps.
    auto* const end = nest.loops.begin() + around;
    auto* const across = std::min_element(
        nest.loops.begin(), end, [](const Loop& a, const Loop& b) { return std::abs(a.from) < std::abs(b.from); });
    if (across == end || std::abs(across->from) >= std::abs(inner.from) || std::abs(inner.from) < cache_line) {
        run_nest(nest.loops.data(), around, to.data, from.data, [&](std::byte* t, const std::byte* f) {
            if (turned != nullptr) {
                turned(t, inner.to, f, inner.from, inner.n);
            } else {
                copy_strided(size, t, inner.to, f, inner.from, inner.n);
            }
        });
        return;
    }
    std::array<Loop, max_rank> outer;
    std::copy(across + 1, end, std::copy(nest.loops.begin(), across, outer.begin()));
    run_nest(outer.data(), around - 1, to.data, from.data,
             [&](std::byte* t, const std::byte* f) { copy_across(size, t, f, *across, inner, turned); });
}

/// Copies raw element bytes.
void copy_raw(const ArrayView& from, const MutableArrayView& to) {
    if (from.dtype.size() == 0 || from.count() == 0) return;
    copy_units(from.dtype.size(), from, to, nullptr);
}

/// Copies numbers and byte-swaps them on the way. Returns false for other elements.
bool copy_turned(const ArrayView& from, const MutableArrayView& to) {
    const RowCopy turned = row_turn(from.dtype.size(), from.dtype.swap_unit());
    if (turned == nullptr || from.dtype.kind() == Kind::structure) return false;
    if (from.count() > 0) copy_units(from.dtype.size(), from, to, turned);
    return true;
}

/// Runs row(pointer, step, n) over all elements of a view.
template <class View, class Row>
void for_each_row(const View& v, const Row& row) {
    if (v.count() == 0) return;
    const Nest nest = make_nest(v.shape, v.strides, v.strides);
    if (nest.depth == 0) {
        row(v.data, v.dtype.size(), std::int64_t{1});
        return;
    }
    const Loop inner = nest.loops[nest.depth - 1];
    auto* const first = const_cast<std::byte*>(v.data);  // `row` is responsible for writes
    run_nest(nest.loops.data(), nest.depth - 1, first, first,
             [&](std::byte* p, const std::byte*) { row(p, inner.to, inner.n); });
}

void swap_all(const MutableArrayView& v) {
    for_each_row(v, [&](std::byte* p, std::int64_t step, std::int64_t n) { swap_elements(v.dtype, p, step, n); });
}

/// A view of one field of every element; the dimensions of its sub-array follow.
MutableArrayView field_view(const MutableArrayView& v, const Field& field) {
    MutableArrayView f{v.data + field.offset, field.dtype, v.shape, v.strides, v.arena};
    const Strides inner = contiguous_strides(field.shape, field.dtype.size());
    for (int d = 0; d < field.shape.rank(); ++d) {
        f.shape.push_back(field.shape[d]);
        f.strides.push_back(inner[d]);
    }
    return f;
}

/// Brings elements that were copied raw from `from` into the byte order of `to.dtype`.
void convert_order(const DType& from, const MutableArrayView& to) {
    if (from == to.dtype || to.count() == 0) return;
    if (from.kind() != Kind::structure) {
        swap_all(to);
        return;
    }
    const auto source = from.fields();
    const auto target = to.dtype.fields();
    for (std::size_t i = 0; i < target.size(); ++i) convert_order(source[i].dtype, field_view(to, target[i]));
}

void copy_variable(const ArrayView& from, const MutableArrayView& to) {
    if (from.count() == 0) return;
    if (to.arena == nullptr) {
        throw invalid_argument("a view of variable-length elements needs an arena to be written to; use an NDArray");
    }
    const Nest nest = make_nest(from.shape, to.strides, from.strides);
    run_nest(nest.loops.data(), nest.depth, to.data, from.data, [&](std::byte* t, const std::byte* f) {
        VariableSlot slot;
        std::memcpy(&slot, f, sizeof slot);
        slot = to.arena->add(slot.view());
        std::memcpy(t, &slot, sizeof slot);
    });
}

void require_same(const ArrayView& from, const ArrayView& to) {
    if (!(from.shape == to.shape)) {
        throw invalid_argument("shapes differ: {} elements cannot go to {}", from.shape.to_string(),
                               to.shape.to_string());
    }
    if (!from.dtype.equal_but_order(to.dtype)) {
        throw invalid_argument("dtypes differ: {} cannot go to {} without a conversion of values",
                               from.dtype.to_string(), to.dtype.to_string());
    }
}

std::string_view slot_content(const std::byte* p) {
    VariableSlot slot;
    std::memcpy(&slot, p, sizeof slot);
    return slot.view();
}

/// Whether two rows of n elements of `size` bytes, with these steps, are equal.
using RowsEqual = bool (*)(const std::byte* a, std::int64_t a_step, const std::byte* b, std::int64_t b_step,
                           std::int64_t n, std::int64_t size);

template <std::size_t Size>
bool rows_equal(const std::byte* a, std::int64_t a_step, const std::byte* b, std::int64_t b_step, std::int64_t n,
                std::int64_t size) {
    if (a_step == size && b_step == size) return std::memcmp(a, b, static_cast<std::size_t>(n * size)) == 0;
    const std::size_t width = Size != 0 ? Size : static_cast<std::size_t>(size);  // a constant width is one comparison
    for (std::int64_t i = 0; i < n; ++i) {
        if (std::memcmp(a + i * a_step, b + i * b_step, width) != 0) return false;
    }
    return true;
}

bool slots_equal(const std::byte* a, std::int64_t a_step, const std::byte* b, std::int64_t b_step, std::int64_t n,
                 std::int64_t /*size*/) {
    for (std::int64_t i = 0; i < n; ++i) {
        if (slot_content(a + i * a_step) != slot_content(b + i * b_step)) return false;
    }
    return true;
}

/// As row_copy.
RowsEqual row_equality(std::int64_t size) {
    switch (size) {
        case 1:
            return rows_equal<1>;
        case 2:
            return rows_equal<2>;
        case 4:
            return rows_equal<4>;
        case 8:
            return rows_equal<8>;
        case 16:
            return rows_equal<16>;
        default:
            return rows_equal<0>;
    }
}

}  // namespace

void copy_elements(const ArrayView& from, const MutableArrayView& to) {
    require_same(from, to);
    if (from.dtype.is_variable()) {
        copy_variable(from, to);
        return;
    }
    if (!(from.dtype == to.dtype) && copy_turned(from, to)) return;
    copy_raw(from, to);
    convert_order(from.dtype, to);
}

namespace {

/// Copies the same bytes to every element.
void fill_raw(const MutableArrayView& to, const std::byte* element) {
    const std::int64_t size = to.dtype.size();
    const bool one_byte = std::all_of(element, element + size, [&](std::byte b) { return b == element[0]; });
    for_each_row(to, [&](std::byte* p, std::int64_t step, std::int64_t n) {
        if (step != size) {
            copy_strided(size, p, step, element, 0, n);
        } else if (one_byte) {
            std::memset(p, std::to_integer<int>(element[0]), static_cast<std::size_t>(n * size));
        } else {
            // Doubling: each memcpy copies everything that was written so far.
            std::memcpy(p, element, static_cast<std::size_t>(size));
            for (std::int64_t done = 1; done < n;) {
                const std::int64_t more = std::min(done, n - done);
                std::memcpy(p + done * size, p, static_cast<std::size_t>(more * size));
                done += more;
            }
        }
    });
}

}  // namespace

void fill_elements(const MutableArrayView& to, const std::byte* element) {
    if (to.dtype.size() == 0 || to.count() == 0) return;
    if (!to.dtype.is_variable()) return fill_raw(to, element);
    if (to.arena == nullptr) {
        throw invalid_argument("a view of variable-length elements needs an arena to be written to; use an NDArray");
    }
    const VariableSlot slot = to.arena->add(slot_content(element));
    fill_raw(to, reinterpret_cast<const std::byte*>(&slot));
}

void zero_elements(const MutableArrayView& to) {
    if (to.dtype.size() == 0 || to.count() == 0) return;
    // A slot of zeros is an empty string.
    const std::vector<std::byte> zeros(static_cast<std::size_t>(to.dtype.size()));
    fill_raw(to, zeros.data());
}

void fill_elements(const MutableArrayView& to, const DType& dtype, const std::byte* element) {
    if (to.dtype == dtype) {
        fill_elements(to, element);
    } else {
        copy_elements(ArrayView{element, dtype, to.shape, Strides::filled(to.shape.rank(), 0)}, to);
    }
}

bool all_elements_equal(const ArrayView& v, const std::byte* element) {
    const std::int64_t size = v.dtype.size();
    if (v.count() == 0 || size == 0) return true;
    const bool variable = v.dtype.is_variable();
    const RowsEqual rows_equal = variable ? slots_equal : row_equality(size);
    if (!rows_equal(v.data, size, element, size, 1, size)) return false;
    bool equal = true;
    for_each_row(v, [&](const std::byte* p, std::int64_t step, std::int64_t n) {
        if (!equal) return;
        if (step == size && !variable) {
            // If the first equals the element and every element equals its successor, all are equal.
            equal = rows_equal(p, size, element, size, 1, size) && rows_equal(p, size, p + size, size, n - 1, size);
        } else {
            equal = rows_equal(p, step, element, 0, n, size);
        }
    });
    return equal;
}

bool elements_equal(const ArrayView& a, const ArrayView& b) {
    require_same(a, b);
    if (a.count() == 0) return true;
    if (!(a.dtype == b.dtype)) {
        NDArray converted(a.dtype, b.shape);
        copy_elements(b, converted.view());
        return elements_equal(a, converted.view());
    }
    const std::int64_t size = a.dtype.size();
    if (size == 0) return true;
    const Nest nest = make_nest(a.shape, a.strides, b.strides);
    const Loop inner = nest.depth > 0 ? nest.loops[nest.depth - 1] : Loop{1, size, size};
    const RowsEqual rows_equal = a.dtype.is_variable() ? slots_equal : row_equality(size);
    bool equal = true;
    run_nest(nest.loops.data(), std::max(nest.depth - 1, 0), const_cast<std::byte*>(a.data), b.data,
             [&](const std::byte* p, const std::byte* q) {
                 equal = equal && rows_equal(p, inner.to, q, inner.from, inner.n, size);
             });
    return equal;
}

void for_each_run(const ArrayView& v,
                  const std::function<void(const std::byte* first, std::int64_t step, std::int64_t n)>& run) {
    for_each_row(v, run);
}

NDArray NDArray::copy_of(const ArrayView& v) {
    NDArray a(v.dtype, v.shape);
    copy_elements(v, a.view());
    return a;
}

}  // namespace tessera
