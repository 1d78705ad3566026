#include "readme_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/array.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/own_names.h>
#include <tessera/view.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "keys.h"
#include "readme_codecs.h"
#include "sealed_file_store.h"

namespace tessera {

namespace {

constexpr std::string_view beginning =
    R"(How to read the numbers in this folder without the program that wrote them
===========================================================================

The arrays here are stored in chunks, each a file, as the Zarr formats have it. Metadata are JSON in {documents}.
Attributes there say what the numbers mean: units, coordinates, scale_factor and add_offset, what stands for a missing
value. Files with names that begin with ".tessera" are not needed to read anything.

Each layout below has a program for Python 3.8 or later, which needs no other package. It reads single elements of the
arrays in this layout, and compares the first and the last of each with what they were when this page was written. Take
the indented lines into a file, and run that in this folder. A chunk that has no file is full of the fill value.
)";

/// The four spaces that mark a program.
std::string indented(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (end > 0) out += "    ";
        out.append(text.substr(0, end)).push_back('\n');
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

/// A tuple of Python.
std::string tuple(std::span<const std::int64_t> numbers) {
    return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}
std::string tuple_of(const Dims& numbers) {
    return tuple(std::span(numbers.begin(), numbers.end()));
}

/// A literal of Python, and of JSON.
std::string literal(std::string_view text) {
    return Value(text).dump();
}

/// Text that cannot begin a line of a program: names in metadata may hold anything.
std::string one_line(std::string_view text) {
    std::string line(text);
    std::ranges::replace_if(
        line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
    return line;
}

std::string hex_of(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
    return text;
}

// ---- elements

ByteOrder stored_order(const ArrayMetadata& metadata, const std::vector<CodecConfig>& codecs) {
    for (const CodecConfig& codec : codecs) {
        const Value* const endian = codec.name == "bytes" ? codec.configuration.find("endian") : nullptr;
        if (endian != nullptr && metadata.dtype.order() != ByteOrder::none) {
            return endian->as_string() == "big" ? ByteOrder::big : ByteOrder::little;
        }
    }
    return metadata.dtype.order();
}

/// The bytes of one number within an element.
std::int64_t number_size(const DType& dtype) {
    constexpr std::int64_t code_unit = 4;
    if (dtype.kind() == Kind::complex || dtype.kind() == Kind::extended_complex) return dtype.size() / 2;
    return dtype.kind() == Kind::text ? code_unit : dtype.size();
}

ElementBytes as_stored(ElementBytes bytes, const DType& dtype, ByteOrder order) {
    if (order == dtype.order() || dtype.order() == ByteOrder::none) return bytes;
    const auto size = static_cast<std::size_t>(number_size(dtype));
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
    }
    return bytes;
}

struct Element {
    ElementBytes bytes;
    std::string text;  ///< as JSON
};

Element element_at(const Array& array, const Index& index, ByteOrder order) {
    Shape one = array.shape();
    for (std::int64_t& length : one) length = 1;
    const NDArray found = array.read(Region(index, one));
    const DType& dtype = found.dtype();
    constexpr std::size_t most = 1024;
    const auto size = dtype.is_variable() ? reinterpret_cast<const VariableSlot*>(found.bytes().data())->size
                                          : static_cast<std::uint64_t>(dtype.size());
    if (size > most) throw unsupported("an element at its ends has {} bytes, too many for this page", size);
    Element element{.bytes = {}, .text = element_to_json(dtype, found.bytes().data()).dump()};
    if (dtype.is_variable()) {
        const auto text = reinterpret_cast<const VariableSlot*>(found.bytes().data())->view();
        const auto bytes = std::as_bytes(std::span(text));
        element.bytes.assign(bytes.begin(), bytes.end());
    } else {
        const auto bytes = found.bytes().first(static_cast<std::size_t>(dtype.size()));
        element.bytes = as_stored({bytes.begin(), bytes.end()}, dtype, order);
    }
    return element;
}

std::string_view struct_letter(const DType& dtype) {
    const bool is_signed = dtype.kind() == Kind::integer;
    switch (dtype.kind()) {
        case Kind::boolean:
            return "?";
        case Kind::integer:
        case Kind::unsigned_integer:
            switch (dtype.size()) {
                case 1:
                    return is_signed ? "b" : "B";
                case 2:
                    return is_signed ? "h" : "H";
                case 4:
                    return is_signed ? "i" : "I";
                default:
                    return is_signed ? "q" : "Q";
            }
        case Kind::real:
            return dtype.size() == 2 ? "e" : dtype.size() == 4 ? "f" : "d";
        case Kind::complex:
            return dtype.size() == 8 ? "2f" : "2d";
        case Kind::datetime:
        case Kind::timedelta:
            return "q";
        default:
            return "";
    }
}

/// An expression of Python that turns the bytes `b` of an element into a value.
std::string value_expression(const DType& dtype, ByteOrder order) {
    const bool big = order == ByteOrder::big;
    if (const auto letter = struct_letter(dtype); !letter.empty()) {
        const std::string numbers = fmt::format("struct.unpack(\"{}{}\", b)", big ? '>' : '<', letter);
        return dtype.kind() == Kind::complex ? fmt::format("complex(*{})", numbers) : numbers + "[0]";
    }
    if (dtype.kind() == Kind::text) return fmt::format(R"(b.decode("utf-32-{}").rstrip("\0"))", big ? "be" : "le");
    if (dtype.kind() == Kind::variable_text) return "b.decode()";
    return dtype.kind() == Kind::bytes ? R"(b.rstrip(b"\0"))" : "b";
}

std::string dtype_text(const DType& dtype, ByteOrder order) {
    if (dtype.is_variable()) return dtype.kind() == Kind::variable_text ? "text of any length" : "bytes of any length";
    if (dtype.kind() == Kind::structure) {
        return fmt::format("{} bytes, with fields as NumPy lists them: {}", dtype.size(), dtype.descr().dump());
    }
    std::string text = fmt::format("{} in NumPy's notation, {} bytes", dtype.to_string(), dtype.size());
    if (order != ByteOrder::none) text += order == ByteOrder::big ? ", big-endian" : ", little-endian";
    if (dtype.kind() == Kind::datetime) text += ", counted from 1970-01-01";
    return text;
}

// ---- layouts

/// What arrays have in common that one program reads.
struct Layout {
    std::string about;    ///< the lines that describe it
    std::string program;  ///< without the table of arrays; empty: none
};

/// What is stored in a file: a chunk, or a shard of chunks.
struct Parts {
    Shape file, chunk;
    std::vector<CodecConfig> codecs;  ///< of a chunk
    bool sharded = false, index_first = false, index_sum = false;
};

/// nullopt for shards that no short program reads: in shards, or with codecs around them.
std::optional<Parts> parts_of(const ArrayMetadata& metadata) {
    const auto shard = std::ranges::find_if(metadata.codecs, is_shard);
    if (shard == metadata.codecs.end()) return Parts{metadata.chunks, metadata.chunks, metadata.codecs};
    Parts parts{.file = metadata.chunks, .chunk = {}, .codecs = {}, .sharded = true};
    const Value& how = shard->configuration;
    for (const Value& length : how.at("chunk_shape").as_array()) parts.chunk.push_back(length.as_int64());
    for (const Value& codec : how.at("codecs").as_array()) parts.codecs.push_back(codec_from_json(codec));
    const Value* const place = how.find("index_location");
    parts.index_first = place != nullptr && place->as_string() == "start";
    std::vector<CodecConfig> index;
    for (const Value& codec : how.at("index_codecs").as_array()) index.push_back(codec_from_json(codec));
    parts.index_sum = index.size() == 2 && index[1].name == "crc32c";
    const bool plain = !index.empty() && index[0].name == "bytes" && (index.size() == 1 || parts.index_sum);
    const Value* const endian = plain ? index[0].configuration.find("endian") : nullptr;
    const bool little = endian != nullptr && endian->as_string() == "little";
    if (metadata.codecs.size() > 1 || !little || std::ranges::any_of(parts.codecs, is_shard)) return std::nullopt;
    return parts;
}

/// The dimensions of a chunk from the slowest to the fastest. nullopt if another codec changes the elements; `unknown`
/// is then its name.
std::optional<std::vector<std::int64_t>> axes_of(const Parts& parts, std::size_t& bytes_at, std::string& unknown) {
    std::vector<std::int64_t> axes;
    for (int k = 0; k < parts.chunk.rank(); ++k) axes.push_back(k);
    for (bytes_at = 0; bytes_at < parts.codecs.size(); ++bytes_at) {
        const CodecConfig& codec = parts.codecs[bytes_at];
        const Value* const order = codec.configuration.find("order");
        if (codec.name == "transpose" && order != nullptr && order->is_array()) {
            std::vector<std::int64_t> turned;
            for (const Value& axis : order->as_array())
                turned.push_back(axes[static_cast<std::size_t>(axis.as_int64())]);
            axes = std::move(turned);
        } else if (codec.name == "bytes" || codec.name.starts_with("vlen-")) {
            return axes;
        } else if (codec.name != "numcodecs.bitround") {
            unknown = codec.name;
            return std::nullopt;
        }
    }
    unknown = "no codec of elements";
    return std::nullopt;
}

/// The key of the file that holds an element, as an expression of Python.
std::string key_expression(const KeyScheme& keys, int rank) {
    if (rank == 0) return literal(keys.zero_d);
    std::string text = fmt::format("{}.join(str(i // n) for i, n in zip(index, FILE))", literal(keys.separator));
    if (!keys.prefix.empty()) text = literal(keys.prefix) + " + " + text;
    if (!keys.suffix.empty()) text += " + " + literal(keys.suffix);
    return text;
}

constexpr std::string_view shard_lines = R"(    at = 0  # the number of the chunk in its file
    for i, f, n in zip(index, FILE, CHUNK):
        at = at * (f // n) + i % f // n
    begin, size = struct.unpack_from("<2Q", data, {index} + 16 * at)  # of the index, which is {where}
    if size == 2**64 - 1:
        return FILL
    data = data[begin:begin + size]
)";
constexpr std::string_view fixed_lines = "    return data[at * SIZE:(at + 1) * SIZE]\n";
constexpr std::string_view variable_lines = R"(    begin = 4  # after the count
    for _ in range(at):
        begin += 4 + int.from_bytes(data[begin:begin + 4], "little")
    return data[begin + 4:begin + 4 + int.from_bytes(data[begin:begin + 4], "little")]
)";
constexpr std::string_view check_lines = R"(def value(b):
    return {value}

for path, (shape, first, last) in ARRAYS.items():
    for index, expected in ((tuple(0 for n in shape), first), (tuple(n - 1 for n in shape), last)):
        found = element(path, index)
        assert found == bytes.fromhex(expected), (path, index, found)
        print(path or ".", index, repr(value(found)))
)";

