// An array file format as one would add it: this file, and its name in core/files/array_file.cpp. A line of text that
// begins with "toy", with dtype and shape, and then the elements in C order.
#include <fmt/format.h>
#include <tessera/byte_io.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>

#include <algorithm>
#include <span>
#include <utility>

#include "array_file_row.h"

namespace tessera {

namespace {

class ToySource final : public ArraySource {
public:
    ToySource(NDArray elements, std::string name) : elements_(std::move(elements)), name_(std::move(name)) {}
    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = elements_.dtype(), .shape = elements_.shape(), .chunks = {}};
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& /*io*/) const override {
        require_inside(region, elements_.shape());
        copy_elements(elements_.view().part(region), out);
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    NDArray elements_;
    std::string name_;
};

class ToySink final : public ArraySink {
public:
    ToySink(const ArrayPath& path, const DType& dtype, const Shape& shape, bool durable)
        : elements_(dtype, shape), file_(create_file(path.path, durable)) {}
    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = elements_.dtype(), .shape = elements_.shape(), .chunks = {}};
    }
    void write(const Region& region, const ArrayView& in, const IoOptions& /*io*/) override {
        copy_elements(in, elements_.view().part(region));
    }
    void finish() override {
        const std::string line =
            fmt::format("toy\t{}\t{}\n", elements_.dtype().to_string(), elements_.shape().to_string());
        file_->append(std::as_bytes(std::span(line)));
        file_->append(std::as_const(elements_).bytes());
        file_->finish();
    }
    [[nodiscard]] const std::string& name() const override { return file_->name(); }

private:
    NDArray elements_;
    std::unique_ptr<ByteSink> file_;
};

/// The dtype and shape of a file, and where its elements begin.
struct Header {
    DType dtype;
    Shape shape;
    std::size_t size = 0;
};

Header read_header(std::string_view text, const std::string& name) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t first = line.find('\t');
    const std::size_t second = line.rfind('\t');
    if (end == text.npos || first == second) throw corrupt(fmt::format("{}: the first line is torn", name));
    return {DType::parse(line.substr(first + 1, second - first - 1)), parse_shape(line.substr(second + 1)), end + 1};
}

bool recognise(ByteSpan first) {
    return starts_with(first, "toy\t");
}

std::unique_ptr<ArraySource> open(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    require_no_member(path);
    const auto file = open_file(path.path);
    const Buffer bytes = read_all(*file);
    const Header header = read_header({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file->name());
    const ByteSpan elements = bytes.span().subspan(header.size);
    if (std::cmp_not_equal(elements.size(), byte_count(header.shape, header.dtype.size()))) {
        throw corrupt(fmt::format("{}: {} bytes of elements were expected, found {}", file->name(),
                                  byte_count(header.shape, header.dtype.size()), elements.size()));
    }
    NDArray values(header.dtype, header.shape);
    std::ranges::copy(elements, values.bytes().begin());
    return std::make_unique<ToySource>(std::move(values), file->name());
}

std::unique_ptr<ArraySink> create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                  const ArrayFileOptions& options) {
    require_no_member(path);
    if (dtype.is_variable()) throw unsupported("a .toy holds elements of fixed size");
    return std::make_unique<ToySink>(path, dtype, shape, options.durable);
}

Value describe(const ArrayPath& path) {
    const auto source = open(path, {});
    Value facts = Value::object();
    facts.set("format", "toy");
    facts.set("dtype", source->info().dtype.to_string());
    return facts;
}

}  // namespace

extern constinit const ArrayFileFormat toy_format{
    .name = "toy",
    .extension = ".toy",
    .about = "a test's own",
    .recognise = recognise,
    .open = open,
    .create = create,
    .describe = describe,
};

}  // namespace tessera
