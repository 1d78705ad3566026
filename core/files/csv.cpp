#include <tessera/action.h>
#include <tessera/array_file.h>
#include <tessera/csv_line.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/ndarray.h>

#include "array_file_row.h"
#include "csv_columns.h"
#include "csv_rows.h"

namespace tessera {

namespace {

// The start of every rows_apart-th row is kept; reading begins at the last such row before.
constexpr std::int64_t rows_apart = 1024;

/// Other programs' separators of columns.
struct Separator {
    char sign;
    std::string_view name, hint;
};
constexpr std::array<Separator, 2> separators{{{'\t', "tabs", " (tr '\\t' ,)"}, {';', "semicolons", ""}}};

std::ptrdiff_t count_of(const CsvRow& row, char sign) {
    return std::ranges::count(row.text, sign);
}

/// Runs `body` with a field; errors get its place.
template <class Body>
void about_field(const CsvRows& rows, std::size_t i, const Body& body) {
    try {
        body();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::invalid_argument) throw;
        throw rows.error_at(i, e);
    }
}

/// The result of the first pass over a file.
struct Table {
    DType dtype;
    Shape shape;
    std::size_t width = 0;             ///< fields of a row
    CountedVector<CsvColumn> columns;  ///< of a structure; empty for other dtypes
    CountedVector<CsvPlace> places;    ///< of the rows 0, rows_apart, …
    bool header = false;
};

class TableReader {
public:
    TableReader(const ByteSource& file, const CsvOptions& options) : file_(file), options_(options) {}

    Table read() {
        CsvRows rows(file_, first_row());
        if (!rows.next()) throw corrupt("{}: there is no row in it", file_.name());
        table_.width = rows.size();
        require_width();
        const CsvRow first = rows.row();
        const CsvPlace begin = rows.place();
        table_.header = options_.header.value_or(looks_like_header(first));
        const bool unsure = !options_.header && !options_.dtype && table_.header;
        if (!options_.dtype) kinds_.resize(table_.width);
        if (!options_.dtype) missing_at_.resize(table_.width);
        note_separators(first, begin);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            about_field(rows, i, [&] { CsvKind().add(first.field(i)); });
        }
        if (!table_.header) add_row(rows);
        while (rows.next()) add_row(rows);
        // All columns are text: the first row stays a header only if its names are distinct.
        const bool no_header = unsure && count_ > 0 && std::ranges::all_of(kinds_, &CsvKind::is_text) && repeats(first);
        if (no_header) take_back_header(begin, first);
        settle(first);
        return std::move(table_);
    }

private:
    /// Whether two fields are the same.
    static bool repeats(const CsvRow& row) {
        CountedVector<std::string_view> names;
        names.reserve(row.size());
        for (std::size_t i = 0; i < row.size(); ++i) names.push_back(row.field(i));
        std::ranges::sort(names);
        return std::ranges::adjacent_find(names) != names.end();
    }

    /// The start of the first row, after the mark that some programs put in front of UTF-8.
    [[nodiscard]] CsvPlace first_row() const {
        if (file_.size() < 3) return {};
        const Buffer mark = read_range(file_, 0, 3);
        return {starts_with(mark, "\xEF\xBB\xBF") ? std::uint64_t{3} : 0, 1};
    }

    /// Whether the first row has names, and not elements of the given dtype, if any.
    [[nodiscard]] bool looks_like_header(const CsvRow& first) const {
        bool words = true;
        for (std::size_t i = 0; words && i < first.size(); ++i) words = CsvKind::is_word(first.field(i));
        if (!options_.dtype) return words;
        bool named = !table_.columns.empty();
        bool readable = true;
        for (std::size_t i = 0; i < table_.width; ++i) {
            const DType& dtype = table_.columns.empty() ? *options_.dtype : table_.columns[i].dtype;
            named = named && first.field(i) == table_.columns[i].name;
            std::vector<std::byte> element(static_cast<std::size_t>(dtype.size()));
            try {
                parse_csv(dtype, first.field(i), element.data());
            } catch (const Error&) {
                readable = false;
            }
        }
        // A first row that is neither contains a mistake, which is reported later.
        return named || (!readable && words);
    }

    void require_width() {
        if (!options_.dtype || options_.dtype->kind() != Kind::structure) return;
        table_.columns = csv_columns(*options_.dtype);
        if (table_.columns.size() == table_.width) return;
        throw corrupt("{}: line 1 has {} columns, but {} has {}", file_.name(), table_.width,
                      options_.dtype->to_string(), table_.columns.size());
    }

