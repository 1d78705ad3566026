#include <tessera/part_source.h>

#include <optional>
#include <utility>
#include <vector>

#include <tessera/coordinates.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/selection.h>
#include <tessera/shared_source.h>
#include <tessera/turned.h>
#include <tessera/value.h>

#include "dialects.h"

namespace tessera {

namespace {

/// Reads the selected elements; the whole array is kept for what lies beside it.
class PartSource final : public ArraySource {
public:
    PartSource(std::shared_ptr<const ArraySource> whole, std::unique_ptr<ArraySource> part, std::string selection)
        : whole_(std::move(whole)), part_(std::move(part)), selection_(std::move(selection)) {}

    [[nodiscard]] ArrayInfo info() const override { return part_->info(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        part_->read_into(region, out, io);
    }
    [[nodiscard]] const std::string& name() const override { return part_->name(); }
    [[nodiscard]] Value attribute_values() const override { return part_->attribute_values(); }
    [[nodiscard]] std::optional<std::vector<std::byte>> fill_bytes() const override { return whole_->fill_bytes(); }

    [[nodiscard]] const ArraySource& whole() const { return *whole_; }
    [[nodiscard]] const std::string& selection() const { return selection_; }

private:
    std::shared_ptr<const ArraySource> whole_;
    std::unique_ptr<ArraySource> part_;
    std::string selection_;
};

const PartSource* as_part(const ArraySource& source) {
    return dynamic_cast<const PartSource*>(&model_of(before_cast(source)));
}

/// The attributes of the part, with the names of the dimensions that are left, and with what marks missing elements.
Value attributes_of(const ArraySource& whole, const Selection& selection) {
    Value attributes = attributes_as_meant(whole);
    return attributes_of_part(std::move(attributes), selection, dimension_names_of(whole));
}

}  // namespace

std::unique_ptr<ArraySource> part_source(std::unique_ptr<ArraySource> array, const std::string& text) {
    const std::shared_ptr<const ArraySource> whole = turned_source(std::move(array), text);
    const Selection selection = parse_selection(text, *whole);
    auto part = selected_source(shared_source(whole), selection, attributes_of(*whole, selection));
    return std::make_unique<PartSource>(whole, std::move(part), text);
}

const ArraySource& whole_of(const ArraySource& source) {
    const PartSource* const part = as_part(source);
    return part == nullptr ? source : part->whole();
}

std::unique_ptr<ArraySource> beside_part(const ArraySource& source, const std::string& name, bool& is_part) {
    const PartSource* const part = as_part(source);
    is_part = part != nullptr;
    std::unique_ptr<ArraySource> other = is_part ? array_beside(part->whole(), name) : nullptr;
    if (other == nullptr) return nullptr;
    const bool by_names = part->selection().find_first_of("=~@") != std::string::npos;
    const std::string items = by_names ? SharedSelection(part->selection()).items_for(*other) : std::string();
    return items.empty() ? std::move(other) : part_source(std::move(other), items);
}

}  // namespace tessera
