// tessera get
#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/meaning.h>
#include <tessera/memory_account.h>
#include <tessera/sequences.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "blocks.h"
#include "command.h"
#include "options.h"
#include "report.h"
#include "selected.h"
#include "streams.h"
#include "transfer.h"

namespace tessera::cli {

namespace {

// As in NumPy: more elements than `summary_threshold` are summarised, with a few at either end of a dimension.
constexpr std::int64_t summary_threshold = 1000;
constexpr std::int64_t edge = 3;
constexpr std::size_t line_width = 75;

/// Prints elements, which arrive one by one in C order, as nested brackets in NumPy's or JSON's form.
class NestedPrinter {
public:
    /// `cut[d]`: put an ellipsis after the first `edge` items of dimension d.
    NestedPrinter(const Shape& shape, std::vector<bool> cut, bool json)
        : shape_(shape), cut_(std::move(cut)), json_(json), index_(Index::filled(shape.rank(), 0)) {
        text_ = std::string(shape_.size(), '[');
    }

    void put(std::string_view element) {
        if (!first_) separate(element.size());
        first_ = false;
        text_ += element;
        if (text_.size() > 1U << 16U) drain();
    }

    void end() {
        text_ += std::string(shape_.size(), ']') + "\n";
        drain();
    }

private:
    /// Steps to the next index, and writes the separator between the two elements.
    void separate(std::size_t next_size) {
        int axis = shape_.rank() - 1;
        while (++index_[axis] == shape_[axis]) index_[axis--] = 0;
        const auto closed = static_cast<std::size_t>(shape_.rank() - 1 - axis);
        const bool ellipsis = cut_[static_cast<std::size_t>(axis)] && index_[axis] == edge;
        if (json_) {
            text_ += std::string(closed, ']') + (closed == 0 ? ", " : ",\n") + std::string(closed, '[');
        } else if (closed == 0) {
            if (ellipsis) text_ += " ...";
            const std::size_t line_begin = text_.rfind('\n') + 1;  // npos + 1 is 0
            const std::size_t column = (drained_line_ && line_begin == 0 ? line_width : 0) + text_.size() - line_begin;
            text_ += column + 1 + next_size + shape_.size() > line_width ? "\n" + std::string(shape_.size(), ' ') : " ";
        } else {
            const std::string line = std::string(closed, '\n') + std::string(shape_.size() - closed, ' ');
            text_ += std::string(closed, ']') + (ellipsis ? line + "..." : "") + line + std::string(closed, '[');
        }
    }

    void drain() {
        print(text_);
        drained_line_ = !text_.ends_with('\n');
        text_.clear();
    }

