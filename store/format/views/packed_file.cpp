#include "packed_file.h"

#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>
#include <tessera/npy.h>
#include <tessera/npz.h>
#include <tessera/place.h>
#include <tessera/raw_array.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "file_chunks.h"

namespace tessera {

namespace {

Packed packed_npy(const ByteSource& bytes, std::uint64_t begin) {
    const NpyHeader h = read_npy_header(bytes);
    return {h.dtype, h.shape, h.order, begin + h.data_offset};
}

std::vector<std::pair<std::string, Packed>> packed_npz(const ArrayPath& path, const OnRefusal& refused) {
    const std::string file = path.path.string();
    const std::optional<std::string>& wanted = path.member;
    if (path.is_elsewhere()) {
        throw unsupported("{}: the bytes of an archive's members are found only on this machine", file);
    }
    const ZipReader zip(file);
    std::vector<std::pair<std::string, Packed>> arrays;
    bool found = false;
    for (std::size_t i = 0; i < zip.members().size(); ++i) {
        const ZipMember& member = zip.members()[i];
        if (!member.name.ends_with(".npy")) continue;
        const std::string name = member.name.substr(0, member.name.size() - 4);
        if (wanted && name != *wanted && member.name != *wanted) continue;
        const auto again = [&](const ZipMember& m) { return m.name == member.name; };
        if (std::any_of(zip.members().begin() + static_cast<std::ptrdiff_t>(i) + 1, zip.members().end(), again)) {
            continue;  // of several members with one name the last is read
        }
        found = true;
        unless_refused(refused, [&] {
            if (!member.stored) throw unsupported("{}::{}: is deflated", file, name);
            const std::uint64_t begin = zip.stored_offset(i);
            arrays.emplace_back(name, packed_npy(*zip.open(i), begin));
        });
    }
    if (!found) throw not_found("{} has no array '{}'", file, wanted.value_or(""));
    return arrays;
}

}  // namespace

void unless_refused(const OnRefusal& refused, const std::function<void()>& add) {
    if (!refused) return add();
    try {
        add();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported) throw;
        refused(e);
    }
}

Index piece_index(const ChunkGrid& grid, std::int64_t n, Order order) {
    Index piece = Index::filled(grid.shape().rank(), 0);
    for (int i = 0; i < piece.rank(); ++i) {
        const int d = order == Order::C ? piece.rank() - 1 - i : i;
        piece[d] = n % grid.grid()[d];
        n /= grid.grid()[d];
    }
    return piece;
}

namespace {

std::vector<PackedArray> packed_by(const ArrayFileFormat& format, const ArrayPath& path, const OnRefusal& refused) {
    const auto members = path.member || !refused ? std::vector<std::string>{} : array_members(format, path);
    if (members.empty()) return format.packed(path);
    std::vector<PackedArray> arrays;
    for (const std::string& member : members) {
        ArrayPath one = path;
        one.member = member;
        unless_refused(refused, [&] { std::ranges::move(format.packed(one), std::back_inserter(arrays)); });
    }
    return arrays;
}

Packed packed_of(PackedArray a) {
    Packed packed{a.dtype, a.shape, Order::C, a.offset, a.row_stride, a.attributes};
    if (!a.chunks.empty()) {
        packed.attributes = chunked_attributes(a);
        packed.chunked = std::make_shared<const PackedArray>(std::move(a));
    }
    return packed;
}

}  // namespace

std::vector<std::pair<std::string, Packed>> packed_arrays(const Located& at, const OnRefusal& refused) {
    const std::string file = at.file.path.string();
    // For a missing file, its name decides which error is thrown.
    const ArrayFileFormat* const format = at.kind == PathKind::nothing ? named_array_file_format(at.path) : at.format;
    if (at.kind == PathKind::other) static_cast<void>(at.file.bytes());  // throws unless it is a regular file
    if (format == nullptr) static_cast<void>(find_place(at.file.path));  // throws, naming what is there
    if (format != nullptr && format->name == "npz") return packed_npz(at.file, refused);
    if (format != nullptr && format->packed != nullptr) {
        std::vector<std::pair<std::string, Packed>> arrays;
        for (PackedArray& a : packed_by(*format, at.file, refused)) {
            const std::string name = a.name;
            arrays.emplace_back(name, packed_of(std::move(a)));
        }
        if (arrays.empty() && !refused) throw not_found("{} has no array '{}'", file, at.file.member.value_or(""));
        return arrays;
    }
    if (format == nullptr || (format->name != "npy" && format->name != "ra")) {
        throw unsupported(file + ": does not hold its elements as one array in plain bytes");
    }
    const auto bytes = at.file.bytes();
    if (format->name == "npy") return {{"", packed_npy(*bytes, 0)}};
    const RawArrayHeader h = read_raw_array_header(*bytes);
    if (h.encoding != RawArrayEncoding::plain) {
        throw unsupported("{}: its elements are encoded ({})", file, to_string(h.encoding));
    }
    return {{"", {h.dtype, h.dims, Order::F, h.data_offset}}};
}

std::string name_elsewhere(const std::filesystem::path& url) {
    const std::string& text = url.native();
    const std::size_t query = text.find('?');
    if (query == std::string::npos) return text;
    throw invalid_argument("{}: references would hold the query of this URL, which may be a secret",
                           text.substr(0, query));
}

Value packed_document(const Packed& array, const Shape& chunks) {
    ArrayMetadata m;
    m.dtype = array.dtype;
    m.shape = array.shape;
    m.chunks = chunks;
    const Dialect& dialect = dialect_named("v2");
    m.keys = dialect.default_keys();
    m.codecs = complete_codecs(m.dtype, m.shape.rank(), array.order, {});
    return dialect.document(m);
}

std::vector<std::int64_t> divisors(std::int64_t number) {
    std::vector<std::int64_t> low;
    std::vector<std::int64_t> high;
    for (std::int64_t n = 1; n <= number / n; ++n) {
        if (number % n != 0) continue;
        low.push_back(n);
        if (n != number / n) high.push_back(number / n);
    }
    low.insert(low.end(), high.rbegin(), high.rend());
    return low;
}

}  // namespace tessera
