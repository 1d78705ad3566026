// "numcodecs.delta": each element less the one before it.
#include "codec_makers.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

class DeltaCodec final : public NumericFilter {
public:
    DeltaCodec(const ChunkSpec& in, const DType& dtype, const DType& astype) : NumericFilter(in, dtype, astype) {
        require_numbers(dtype, "dtype", true);
        require_numbers(astype, "astype", true);
    }

private:
    [[nodiscard]] NDArray forward(NDArray a) const override {
        with_number(a.dtype(), [&](auto type) {
            const auto v = elements<typename decltype(type)::type>(a);
            for (std::size_t i = v.size(); i-- > 1;) v[i] = difference(v[i], v[i - 1]);
        });
        return cast_numbers(std::move(a), native_encoded());
    }

    [[nodiscard]] NDArray backward(NDArray a) const override {
        // NumPy's cumsum.
        a = cast_numbers(std::move(a), promoted(native_encoded(), native_decoded()));
        with_number(a.dtype(), [&](auto type) {
            const auto v = elements<typename decltype(type)::type>(a);
            for (std::size_t i = 1; i < v.size(); ++i) v[i] = sum(v[i - 1], v[i]);
        });
        return cast_numbers(std::move(a), native_decoded());
    }

    // Booleans were refused; with_number offers them all the same.
    static Bool difference(Bool a, Bool /*b*/) { return a; }
    static Bool sum(Bool /*a*/, Bool b) { return b; }
    template <class T>
    static T difference(T a, T b) {
        return minus(a, b);
    }
    template <class T>
    static T sum(T a, T b) {
        return plus(a, b);
    }
};

}  // namespace

std::unique_ptr<ArrayToArrayCodec> make_delta_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"dtype", "astype"});
    const DType dtype = dtype_member(configuration, "dtype", in.dtype);
    return std::make_unique<DeltaCodec>(in, dtype, dtype_member(configuration, "astype", dtype));
}

}  // namespace tessera