    Shape shape_;
    std::vector<bool> cut_;
    bool json_;
    bool first_ = true;
    bool drained_line_ = false;  ///< the text begins inside a partly written line
    Index index_;
    std::string text_;
};

bool is_text(const DType& dtype) {
    return dtype.kind() == Kind::bytes || dtype.kind() == Kind::text || dtype.is_variable();
}

std::string element_text(const DecodedElements& elements, std::int64_t i, bool json) {
    if (elements.lacks(i)) return json ? "null" : "--";  // as NumPy's masked arrays
    if (const auto date = elements.date(i)) return json ? json_text(*date) : *date;
    const DType& dtype = elements.values.dtype();
    const std::byte* const p = elements.values.bytes().data() + i * dtype.size();
    return json || is_text(dtype) ? json_text(element_to_json(dtype, p)) : printable(element_to_text(dtype, p));
}

/// Additional bytes needed to print an element.
std::uint64_t printing_memory(const DType& dtype, const std::byte* p) {
    if (!is_text(dtype)) return 0;
    if (dtype.is_variable()) return text_memory(reinterpret_cast<const VariableSlot*>(p)->view());
    return text_memory({reinterpret_cast<const char*>(p), static_cast<std::size_t>(dtype.size())});
}

/// Calls `each` with every element of a packed C-order array.
template <class Each>
void for_each_element(const NDArray& array, const Each& each) {
    const std::byte* p = array.bytes().data();
    for (std::int64_t i = 0; i < array.count(); ++i, p += array.dtype().size()) each(p);
}

/// Nested brackets of an empty array; as with Python's tolist(), (2, 0) gives [[], []].
std::string empty_brackets(const Shape& shape, int axis = 0) {
    std::string text = "[";
    for (std::int64_t i = 0; shape[axis] > 0 && i < shape[axis]; ++i) {
        text += (i == 0 ? "" : ", ") + empty_brackets(shape, axis + 1);
    }
    return text + "]";
}

/// A small array, its numbers aligned.
void print_aligned(const DecodedElements& elements, const Shape& shape, const std::vector<bool>& cut) {
    const NDArray& array = elements.values;
    std::vector<std::string> texts;
    MemoryHold held;  // for these
    std::size_t width = 0;
    for_each_element(array, [&](const std::byte* p) {
        held.add(printing_memory(array.dtype(), p));
        texts.push_back(element_text(elements, std::ssize(texts), false));
        width = std::max(width, texts.back().size());
    });
    if (shape.empty() || is_text(array.dtype()) || array.dtype().kind() == Kind::structure) width = 0;
    NestedPrinter printer(shape, cut, false);
    for (const std::string& text : texts) printer.put(std::string(width - std::min(width, text.size()), ' ') + text);
    printer.end();
}

/// What is shown of a large selection: along its long dimensions the first and the last indices.
struct Edges {
    explicit Edges(const Shape& full) {
        for (const std::int64_t n : full) {
            cut.push_back(n > 2 * edge);
            shape.push_back(std::min(n, 2 * edge));
        }
    }
    std::vector<bool> cut;  ///< the long dimensions
    Shape shape;            ///< of what is shown
};

/// Calls `each` with every combination of first and last parts along the long dimensions: a region of the selection,
/// and the one of the edges that it becomes.
template <class Each>
void for_each_part(const Shape& full, const Edges& edges, const Each& each) {
    const std::function<void(int, Region&, Region&)> visit = [&](int axis, Region& from, Region& to) {
        if (axis == full.rank()) return each(from, to);
        const bool is_cut = edges.cut[static_cast<std::size_t>(axis)];
        from.start[axis] = to.start[axis] = 0;
        from.extent[axis] = to.extent[axis] = is_cut ? edge : full[axis];
        visit(axis + 1, from, to);
        if (!is_cut) return;
        from.start[axis] = full[axis] - edge;
        to.start[axis] = edge;
        from.extent[axis] = to.extent[axis] = edge;
        visit(axis + 1, from, to);
    };
    Region from = Region::whole(edges.shape);
    Region to = from;
    visit(0, from, to);
}

/// The elements of the edges, without reading the rest.
NDArray read_edges(const ArraySource& source, const Selection& selection, const Edges& edges, const IoOptions& io) {
    NDArray elements(source.info().dtype, edges.shape);
    for_each_part(selection.full_shape(), edges, [&](const Region& from, const Region& to) {
        NDArray part = read_selection(source, selection.part(from), io);
        copy_elements(std::move(part).reshaped(to.extent).view(), elements.view().part(to));
    });
    return elements;
}

/// Prints the edges of a large selection.
void print_summary(const ArraySource& source, const Meaning& meaning, const Selection& selection, const IoOptions& io) {
    const Edges edges(selection.full_shape());
    const DecodedElements elements = decoded_elements(meaning, read_edges(source, selection, edges, io));
    std::vector<bool> cut;
    for (std::size_t d = 0; d < edges.cut.size(); ++d) {
        if (!selection.axes()[d].dropped) cut.push_back(edges.cut[d]);
    }
    print_aligned(elements, without_dropped(Region::whole(edges.shape), selection).extent, cut);
}

struct GetOptions {
    TransferOptions out;
    std::string selection;
    bool all = false;
    bool csv = false;
    bool raw = false;
};

/// Prints every element as it is read.
void print_all(Session& session, const ArraySource& source, const Meaning& meaning, const Selection& selection,
               const IoOptions& io) {
    const bool json = session.options().json;
    const Shape shape = selection.shape();
    NestedPrinter printer(shape, std::vector<bool>(shape.size(), false), json);
    // A quarter: the rest is for decoding.
    const auto most = static_cast<std::int64_t>(session.options().max_memory / 4);
    for_each_box(selection, source.info(), most, [&](const Region& box) {
        const DecodedElements found = decoded_elements(meaning, read_selection(source, selection.part(box), io));
        const NDArray& part = found.values;
        // Before printing: a box that does not fit into memory is divided in two.
        for_each_element(part, [&](const std::byte* p) { require_memory(printing_memory(part.dtype(), p)); });
        for (std::int64_t i = 0; i < part.count(); ++i) printer.put(element_text(found, i, json));
    });
    printer.end();
}

int get(Session& session, const GetOptions& o, std::unique_ptr<ArraySource> source) {
    if (!o.raw && !o.out.recipe.dtype) source = with_characters_as_text(std::move(source));
    const Selection selection = chosen_part(session, o.out.source, o.selection, source);
    if (o.csv && !o.raw && !o.out.recipe.dtype) source = text_source(std::move(source));
    source = with_sequences_as_text(std::move(source));
    // What is given with --dtype is converted already.
    const Meaning meaning = o.raw || o.out.recipe.dtype ? Meaning{.stored = source->info().dtype} : meaning_of(*source);
    const Shape shape = selection.shape();
    const bool json = session.options().json;
    IoOptions io = session.io();
    io.progress = nullptr;  // a progress bar would mix with the output

    if (o.csv) {
        if (json) throw invalid_argument("--csv: --json was given, too");
        const auto sink = create_csv(stream_sink(STDOUT_FILENO), source->info().dtype, shape);
        copy_array(*source, *sink, {.io = io, .selection = selection, .repeatable = false});
        return exit_done;
    }
    const std::int64_t count = element_count(shape);
    if (count == 0) {
        print((json ? empty_brackets(shape) : "[]") + "\n");
    } else if (!json && count <= summary_threshold) {
        print_aligned(decoded_elements(meaning, read_selection(*source, selection, io)), shape,
                      std::vector<bool>(shape.size(), false));
    } else if (!json && !o.all) {
        print_summary(*source, meaning, selection, io);
    } else {
        print_all(session, *source, meaning, selection, io);
    }
    return exit_done;
}

int get_or_save(Session& session, GetOptions& o) {
    const bool printed_as_read = o.out.destination.empty() && !o.out.recipe.dtype;
    o.out.recipe.view()->elements = o.raw || printed_as_read ? Elements::codes : Elements::shown;
    const auto show = [&](std::unique_ptr<ArraySource> source) { return get(session, o, std::move(source)); };
    const auto print = [&](const Located& at) { return show(open_given(session, o.out, at)); };
    // Output that is printed while reading cannot be restarted.
    const bool streamed = o.all || o.csv || session.options().json;
    if (o.out.destination.empty() && input_stream(o.out.source)) {
        (void)session.io();  // from now on Ctrl-C ends the wait for it
        return show(open_given(session, o.out));
    }
    if (o.out.destination.empty()) {
        return streamed ? print(locate(o.out.source)) : at_located(o.out.source, print);
    }
    if (!output_stream(o.out.destination) && !names_array_file(o.out.destination)) {
        throw invalid_argument(
            "--out: expected the name of an array file, such as part.npy, found {}; `tessera formats` "
            "lists the extensions",
            o.out.destination);
    }
    o.out.recipe.selection = o.selection;
    return transfer(session, o.out, "saved");
}

}  // namespace

Run declare_get(CLI::App& app) {
    auto o = std::make_shared<GetOptions>();
    app.add_option("PATH", o->out.source, "an array, an array file or a member of one; - is standard input")
        ->required()
        ->option_text(" ");
    app.add_option("SELECTION", o->selection, fmt::format("{} (default: everything)", selection_forms))
        ->option_text(" ");
    app.add_option_function<std::string>(
           "--points",
           [&points = o->out.recipe.view()->points](const std::string& path) { points = Ingredient{.path = path}; },
           "an array file of integers, a row of indices for each element wanted: those elements, read at once;\n"
           "SELECTION is then a part of these")
        ->option_text("FILE");
    app.add_option("--out", o->out.destination, "write an array file instead of printing; - is standard output")
        ->option_text("FILE");
    declare_transfer(app, o->out,
                     only_named({"where", "overwrite", "object_strings", "reverse_dims", "dtype", "cast", "as",
                                 "header", "missing"}));
    app.get_option("--overwrite")->description("replace the file of --out");
    app.add_flag("--all", o->all, "print every element");
    app.add_flag("--csv", o->csv,
                 "print every element as comma-separated values: one or two dimensions, or structures");
    app.add_flag("--raw", o->raw, raw_text);
    return [o](Session& session) { return get_or_save(session, *o); };
}

}  // namespace tessera::cli
