#include <tessera/array_io.h>
#include <tessera/copy_elements.h>

namespace tessera {

namespace {

class ViewSource final : public ArraySource {
public:
    ViewSource(const ArrayView& elements, std::string name) : elements_(elements), name_(std::move(name)) {}

    ArrayInfo info() const override {
        const bool fortran = elements_.contiguous(Order::F) && !elements_.contiguous(Order::C);
        return {
            .dtype = elements_.dtype, .shape = elements_.shape, .chunks = {}, .order = fortran ? Order::F : Order::C};
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions&) const override {
        copy_elements(elements_.part(region), out);
    }
    const std::string& name() const override { return name_; }

private:
    ArrayView elements_;
    std::string name_;
};

}  // namespace

std::unique_ptr<ArraySource> view_source(const ArrayView& elements, std::string name) {
    return std::make_unique<ViewSource>(elements, std::move(name));
}

}  // namespace tessera
