// "numcodecs.categorize": texts as their position in a list of labels, counted from 1; 0 for any other text.
#include <cstring>
#include <unordered_map>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <tessera/unicode.h>
#include "codec_row.h"
#include "numeric_filter.h"
#include "variable_slots.h"

namespace tessera {

namespace {

class CategorizeCodec final : public ArrayToArrayCodec {
public:
    CategorizeCodec(const ChunkSpec& in, const DType& dtype, const DType& astype, const Value::Array& labels)
        : dtype_(dtype), encoded_{astype, in.shape, std::nullopt} {
        labels_.push_back(element(""));
        for (const Value& label : labels) {
            const std::string& text = label.as_string();
            labels_.push_back(element(text));
            // A label longer than the elements is truncated when it is read, so it never matches.
            if (dtype.is_variable() || count_utf8(text) <= static_cast<std::size_t>(dtype.size() / 4)) {
                codes_[labels_.back()] = labels_.size() - 1;
            }
        }
    }

    [[nodiscard]] const ChunkSpec& encoded() const override { return encoded_; }

    [[nodiscard]] NDArray encode(const ArrayView& in) const override {
        std::vector<std::uint64_t> codes;
        codes.reserve(static_cast<std::size_t>(in.count()));
        const auto put = [&](std::string_view text) {
            const auto found = codes_.find(std::string(text));
            codes.push_back(found == codes_.end() ? 0 : found->second);
        };
        if (dtype_.is_variable()) {
            for (const VariableSlot& slot : gather_slots(in)) put(slot.view());
        } else {
            NDArray texts(dtype_, in.shape);
            copy_elements(in, texts);
            const auto size = static_cast<std::size_t>(dtype_.size());
            const auto* p = reinterpret_cast<const char*>(texts.bytes().data());
            for (std::int64_t i = 0; i < in.count(); ++i) put({p + static_cast<std::size_t>(i) * size, size});
        }
        const NDArray native =
            cast_numbers(NDArray::copy_of(view(codes, in.shape)), encoded_.dtype.with_order(native_order));
        NDArray out(encoded_.dtype, in.shape);
        copy_elements(native, out);
        return out;
    }

    void decode(const ArrayView& in, const MutableArrayView& out) const override {
        NDArray native(encoded_.dtype.with_order(native_order), encoded_.shape);
        copy_elements(in, native);
        const NDArray codes = cast_numbers(std::move(native), DType::of<std::uint64_t>());
        NDArray texts(dtype_, encoded_.shape);
        std::byte* p = texts.bytes().data();
        for (const std::uint64_t code : codes.values<std::uint64_t>()) {
            const std::string& label = labels_[code < labels_.size() ? code : 0];
            if (dtype_.is_variable()) {
                const VariableSlot slot{label.data(), label.size()};  // the labels outlive the copy below
                std::memcpy(p, &slot, sizeof slot);
            } else if (!label.empty()) {
                std::memcpy(p, label.data(), label.size());
            }
            p += dtype_.size();
        }
        copy_elements(texts, out);
    }

private:
    /// The bytes of a label as an element; its text if the elements have variable length.
    [[nodiscard]] std::string element(const std::string& text) const {
        const ElementBytes bytes = element_from_value(dtype_, text, Assign::numpy);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

    DType dtype_;
    ChunkSpec encoded_;
    std::vector<std::string> labels_;  ///< by code
    std::unordered_map<std::string, std::uint64_t> codes_;
};

/// The dtype of the elements. Python's "|O" leaves it open.
DType decoded_dtype(const Value& configuration, const ChunkSpec& in) {
    const DType dtype = dtype_member(configuration, "dtype", in.dtype);
    if (in.dtype.kind() == Kind::variable_text && (dtype.kind() == Kind::object || dtype == in.dtype)) return in.dtype;
    if (in.dtype.kind() != Kind::text || dtype.kind() != Kind::text || dtype.size() != in.dtype.size()) {
        throw invalid_argument("the codec is for elements of {}, but they are of {}", dtype.to_string(),
                               in.dtype.to_string());
    }
    return in.dtype;
}

std::unique_ptr<ArrayToArrayCodec> make_categorize_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"labels", "dtype", "astype"});
    const DType astype = dtype_member(configuration, "astype", "|u1");
    if (astype.kind() != Kind::integer && astype.kind() != Kind::unsigned_integer) {
        throw invalid_argument("astype is {}, expected integers", astype.to_string());
    }
    const Value::Array& labels = configuration.at("labels").as_array();
    const std::int64_t bits = 8 * astype.size() - (astype.kind() == Kind::integer ? 1 : 0);
    if (bits < 63 && labels.size() >> bits != 0) {
        throw invalid_argument("{} labels are more than astype {} can count", labels.size(), astype.str());
    }
    return std::make_unique<CategorizeCodec>(in, decoded_dtype(configuration, in), astype, labels);
}

void complete_categorize(Value& configuration, const DType& dtype) {
    set_missing(configuration, "dtype", dtype.is_variable() ? "|O" : dtype.str());
    set_missing(configuration, "astype", "|u1");
}

}  // namespace

extern constinit const CodecRow categorize_codec{
    .name = "numcodecs.categorize",
    .about = "texts as numbers of labels",
    .array_to_array = make_categorize_codec,
    .short_notation = false,
    .complete = complete_categorize,
    .objects = Kind::variable_text,
    .decoded_dtype = "dtype",
};

}  // namespace tessera
