#include "shown.h"

#include <tessera/array.h>
#include <tessera/complex_part.h>
#include <tessera/derived_source.h>

#include <utility>

namespace tessera::serve {

namespace {

/// A source that shares another one.
class SharedSource final : public ArraySource {
public:
    explicit SharedSource(std::shared_ptr<const ArraySource> source) : source_(std::move(source)) {}
    [[nodiscard]] ArrayInfo info() const override { return source_->info(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        source_->read_into(region, out, io);
    }
    [[nodiscard]] const std::string& name() const override { return source_->name(); }
    [[nodiscard]] Value attribute_values() const override { return source_->attribute_values(); }

private:
    std::shared_ptr<const ArraySource> source_;
};

}  // namespace

Shown shown_by(Served& served, const HttpRequest& request) {
    Shown shown{.node = served.node(request.parameter("path").value_or("")),
                .field = std::string(request.parameter("field").value_or("")),
                .source = nullptr};
    const ArraySource& elements = shown.node->source();
    if (shown.field.empty()) {
        shown.source = {shown.node, &elements};
    } else if (elements.info().dtype.kind() == Kind::complex) {
        shown.source =
            std::make_shared<ComplexPart>(std::shared_ptr<const ArraySource>(shown.node, &elements), shown.field);
    } else if (shown.node->array) {
        shown.source = std::make_shared<ArrayField>(*shown.node->array, shown.field);
    } else {
        shown.source = field_source(std::make_unique<SharedSource>(shown.node->file), shown.field);
    }
    return shown;
}

}  // namespace tessera::serve