std::string index_place(const Parts& parts) {
    if (parts.index_first) return "0";
    std::int64_t count = 1;
    for (int k = 0; k < parts.chunk.rank(); ++k) count *= parts.file[k] / parts.chunk[k];
    constexpr std::int64_t entry = 16;
    constexpr std::int64_t sum = 4;
    return fmt::format("len(data) - {}", entry * count + (parts.index_sum ? sum : 0));
}

std::string element_function(const ArrayMetadata& metadata, const Parts& parts, const std::vector<std::int64_t>& axes,
                             const PythonDecoder& decoder) {
    const int rank = metadata.shape.rank();
    std::string code = "def element(path, index):\n";
    code += fmt::format("    file = pathlib.Path(path, {})\n", key_expression(metadata.keys, rank));
    code += "    if not file.exists():\n        return FILL\n    data = file.read_bytes()\n";
    if (parts.sharded) {
        code += fmt::format(fmt::runtime(shard_lines), fmt::arg("index", index_place(parts)),
                            fmt::arg("where", parts.index_first ? "first" : "last"));
    }
    for (const std::string& line : decoder.lines) code += fmt::format("    {}\n", line);
    code += "    at = 0  # the number of the element in its chunk\n";
    if (rank > 0) {
        code += fmt::format("    for k in {}:  # the dimensions, the last of which varies fastest\n", tuple(axes));
        code += "        at = at * CHUNK[k] + index[k] % CHUNK[k]\n";
    }
    code += metadata.dtype.is_variable() ? variable_lines : fixed_lines;
    return code;
}