    /// Of a first row without commas: how often other separators are in it, unless it is quoted.
    void note_separators(const CsvRow& first, const CsvPlace& begin) {
        if (options_.dtype || table_.width != 1 || read_range(file_, begin.offset, 1).data()[0] == std::byte{'"'})
            return;
        for (std::size_t i = 0; i < separators.size(); ++i) counts_[i] = count_of(first, separators[i].sign);
    }

    /// Other separators than commas divide the rows if each of them has as many.
    void compare_separators(const CsvRows& rows) {
        for (std::size_t i = 0; i < separators.size(); ++i) {
            if (counts_[i] > 0 && count_of(rows.row(), separators[i].sign) != counts_[i]) counts_[i] = 0;
        }
    }

    /// Throws if there are such separators.
    void require_commas() const {
        for (std::size_t i = 0; i < separators.size(); ++i) {
            if (counts_[i] == 0) continue;
            throw corrupt("{}: {} separate the columns, and commas are expected: write it with commas{}", file_.name(),
                          separators[i].name, separators[i].hint)
                .advising(Action::dtype, "reads each line as one text", "U80");
        }
    }

    void add_row(const CsvRows& rows) {
        if (rows.size() != table_.width) {
            require_commas();
            throw corrupt("{}: line {}, column {}: the row has {} columns, but the first one has {}", file_.name(),
                          rows.place().line, std::min(rows.size(), table_.width) + 1, rows.size(), table_.width);
        }
        if (count_ % rows_apart == 0) table_.places.push_back(rows.place());
        ++count_;
        if (table_.width == 1) compare_separators(rows);
        for (std::size_t i = 0; i < table_.width; ++i) check(rows, i);
    }

    void check(const CsvRows& rows, std::size_t i) {
        if (options_.dtype) {
            const DType& dtype = table_.columns.empty() ? *options_.dtype : table_.columns[i].dtype;
            element_.resize(static_cast<std::size_t>(dtype.size()));
            about_field(rows, i, [&] { parse_csv(dtype, rows.field(i), element_.data(), missing()); });
            return;
        }
        about_field(rows, i, [&] { kinds_[i].add(rows.field(i)); });
        if (missing_at_[i] == 0 && kinds_[i].has_missing()) missing_at_[i] = rows.place().line;
    }

    [[nodiscard]] const std::string* missing() const { return options_.missing ? &*options_.missing : nullptr; }

    void take_back_header(const CsvPlace& begin, const CsvRow& first) {
        table_.header = false;
        ++count_;
        for (std::size_t i = 0; i < table_.width; ++i) kinds_[i].add(first.field(i));
        // The places were counted without the first row.
        table_.places.clear();
        CsvRows rows(file_, begin);
        for (std::int64_t i = 0; rows.next(); ++i) {
            if (i % rows_apart == 0) table_.places.push_back(rows.place());
        }
    }

    /// The dtype has to hold the value for missing numbers, too.
    void settle_missing() {
        for (std::size_t i = 0; i < table_.width; ++i) {
            CsvKind& kind = kinds_[i];
            if (!kind.has_missing() || kind.is_text() || kind.is_time()) continue;
            if (kind.is_missing() && !options_.missing) continue;
            in_context([&] { return fmt::format("{}: line {}, column {}", file_.name(), missing_at_[i], i + 1); },
                       [&] {
                           if (options_.missing) kind.add(*options_.missing);
                           const DType dtype = kind.dtype();
                           std::vector<std::byte> element(static_cast<std::size_t>(dtype.size()));
                           if (dtype.kind() == Kind::text) {
                               throw invalid_argument("'{}' cannot stand for a missing number", *options_.missing);
                           }
                           parse_csv(dtype, "", element.data(), missing());
                       });
        }
    }

    void settle(const CsvRow& names) {
        require_commas();
        if (!options_.dtype) {
            settle_missing();
            choose(names);
        } else {
            table_.dtype = *options_.dtype;
            if (!table_.columns.empty()) require_names(names);
        }
        if (table_.dtype.kind() == Kind::structure) {
            table_.columns = csv_columns(table_.dtype);
            table_.shape = Shape{count_};
            return;
        }
        table_.shape = table_.width == 1 ? Shape{count_} : Shape{count_, static_cast<std::int64_t>(table_.width)};
    }

