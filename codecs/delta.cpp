// "numcodecs.delta": each element minus the one before it.
#include "codec_row.h"
#include "numeric_filter.h"

#include <bit>
#include <concepts>
#include <cstdlib>
#include <cstring>

namespace tessera {

namespace {

/// The number with its bytes reversed.
template <class T>
T turned(T v) {
    if constexpr (sizeof(T) == 2) return std::bit_cast<T>(__builtin_bswap16(std::bit_cast<std::uint16_t>(v)));
    if constexpr (sizeof(T) == 4) return std::bit_cast<T>(__builtin_bswap32(std::bit_cast<std::uint32_t>(v)));
    if constexpr (sizeof(T) == 8) return std::bit_cast<T>(__builtin_bswap64(std::bit_cast<std::uint64_t>(v)));
    return v;
}

/// Calls row(start, bytes between elements, count) for the rows of a view in C order, from dimension `d` on.
template <class View, class Byte, class Row>
void each_row(const View& v, int d, Byte* p, const Row& row) {
    if (d + 1 >= v.shape.rank()) return row(p, v.strides[d], v.shape[d]);
    for (std::int64_t i = 0; i < v.shape[d]; ++i) each_row(v, d + 1, p + i * v.strides[d], row);
}

/// Encodes a row of n elements, `step` bytes apart, as packed differences; with Undo, decodes them. `before` is the
/// element before the row. Returns the last element of the row.
template <class T, bool Undo, bool Turn>
T delta_row(T before, std::byte* row, std::int64_t step, std::byte* packed, std::int64_t n, bool turn_row,
            bool turn_packed) {
    const auto load = [](const std::byte* at, bool turn) {
        T value;
        std::memcpy(&value, at, sizeof value);
        return Turn && turn ? turned(value) : value;
    };
    const auto store = [](std::byte* at, T value, bool turn) {
        if (Turn && turn) value = turned(value);
        std::memcpy(at, &value, sizeof value);
    };
    for (; n > 0; --n, row += step, packed += sizeof(T)) {
        if constexpr (Undo) {
            before = plus(before, load(packed, turn_packed));
            store(row, before, turn_row);
        } else {
            const T value = load(row, turn_row);
            store(packed, minus(value, before), turn_packed);
            before = value;
        }
    }
    return before;
}

/// The view without dimensions of length 1.
MutableArrayView without_single(const MutableArrayView& v) {
    MutableArrayView squeezed{v.data, v.dtype, {}, {}, v.arena};
    for (int d = 0; d < v.shape.rank(); ++d) {
        if (v.shape[d] == 1) continue;
        squeezed.shape.push_back(v.shape[d]);
        squeezed.strides.push_back(v.strides[d]);
    }
    return squeezed;
}

class DeltaCodec final : public NumericFilter {
public:
    DeltaCodec(const ChunkSpec& in, const DType& dtype, const DType& astype) : NumericFilter(in, dtype, astype) {
        for (const auto& [type, name] : {std::pair(dtype, "dtype"), std::pair(astype, "astype")}) {
            if (type.kind() != Kind::boolean) require_numbers(type, name, true);
        }
    }

private:
    // NumPy's diff of Booleans is whether they differ.
    template <class T>
    static T difference(T a, T b) {
        if constexpr (std::same_as<T, Boolean>) {
            return down<Boolean>(up(a) != up(b));
        } else {
            return down<T>(minus(up(a), up(b)));
        }
    }
    template <class T>
    static T sum(T a, T b) {
        if constexpr (std::same_as<T, Boolean>) {
            return difference(a, b);
        } else {
            return down<T>(plus(up(a), up(b)));
        }
    }

    [[nodiscard]] NDArray forward(NDArray a) const override {
        with_number(a.dtype(), [&](auto type) {
            using T = decltype(type);
            const auto v = elements<T>(a);
            for (std::size_t i = v.size(); i-- > 1;) v[i] = difference(v[i], v[i - 1]);
        });
        return cast_numbers(std::move(a), native_encoded());
    }

    [[nodiscard]] NDArray backward(NDArray a) const override {
        // As NumPy's cumsum. (numcodecs itself decodes Booleans wrongly: all are true from the first true one on.)
        const bool truth = native_decoded().kind() == Kind::boolean || native_encoded().kind() == Kind::boolean;
        a = cast_numbers(std::move(a), truth ? native_decoded() : promoted(native_encoded(), native_decoded()));
        with_number(a.dtype(), [&](auto type) {
            using T = decltype(type);
            const auto v = elements<T>(a);
            for (std::size_t i = 1; i < v.size(); ++i) v[i] = sum(v[i - 1], v[i]);
        });
        return cast_numbers(std::move(a), native_decoded());
    }