std::string program_of(const ArrayMetadata& metadata, const Parts& parts, const std::vector<std::int64_t>& axes,
                       const PythonDecoder& decoder, ByteOrder order) {
    std::vector<std::string> imports = decoder.imports;
    imports.emplace_back("pathlib");
    imports.emplace_back("struct");
    std::ranges::sort(imports);
    std::string code =
        fmt::format("FILE, CHUNK, SIZE = {}, {}, {}  # elements of a file and of a chunk; bytes of one\n",
                    tuple_of(parts.file), tuple_of(parts.chunk), metadata.dtype.size());
    const ElementBytes fill = as_stored(fill_element(metadata), metadata.dtype, order);
    code += fmt::format("FILL = bytes.fromhex(\"{}\")\n\n", hex_of(fill));
    for (const std::string& function : decoder.functions) code += function + "\n";
    code += element_function(metadata, parts, axes, decoder) + "\n";
    code += fmt::format(fmt::runtime(check_lines), fmt::arg("value", value_expression(metadata.dtype, order)));
    return fmt::format("import {}\n\n", fmt::join(imports, ", ")) + code;
}

std::string about_layout(const ArrayMetadata& metadata, const Parts& parts, ByteOrder order) {
    std::string text = fmt::format("  elements   {}\n", dtype_text(metadata.dtype, order));
    text += fmt::format("  chunks     of {} elements; those at the ends have this size, too\n", tuple_of(parts.chunk));
    if (parts.sharded)
        text += fmt::format("  shards     of {} elements: the files, each of several chunks\n", tuple_of(parts.file));
    Index example;
    for (int k = 0; k < metadata.shape.rank(); ++k) example.push_back(k + 1);
    text += fmt::format("  files      {} holds number {} of them, counted from 0 along each dimension\n",
                        metadata.keys.key(example), tuple_of(example));
    text += "  codecs     in the order in which they were applied; the program undoes them from the last one on:\n";
    for (const CodecConfig& codec : parts.codecs) {
        text += fmt::format("  - {}: {}\n", one_line(codec.name), codec_specification(codec.name));
    }
    return text;
}