    /// Chooses the dtype if none was given: one for all columns, or a structure if there is a header or they differ in
    /// kind.
    void choose(const CsvRow& names) {
        if (count_ == 0) {
            throw corrupt("{}: a header and no row", file_.name()).advising(Action::dtype, "says what is in such rows");
        }
        const bool alike = std::ranges::all_of(kinds_, [&](const CsvKind& k) { return k.same_kind(kinds_.front()); });
        in_context(
            [&] { return file_.name(); },
            [&] {
                if (!table_.header && alike) {
                    CsvKind all;
                    for (const CsvKind& kind : kinds_) all.add(kind);
                    table_.dtype = all.dtype();
                    return;
                }
                const MemoryHold copies(2 * names.text.size());  // here and in the columns
                require_memory(table_.width * 2 * (sizeof(Field) + sizeof(CsvColumn)));
                std::vector<Field> fields;
                fields.reserve(table_.width);
                std::int64_t size = 0;
                for (std::size_t i = 0; i < table_.width; ++i) {
                    const DType dtype = kinds_[i].dtype();
                    fields.push_back({.name = table_.header ? std::string(names.field(i)) : fmt::format("f{}", i),
                                      .title = std::nullopt,
                                      .dtype = dtype,
                                      .shape = Shape(),
                                      .offset = size});
                    size += dtype.size();
                }
                table_.dtype = DType::structure(std::move(fields), size);
            });
    }

    /// A header must match the given structure.
    void require_names(const CsvRow& names) const {
        if (!table_.header) return;
        for (std::size_t i = 0; i < table_.width; ++i) {
            if (names.field(i) == table_.columns[i].name) continue;
            throw corrupt("{}: line 1, column {}: the column is called '{}', but the field '{}'", file_.name(), i + 1,
                          names.field(i), table_.columns[i].name);
        }
    }

    const ByteSource& file_;
    const CsvOptions& options_;
    Table table_;
    std::int64_t count_ = 0;
    CountedVector<CsvKind> kinds_;  ///< of the columns, if no dtype is given
    std::vector<std::byte> element_;
    CountedVector<std::int64_t> missing_at_;                  ///< the first line of each column that lacks an element
    std::array<std::ptrdiff_t, separators.size()> counts_{};  ///< in each row so far; 0: other in some
};

class CsvSource final : public ArraySource {
public:
    CsvSource(std::shared_ptr<const ByteSource> file, const CsvOptions& options)
        : file_(std::move(file)), missing_(options.missing), table_(TableReader(*file_, options).read()) {}

    [[nodiscard]] ArrayInfo info() const override {
        Shape chunks = table_.shape;
        chunks[0] = std::max<std::int64_t>(1, std::min(chunks[0], rows_apart));
        return {.dtype = table_.dtype, .shape = table_.shape, .chunks = chunks};
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, table_.shape);
        if (region.empty()) return;
        const bool flat = table_.shape.rank() == 2;
        const std::int64_t first = flat ? region.start[1] : 0;
        const std::int64_t width = flat ? region.extent[1] : static_cast<std::int64_t>(table_.width);
        // Columns in the byte order of `out`.
        const CountedVector<CsvColumn> columns = csv_columns(out.dtype);
        const std::int64_t begin = region.start[0];
        CsvRows rows(*file_, table_.places[static_cast<std::size_t>(begin / rows_apart)]);
        for (std::int64_t i = begin / rows_apart * rows_apart; i < begin + region.extent[0]; ++i) {
            if (i % rows_apart == 0 && io.stop.stop_requested()) throw cancelled("stopped on request");
            if (!rows.next() || rows.size() != table_.width) {
                throw corrupt("{} was changed while it was read", file_->name());
            }
            if (i < begin) continue;
            std::byte* row = out.data + (i - begin) * out.strides[0];
            for (std::int64_t k = 0; k < width; ++k) {
                const auto column = static_cast<std::size_t>(first + k);
                const CsvColumn& to = columns[flat ? 0 : static_cast<std::size_t>(k)];
                std::byte* p = row + (flat ? k * out.strides[1] : to.offset);
                about_field(rows, column,
                            [&] { parse_csv(to.dtype, rows.field(column), p, missing_ ? &*missing_ : nullptr); });
            }
        }
    }

    [[nodiscard]] const std::string& name() const override { return file_->name(); }
    [[nodiscard]] bool header() const { return table_.header; }

private:
    std::shared_ptr<const ByteSource> file_;
    std::optional<std::string> missing_;
    Table table_;
};

/// The error with a selection that picks so many dimensions of an array.
Error advise_selection(const Error& error, const Shape& shape, int rank) {
    if (shape.rank() < rank) return error;
    std::string selection;
    for (int d = 0; d < shape.rank(); ++d) {
        selection += fmt::format("{}{}", d == 0 ? "" : ", ", d < shape.rank() - rank ? "0" : ":");
    }
    return error.advising(Action::selection, rank == 1 ? "picks one of them" : "picks two of them", selection);
}

