#include <tessera/shared_source.h>

#include <string>
#include <utility>

#include <tessera/array.h>

namespace tessera {

namespace {

class SharedSource final : public ArraySource {
public:
    SharedSource(std::shared_ptr<const ArraySource> of, std::optional<Value> attributes)
        : of_(std::move(of)), attributes_(std::move(attributes)) {}
    [[nodiscard]] ArrayInfo info() const override { return of_->info(); }
    [[nodiscard]] const std::string& name() const override { return of_->name(); }
    [[nodiscard]] Value attribute_values() const override {
        return attributes_ ? *attributes_ : of_->attribute_values();
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        of_->read_into(region, out, io);
    }
    /// As of the one that is shared, so that the coordinates of a part are found.
    [[nodiscard]] const ArraySource* model() const override { return attributes_ ? nullptr : &model_of(*of_); }

private:
    std::shared_ptr<const ArraySource> of_;
    std::optional<Value> attributes_;
};

}  // namespace

std::unique_ptr<ArraySource> shared_source(std::shared_ptr<const ArraySource> of, std::optional<Value> attributes) {
    // A handle is as good, and shows names and coordinates.
    if (const auto* array = attributes ? nullptr : as_array(*of)) return std::make_unique<Array>(*array);
    return std::make_unique<SharedSource>(std::move(of), std::move(attributes));
}

std::unique_ptr<ArraySource> borrowed_source(const ArraySource& of, std::optional<Value> attributes) {
    return shared_source({std::shared_ptr<const ArraySource>(), &of}, std::move(attributes));
}

std::unique_ptr<ArraySource> held_source(NDArray elements, const std::string& name, Value attributes) {
    struct Held {
        NDArray elements;
        std::unique_ptr<ArraySource> view;
    };
    auto held = std::make_shared<Held>(Held{std::move(elements), nullptr});
    held->view = view_source(held->elements.view(), name);
    return shared_source({held, held->view.get()}, std::move(attributes));
}

}  // namespace tessera