Layout layout_of(const ArrayMetadata& metadata, ByteOrder order) {
    const std::optional<Parts> parts = parts_of(metadata);
    const auto none = [](std::string about, std::string_view why) {
        return Layout{.about = about + fmt::format("No short program reads this layout: {}.\n", why), .program = {}};
    };
    if (!parts) return none("", "a shard in a shard, or with codecs around it (Zarr v3, sharding_indexed)");
    std::string about = about_layout(metadata, *parts, order);
    if (!metadata.edges.empty()) return none(about, "its chunks differ in length (Zarr v3, rectilinear grids)");
    std::string unknown;
    std::size_t bytes_at = 0;
    const auto axes = axes_of(*parts, bytes_at, unknown);
    const auto decoder = axes ? python_decoder(std::span(parts->codecs).subspan(bytes_at + 1), unknown) : std::nullopt;
    if (!decoder) return none(about, fmt::format("a decoder of {} is needed", one_line(unknown)));
    return {.about = about, .program = program_of(metadata, *parts, *axes, *decoder, order)};
}

// ---- the page

/// The arrays of one layout.
struct Section {
    std::string entries;  ///< lines of the table ARRAYS
    std::string others;   ///< arrays that the program does not read, with the reason
};

class Page {
public:
    explicit Page(const PlaceRef& place)
        // The page is done before the caller's store is gone.
        : store_(std::shared_ptr<void>(), &place.store), place_(place) {}