class CsvSink final : public ArraySink {
public:
    CsvSink(std::unique_ptr<ByteSink> sink, DType dtype, const Shape& shape)
        : sink_(std::move(sink)), dtype_(std::move(dtype)), shape_(shape), columns_(csv_columns(dtype_)) {
        if (shape.rank() != 1 && (shape.rank() != 2 || dtype_.kind() == Kind::structure)) {
            throw advise_selection(
                unsupported("a .csv holds one or two dimensions, and of structures one, but this has the shape {}",
                            shape.to_string()),
                shape, dtype_.kind() == Kind::structure ? 1 : 2);
        }
        width_ = shape.rank() == 2 ? shape[1] : 1;
        alone_ = width_ == 1 && columns_.size() == 1;
        if (dtype_.kind() != Kind::structure) return;
        for (const CsvColumn& column : columns_) {
            if (&column != columns_.data()) text_ += ',';
            append_csv_text(text_, column.name, alone_);
        }
        text_ += '\n';
    }

    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = dtype_, .shape = shape_, .chunks = {}, .access = Access::stream};
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& /*io*/) override {
        const CountedVector<CsvColumn> columns = csv_columns(in.dtype);  // in its byte order
        const std::int64_t width = shape_.rank() == 2 ? region.extent[1] : 1;
        const std::int64_t step = shape_.rank() == 2 ? in.strides[1] : 0;
        for (std::int64_t i = 0; i < region.extent[0]; ++i) {
            for (std::int64_t k = 0; k < width; ++k) put(columns, in.data + i * in.strides[0] + k * step);
        }
    }

    void finish() override {
        drain();
        sink_->finish();
    }
    [[nodiscard]] const std::string& name() const override { return sink_->name(); }

private:
    void put(const CountedVector<CsvColumn>& columns, const std::byte* element) {
        for (const CsvColumn& column : columns) {
            if (&column != columns.data() || at_ > 0) text_ += ',';
            append_csv(text_, column.dtype, element + column.offset, alone_);
        }
        if (++at_ == width_) {
            text_ += '\n';
            at_ = 0;
        }
        if (text_.size() > std::size_t{1} << 16U) drain();
    }

    void drain() {
        sink_->append(std::as_bytes(std::span(text_)));
        text_.clear();
    }

    std::unique_ptr<ByteSink> sink_;
    DType dtype_;
    Shape shape_;
    CountedVector<CsvColumn> columns_;
    std::int64_t width_ = 1;
    std::int64_t at_ = 0;  ///< the next column
    bool alone_ = false;
    std::string text_;
};

std::unique_ptr<CsvSource> open_table(const std::shared_ptr<const ByteSource>& file, const CsvOptions& options) {
    if (options.dtype && (options.dtype->is_variable() || options.dtype->size() == 0)) {
        throw unsupported("{}: text is read as U n (or found out), not as dtype {}", file->name(),
                          options.dtype->to_string());
    }
    if (options.dtype) (void)csv_columns(*options.dtype);
    return within_memory(file->name(), [&] { return std::make_unique<CsvSource>(file, options); });
}

// ---- as a format of array files

std::unique_ptr<ArraySource> csv_open(const ArrayPath& path, const ArrayFileOptions& options) {
    require_no_member(path);
    return open_csv(path.bytes(), {.dtype = options.dtype, .header = options.header, .missing = options.missing});
}

std::unique_ptr<ArraySink> csv_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                      const ArrayFileOptions& options) {
    require_no_member(path);
    (void)csv_columns(dtype);
    return create_csv(create_file(path.path, options.durable), dtype, shape);
}

Value csv_describe(const ArrayPath& path) {
    require_no_member(path);
    const auto source = open_table(path.bytes(), {});
    const ArrayInfo info = source->info();
    Value facts = Value::object();
    facts.set("format", "csv");
    facts.set("dtype", info.dtype.to_string());
    facts.set("shape", Value::Array(info.shape.begin(), info.shape.end()));
    facts.set("header", source->header());
    return facts;
}

}  // namespace

std::unique_ptr<ArraySource> open_csv(std::shared_ptr<const ByteSource> file, const CsvOptions& options) {
    return open_table(file, options);
}

std::int64_t csv_line(const ByteSource& file, std::int64_t row, std::int64_t rows) {
    CsvRows found(file, {});
    std::int64_t without_header = 0;
    std::int64_t with_header = 0;
    std::int64_t count = 0;
    for (; found.next(); ++count) {
        if (count == row) without_header = found.place().line;
        if (count == row + 1) with_header = found.place().line;
    }
    return count > rows ? with_header : without_header;
}

std::unique_ptr<ArraySink> create_csv(std::unique_ptr<ByteSink> sink, const DType& dtype, const Shape& shape) {
    return std::make_unique<CsvSink>(std::move(sink), dtype, shape);
}

extern constinit const ArrayFileFormat csv_format{
    .name = "csv",
    .extension = ".csv",
    .about = "table as text, of one or two dimensions or of structures",
    .recognise = nullptr,
    .open = csv_open,
    .create = csv_create,
    .describe = csv_describe,
};

}  // namespace tessera
