#include <tessera/sequences.h>

#include <tessera/array.h>
#include <tessera/copy_elements.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>
#include <tessera/unicode.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

namespace {

class SequenceTexts final : public ArraySource {
public:
    SequenceTexts(std::unique_ptr<ArraySource> array, const DType& items)
        : array_(std::move(array)), items_(items), info_(array_->info()) {
        info_.dtype = DType::variable_text();
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return array_->attribute_values(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        NDArray sequences(DType::variable_bytes(), region.extent);
        array_->read_into(region, sequences.view(), io);
        NDArray texts(info_.dtype, region.extent);
        const auto* from = reinterpret_cast<const VariableSlot*>(sequences.bytes().data());
        auto* to = reinterpret_cast<VariableSlot*>(texts.bytes().data());
        Arena& arena = *texts.view().arena;
        for (std::int64_t i = 0; i < texts.count(); ++i) to[i] = arena.add(text_of(from[i].view()));
        copy_elements(texts, out);
    }

private:
    /// The codec saw to it that the items are whole, but a fill value may be anything.
    [[nodiscard]] std::string text_of(std::string_view bytes) const {
        const auto size = static_cast<std::size_t>(items_.size());
        if (bytes.size() % size != 0) {
            throw corrupt("{}: an element of {} bytes is no whole number of items of {}", name(), bytes.size(), size);
        }
        Value list = Value::array();
        for (; !bytes.empty(); bytes.remove_prefix(size)) {
            list.push_back(element_to_json(items_, reinterpret_cast<const std::byte*>(bytes.data())));
        }
        return list.dump();
    }

    std::unique_ptr<ArraySource> array_;
    DType items_;
    ArrayInfo info_;
};

class CharacterTexts final : public ArraySource {
public:
    CharacterTexts(std::unique_ptr<ArraySource> array, bool utf8)
        : array_(std::move(array)), utf8_(utf8), info_(array_->info()), attributes_(array_->attribute_values()) {
        length_ = info_.shape[info_.shape.rank() - 1];
        const std::size_t rank = info_.shape.size() - 1;
        info_.shape = Shape(std::span<const std::int64_t>(info_.shape).first(rank));
        if (info_.chunks.size() > rank) info_.chunks = Shape(std::span<const std::int64_t>(info_.chunks).first(rank));
        info_.shards = Shape();
        info_.dtype = DType::variable_text();
        DimensionNames names = dimension_names_of(*array_);
        if (!names.empty()) {
            names.pop_back();
            attributes_.set(dimensions_attribute, dimension_names_json(names));
        }
        attributes_.erase("_Encoding");
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        for_each_slice(info_, length_ + info_.dtype.size(), region, io.stop, [&](const Region& slice) {
            copy_elements(texts_of(slice, io).view(), out.part(within(region, slice)));
        });
    }

private:
    [[nodiscard]] NDArray texts_of(const Region& region, const IoOptions& io) const {
        Region characters = region;
        characters.start.push_back(0);
        characters.extent.push_back(length_);
        NDArray bytes(array_->info().dtype, characters.extent);
        array_->read_into(characters, bytes.view(), io);
        NDArray texts(info_.dtype, region.extent);
        auto* const to = reinterpret_cast<VariableSlot*>(texts.bytes().data());
        Arena& arena = *texts.view().arena;
        std::string_view left(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
        for (std::int64_t i = 0; i < texts.count(); ++i) {
            const std::string_view all = left.substr(0, static_cast<std::size_t>(length_));
            const std::string_view text = all.substr(0, all.find_last_not_of('\0') + 1);
            to[i] = arena.add(utf8_ && is_utf8(text) ? std::string(text) : latin1_to_utf8(text));
            left.remove_prefix(all.size());
        }
        return texts;
    }

    std::unique_ptr<ArraySource> array_;
    bool utf8_;
    ArrayInfo info_;
    Value attributes_;
    std::int64_t length_ = 0;
};

}  // namespace

std::optional<DType> items_of(const ArraySource& array) {
    const auto* const stored = as_array(array);
    return stored != nullptr ? sequence_items(stored->metadata().codecs) : std::nullopt;
}

std::unique_ptr<ArraySource> with_sequences_as_text(std::unique_ptr<ArraySource> array) {
    const std::optional<DType> items = items_of(*array);
    if (!items) return array;
    return std::make_unique<SequenceTexts>(std::move(array), *items);
}

std::unique_ptr<ArraySource> with_characters_as_text(std::unique_ptr<ArraySource> array) {
    const ArrayInfo info = array->info();
    if (info.dtype.kind() != Kind::bytes || info.dtype.size() != 1 || info.shape.rank() == 0) return array;
    const Value attributes = array->attribute_values();
    const Value* const encoding = attributes.find("_Encoding");
    if (encoding == nullptr || !encoding->is_string()) return array;
    std::string name;
    for (const char c : encoding->as_string()) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
    constexpr std::array<std::string_view, 5> latin{"latin1", "iso88591", "l1", "ascii", "usascii"};
    const bool utf8 = name == "utf8";
    if (!utf8 && std::ranges::count(latin, name) == 0) return array;
    return std::make_unique<CharacterTexts>(std::move(array), utf8);
}

}  // namespace tessera