    std::string text() {
        if (const auto root = probe_node(place_)) add({"", root->kind, root->dialect});
        for (const Node& node : nodes_below(place_)) add(node);
        std::string page = fmt::format(fmt::runtime(beginning), fmt::arg("documents", fmt::join(documents_, ", ")));
        for (std::size_t n = 0; n < layouts_.size(); ++n) {
            const auto& [layout, section] = layouts_[n];
            page += fmt::format("\nLayout {}\n---------\n\n{}", n + 1, layout.about);
            if (!section.others.empty()) page += fmt::format("\nArrays that are not read here:\n{}", section.others);
            if (section.entries.empty()) continue;
            const std::size_t after = layout.program.find("\n\n") + 2;  // the imports
            page +=
                "\n" + indented(layout.program.substr(0, after) + "ARRAYS = {  # lengths, first and last element\n" +
                                section.entries + "}\n" + layout.program.substr(after));
        }
        return page;
    }

private:
    void add(const Node& node) {
        if (node.kind != NodeKind::array || node.dialect == nullptr) return;
        const std::string document = std::string(node.dialect->documents.back());
        for (const std::string& name : {std::string(node.dialect->metadata_key), document}) {
            if (std::ranges::count(documents_, name) == 0) documents_.push_back(name);
        }
        try {
            // This refuses orders and shapes that do not fit the array, on which all that follows relies.
            const Array array = Array::open(Place{store_, place_.key(node.path)});
            add_array(node.path, array);
        } catch (const Error& e) {  // metadata that nothing here can read
            if (e.code() == ErrorCode::cancelled) throw;
            section({.about = "", .program = {}}).others +=
                fmt::format("  {}: {}\n", literal(node.path), one_line(e.what()));
        }
    }

    void add_array(const std::string& path, const Array& array) {
        const ArrayMetadata& metadata = array.metadata();
        const Parts parts = parts_of(metadata).value_or(Parts{});
        const ByteOrder order = stored_order(metadata, parts.codecs);
        Section& into = section(layout_of(metadata, order));
        const auto empty = std::ranges::count(metadata.shape, 0) > 0;
        const std::string lengths = tuple_of(metadata.shape);
        try {
            if (empty) throw invalid_argument("it has no elements");
            Index end;
            for (const std::int64_t length : metadata.shape) end.push_back(length - 1);
            const Element first = element_at(array, Index::filled(metadata.shape.rank(), 0), order);
            const Element last = element_at(array, end, order);
            const std::string told =
                fmt::format("{}, from {} to {}", lengths, shortened(first.text), shortened(last.text));
            if (layouts_[at_].first.program.empty()) {
                into.others += fmt::format("  {}: {}\n", literal(path), told);
            } else {
                into.entries += fmt::format("    {}: ({}, \"{}\", \"{}\"),  # {}\n", literal(path), lengths,
                                            hex_of(first.bytes), hex_of(last.bytes), told);
            }
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            into.others += fmt::format("  {}: {}, {}\n", literal(path), lengths, one_line(e.what()));
        }
    }

    static std::string shortened(std::string text) {
        constexpr std::size_t most = 60;
        return text.size() <= most ? text : fmt::format("{} bytes of JSON", text.size());
    }

    /// Sections stay in the order in which their first arrays come.
    Section& section(const Layout& layout) {
        const auto [known, added] = numbers_.try_emplace(layout.about + layout.program, layouts_.size());
        if (added) layouts_.emplace_back(layout, Section());
        at_ = known->second;
        return layouts_[at_].second;
    }

    std::shared_ptr<KeyValueStore> store_;
    PlaceRef place_;
    std::vector<std::string> documents_;
    std::vector<std::pair<Layout, Section>> layouts_;
    std::map<std::string, std::size_t> numbers_;
    std::size_t at_ = 0;  ///< the section of the last call
};

}  // namespace

std::string readme_page(const PlaceRef& place) {
    return Page(place).text();
}

std::optional<std::string> wanted_readme(const PlaceRef& place, bool asked) {
    if (as_sealed_file(place.store) != nullptr) {
        if (asked) {
            throw unsupported(
                "{}: a page for readers is put into the folder of an array or a group, and not into a "
                "file or a bag; seal the folder with it before",
                place.name());
        }
        return std::nullopt;
    }
    if (!asked && !place.store.contains(place.key(readme_name))) return std::nullopt;
    return readme_page(place);
}

}  // namespace tessera