    [[nodiscard]] bool at_once() const override {
        const DType dtype = native_decoded();
        const bool is_half = dtype.kind() == Kind::real && dtype.size() == 2;
        return native_encoded() == dtype && dtype.kind() != Kind::complex && dtype.kind() != Kind::boolean && !is_half;
    }
    [[nodiscard]] bool forward_to(const ArrayView& in, const MutableArrayView& out) const override {
        const MutableArrayView rows{const_cast<std::byte*>(in.data), in.dtype, in.shape, in.strides, nullptr};
        return run_rows<false>(rows, out.data, out.dtype);  // only reads the rows
    }
    [[nodiscard]] bool backward_to(const ArrayView& in, const MutableArrayView& out) const override {
        return run_rows<true>(out, const_cast<std::byte*>(in.data), in.dtype);  // only reads `in`
    }

    /// Encodes a view as packed differences in one pass; with Undo, decodes them into it. Returns false if the view is
    /// empty or has no dimensions, or if the elements of a row are not adjacent.
    template <bool Undo>
    [[nodiscard]] bool run_rows(const MutableArrayView& all, std::byte* packed, const DType& dtype) const {
        // A last dimension of one element would make every row so short.
        const MutableArrayView v = without_single(all);
        const int last = v.shape.rank() - 1;
        const std::int64_t size = dtype.size();
        if (last < 0 || v.count() == 0) return false;
        if (v.shape[last] > 1 && std::abs(v.strides[last]) != size) return false;
        with_number(native_decoded(), [&](auto type) {
            using T = decltype(type);
            if constexpr (std::integral<T> || std::floating_point<T>) {
                const bool turn_rows = !(v.dtype == native_decoded());
                const bool turn_packed = !(dtype == native_decoded());
                if (turn_rows || turn_packed) {
                    delta_rows<T, Undo, true>(v, packed, turn_rows, turn_packed);
                } else {
                    delta_rows<T, Undo, false>(v, packed, false, false);
                }
            }
        });
        return true;
    }

    template <class T, bool Undo, bool Turn>
    static void delta_rows(const MutableArrayView& v, std::byte* packed, bool turn_rows, bool turn_packed) {
        // The first element keeps its bits. Adding to −0.0 changes nothing; adding to 0.0 changes the sign of −0.0.
        std::byte first[sizeof(T)];
        const bool turn = turn_rows != turn_packed;
        const auto* const from = Undo ? packed : v.data;
        for (std::size_t i = 0; i < sizeof(T); ++i) first[i] = from[turn ? sizeof(T) - 1 - i : i];
        T before = std::floating_point<T> && Undo ? -T{} : T{};
        const auto run = [&](std::byte* row, std::int64_t step, std::int64_t n) {
            constexpr auto size = static_cast<std::int64_t>(sizeof(T));
            before = step == size ? delta_row<T, Undo, Turn>(before, row, size, packed, n, turn_rows, turn_packed)
                                  : delta_row<T, Undo, Turn>(before, row, step, packed, n, turn_rows, turn_packed);
            packed += n * size;
        };
        std::byte* const to = Undo ? v.data : packed;
        if (v.contiguous()) {
            run(v.data, sizeof(T), v.count());
        } else {
            each_row(v, 0, v.data, run);
        }
        std::memcpy(to, first, sizeof(T));
    }
};

std::unique_ptr<ArrayToArrayCodec> make_delta_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"dtype", "astype"});
    const DType dtype = dtype_member(configuration, "dtype", in.dtype);
    return std::make_unique<DeltaCodec>(in, dtype, dtype_member(configuration, "astype", dtype));
}

constexpr CodecPart delta_parts[] = {{"astype", CodecPart::Type::text}};

}  // namespace

extern constinit const CodecRow delta_codec{
    .name = "numcodecs.delta",
    .about = "differences between neighbours: delta:ASTYPE",
    .array_to_array = make_delta_codec,
    .parts = delta_parts,
    .complete = complete_number_dtypes,
    .decoded_dtype = "dtype",
};

}  // namespace tessera
