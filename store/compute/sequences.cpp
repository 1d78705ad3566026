#include <tessera/sequences.h>

#include <tessera/array.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/ndarray.h>

#include <cstdint>
#include <string>
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

}  // namespace tessera
