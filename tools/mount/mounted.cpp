#include "mounted.h"

#include <fmt/format.h>
#include <tessera/array_file.h>
#include <tessera/cached_array.h>
#include <tessera/error_text.h>
#include <tessera/file_attributes.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include <root.h>

namespace tessera::mount {

/// An array that files are open for writing of.
struct WrittenArray {
    WrittenArray(Array opened, std::uint64_t budget) : array(std::move(opened), budget) {}

    CachedArray array;
    std::mutex turn;  ///< held while elements are changed of which the system writes a part
};

namespace {

constexpr std::string_view readme_name = "README.txt", errors_name = ".tessera-errors";
constexpr std::string_view npy_end = ".npy", netcdf_end = ".nc", zarr_end = ".zarr";
constexpr std::size_t most_error_bytes = std::size_t{1} << 20U;
/// The part of the memory that is for decoded chunks, and for those that are being written.
constexpr std::uint64_t share_kept = 2, share_written = 4;

/// The name of a stored array or group without an extension that says what it is.
std::string_view plain_name(std::string_view name) {
    for (const std::string_view end : {zarr_end, npy_end}) {
        if (name.ends_with(end) && name.size() > end.size()) return name.substr(0, name.size() - end.size());
    }
    return name;
}

/// A name that a folder can hold.
bool can_be_shown(std::string_view name) {
    return !name.empty() && name.size() <= 255 && name.front() != '.' && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
}

class TextFile final : public OpenFile {
public:
    explicit TextFile(serve::HttpBody body) : body_(std::move(body)) {}
    [[nodiscard]] std::uint64_t size() const override { return body_.size(); }
    std::size_t read(std::uint64_t offset, MutableByteSpan out) override {
        if (offset >= body_.size()) return 0;
        const std::size_t n = std::min<std::uint64_t>(out.size(), body_.size() - offset);
        body_.read(offset, out.first(n));
        return n;
    }
    void write(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
        throw invalid_argument("only .npy files can be written");
    }
    void flush() override {}

private:
    serve::HttpBody body_;
};

class ArrayBytes final : public OpenFile {
public:
    ArrayBytes(std::shared_ptr<const LaidOutFile> file, std::shared_ptr<WrittenArray> written)
        : file_(std::move(file)), written_(std::move(written)) {}
    [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
    [[nodiscard]] bool writable() const override { return written_ != nullptr; }
    std::size_t read(std::uint64_t offset, MutableByteSpan out) override {
        if (offset >= file_->size()) return 0;
        const std::size_t n = std::min<std::uint64_t>(out.size(), file_->size() - offset);
        file_->read(offset, out.first(n));
        return n;
    }
    void write(std::uint64_t offset, ByteSpan bytes) override {
        if (!written_) throw invalid_argument("{}: it is not open for writing", file_->name());
        const std::lock_guard lock(written_->turn);
        file_->write(offset, bytes, written_->array);
    }
    void flush() override {
        if (written_) written_->array.flush();
    }

private:
    std::shared_ptr<const LaidOutFile> file_;
    std::shared_ptr<WrittenArray> written_;
};

/// What a format without bfloat16 has in its place; else the source itself.
std::shared_ptr<const ArraySource> convertible(std::shared_ptr<const ArraySource> source, const std::string& file) {
    struct Both {
        std::shared_ptr<const ArraySource> from;
        std::unique_ptr<ArraySource> to;
    };
    if (source->info().dtype.kind() != Kind::bfloat16) return source;
    auto both = std::make_shared<Both>(Both{std::move(source), nullptr});
    both->to = convert_for_array_file({.path = file}, *both->from);
    return {both, both->to.get()};
}

/// Why the elements of a dtype have no place in a file of a known size; "" if they have.
std::string_view why_without_place(const DType& dtype) {
    if (dtype.is_variable()) return "text of variable length has no fixed place in a file; read it below .zarr";
    if (dtype.kind() == Kind::object) return "Python objects have no fixed place in a file";
    return "";
}

const ArrayFileFormat& format_named(std::string_view name) {
    const auto formats = array_file_formats();
    return *std::ranges::find(formats, name, &ArrayFileFormat::name);
}

std::optional<serve::NodePointer> node_at(serve::Served& served, const std::string& path) {
    try {
        return served.node(path);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::not_found) throw;
        return std::nullopt;
    }
}

/// The arrays of a netCDF file.
struct NetcdfParts {
    std::vector<FileArray> arrays;
    std::vector<std::shared_ptr<const ArraySource>> sources;

    /// Throws unsupported.
    void add(const std::string& name, std::shared_ptr<const ArraySource> stored) {
        const std::shared_ptr<const ArraySource> source = convertible(std::move(stored), "x.nc");
        const ArrayInfo info = source->info();
        if (const auto why = why_without_place(info.dtype); !why.empty()) throw unsupported("{}", why);
        if (info.dtype.kind() == Kind::text) throw unsupported("netCDF-3 has no text but of bytes; read it as .npy");
        FileArray array{name, info.dtype, info.shape, attributes_with_names(model_of(*source))};
        (void)format_named("netcdf3").layout(std::span(&array, 1), {.name = ""}, Order::C);
        arrays.push_back(std::move(array));
        sources.push_back(source);
    }
    [[nodiscard]] FileLayout layout(const ArrayFileGroup& group) const {
        return format_named("netcdf3").layout(arrays, group, Order::C);
    }
};

}  // namespace

Mounted::Mounted(const std::string& path, const MountOptions& options)
    : options_(options),
      served_({path}, {.io = options.io, .max_memory = options.max_memory, .follow_links = options.follow_links}),
      blocks_(options.max_memory / share_kept) {
    std::string_view name = path;
    while (name.ends_with('/')) name.remove_suffix(1);
    name.remove_prefix(name.rfind('/') + 1);
    if (const std::size_t member = name.rfind("::"); member != std::string_view::npos) name.remove_prefix(member + 2);
    base_ = std::filesystem::path(name).stem().string();
    if (!can_be_shown(base_)) base_ = "data";
    is_array_ = served_.node("")->is_array();
    options_.io.max_memory = options.max_memory;
}
Mounted::~Mounted() = default;

std::optional<serve::NodePointer> Mounted::folder_at(const std::string& path) {
    return folders_.get(path, [&] {
        const auto node = node_at(served_, path);
        return node && !(*node)->is_array() ? node : std::nullopt;
    });
}

void Mounted::note_error(const std::string& path, std::string_view message) {
    const std::lock_guard lock(mutex_);
    if (errors_.size() > most_error_bytes) return;
    errors_ += fmt::format("{}: {}\n", path, served_.shown_text(message));
}

void Mounted::leave_out(const std::string& what, std::string_view why) {
    const std::lock_guard lock(mutex_);
    if (left_out_.size() < 10'000) left_out_.insert_or_assign(what, std::string(why));
}

std::vector<Mounted::Child> Mounted::children(const std::string& path) {
    if (path.empty() && is_array_) return {{base_, "", true}};
    const auto folder = folder_at(path);
    if (!folder) throw not_found("nothing is here");
    std::vector<Child> all;
    std::set<std::string> seen;
    std::map<std::string, std::string> small_names;
    for (const serve::ServedChild& child : served_.children(**folder)) {
        const std::string& name = child.name;
        const bool array = child.kind == serve::ServedKind::array || child.kind == serve::ServedKind::member ||
                           child.kind == serve::ServedKind::file;
        const std::string node = join_key(path, name);
        const std::string shown(array ? plain_name(name) : name);
        std::string small = shown;
        std::ranges::transform(small, small.begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const auto [same, alone] = small_names.try_emplace(small, shown);
        if (!alone && same->second != shown) {
            leave_out(node,
                      fmt::format("shown, but {} differs in case alone, which some systems do not tell", same->second));
        }
        if (!can_be_shown(name)) {
            leave_out(node, "its name cannot be that of a file");
        } else if (seen.insert((array ? "a" : "g") + shown).second) {
            all.push_back({shown, node, array});
        } else if (array) {
            leave_out(node, fmt::format("another array is shown as {}", shown));
        }
    }
    return all;
}

std::vector<Mounted::Child> Mounted::arrays_of(const std::string& node) {
    std::vector<Child> all = children(node);
    std::erase_if(all, [](const Child& child) { return !child.array; });
    return all;
}

std::vector<Listed> Mounted::shown_in(const std::string& node) {
    const std::vector<Child> all = children(node);
    std::vector<Listed> listed;
    std::set<std::string> folders;
    for (const Child& child : all) {
        if (!child.array) folders.insert(child.name);
    }
    const auto add = [&](const std::string& name, bool folder, const std::string& of) {
        if (!folder || folders.insert(name).second) {
            if (folder || !folders.contains(name)) return listed.push_back({name, folder});
        }
        leave_out(fmt::format("{} of {}", name, of), "a group has this name");
    };
    for (const Child& child : all) {
        if (child.array) {
            add(child.name + std::string(npy_end), false, child.node);
            add(child.name + std::string(zarr_end), true, child.node);
        } else {
            listed.push_back({child.name, true});
            if (!arrays_of(child.node).empty()) add(child.name + std::string(netcdf_end), false, child.node);
        }
    }
    return listed;
}

std::optional<std::string> Mounted::node_shown_as(const std::string& name, std::string_view extension,
                                                  const std::string& folder) {
    if (!name.ends_with(extension) || name.size() == extension.size()) return std::nullopt;
    const std::string stem = name.substr(0, name.size() - extension.size());
    const bool of_group = extension == netcdf_end;
    if (!is_array_) {
        for (const std::string_view end : {std::string_view(), npy_end, zarr_end}) {
            const std::string node = join_key(folder, stem + std::string(end));
            if (of_group && folder_at(node)) return node;
            const auto found = of_group ? std::nullopt : node_at(served_, node);
            if (found && (*found)->is_array()) return node;
        }
    }
    const bool whole = folder.empty() && stem == base_ && (is_array_ || extension != npy_end);
    return whole ? std::optional<std::string>("") : std::nullopt;
}

Mounted::Target Mounted::named(const std::string& name, const std::string& folder, std::vector<std::string> below) {
    Target target = named_
                        .get(join_key(folder, name),
                             [&]() -> std::optional<Target> {
                                 if (const auto node = node_shown_as(name, zarr_end, folder))
                                     return Target{Kind::zarr, *node, {}};
                                 if (const auto node = node_shown_as(name, npy_end, folder))
                                     return Target{Kind::npy, *node, {}};
                                 if (const auto node = node_shown_as(name, netcdf_end, folder))
                                     return Target{Kind::netcdf, *node, {}};
                                 return {};
                             })
                        .value_or(Target{});
    if (target.kind != Kind::zarr) return below.empty() ? target : Target{};
    target.parts = std::move(below);
    return target;
}

Mounted::Target Mounted::resolve(const std::string& path) {
    if (path == readme_name) return {Kind::readme, "", {}};
    if (path == errors_name) return {Kind::errors, "", {}};
    std::vector<std::string> parts = serve::parts_of(path);
    std::string folder;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!can_be_shown(parts[i])) return {};
        const std::string deeper = join_key(folder, parts[i]);
        if (is_array_ || !folder_at(deeper)) {
            return named(parts[i], folder, {parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end()});
        }
        folder = deeper;
    }
    return {Kind::folder, folder, {}};
}

bool Mounted::can_write(const std::string& node) {
    const serve::NodePointer at = served_.node(node);
    if (!options_.write || !at->array) return false;
    const Place own = find_place(at->name);
    if (own.store->read_only()) return false;
    try {
        own.store->require_unsealed(own.prefix);
        return true;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::sealed) throw;
        return false;
    }
}

std::shared_ptr<WrittenArray> Mounted::written(const std::string& node) {
    const std::lock_guard lock(mutex_);
    std::erase_if(written_, [](const auto& one) { return one.second.expired(); });
    if (const auto found = written_.find(node); found != written_.end()) {
        if (auto open = found->second.lock()) return open;
    }
    // All of them together take less than half of the memory, however many there are.
    const std::uint64_t most = options_.max_memory / share_written >> std::min<std::size_t>(written_.size(), 16);
    // What is shown was opened for reading.
    auto made = std::make_shared<WrittenArray>(Array::open(served_.node(node)->name), most);
    written_[node] = made;
    return made;
}

Mounted::File Mounted::npy_of(const std::string& path) {
    const serve::NodePointer node = served_.node(path);
    std::shared_ptr<const ArraySource> source;
    {
        const std::lock_guard lock(mutex_);
        const auto found = written_.find(path);
        if (found != written_.end()) {
            if (auto open = found->second.lock()) source = {open, &open->array};
        }
    }
    if (!source) source = cached_source(node, blocks_);
    const ArrayInfo info = source->info();
    if (const auto why = why_without_place(info.dtype); !why.empty()) throw unsupported("{}: {}", node->name, why);
    source = convertible(std::move(source), "x.npy");
    const std::array array{FileArray{.name = path, .dtype = source->info().dtype, .shape = info.shape}};
    FileLayout layout = format_named("npy").layout(array, {.name = ""}, options_.order);
    return std::make_shared<LaidOutFile>(node->name, std::move(layout), std::vector{std::move(source)}, options_.io);
}

Mounted::File Mounted::netcdf_of(const std::string& path) {
    const ArrayFileGroup group = served_.node(path)->group();
    NetcdfParts parts;
    const auto unless_left_out = [&](const std::string& node, const auto& body) {
        try {
            body();
            return true;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
            leave_out(fmt::format("{} in its .nc", node), e.what());
            return false;
        }
    };
    for (const Child& child : arrays_of(path)) {
        unless_left_out(child.node, [&] { parts.add(child.name, cached_source(served_.node(child.node), blocks_)); });
    }
    FileLayout layout;
    try {
        layout = parts.layout(group);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported) throw;
        // One by one, to find those that do not fit.
        NetcdfParts fitting;
        for (std::size_t i = 0; i < parts.sources.size(); ++i) {
            NetcdfParts more = fitting;
            more.arrays.push_back(parts.arrays[i]);
            more.sources.push_back(parts.sources[i]);
            if (unless_left_out(parts.arrays[i].name, [&] { layout = more.layout(group); })) fitting = std::move(more);
        }
        parts = std::move(fitting);
    }
    if (parts.sources.empty()) throw unsupported("none of the arrays has a place in netCDF-3; README.txt says why");
    const std::string name = path.empty() ? base_ : path;
    return std::make_shared<LaidOutFile>(name, std::move(layout), std::move(parts.sources), options_.io);
}

Mounted::File Mounted::made_of(const Target& target) {
    return target.kind == Kind::npy ? npy_of(target.node) : netcdf_of(target.node);
}

Mounted::File Mounted::file_of(const Target& target) {
    const std::string key = fmt::format("{}{}", target.kind == Kind::npy ? 'a' : 'g', target.node);
    return *made_.get(key, [&] { return std::optional(made_of(target)); });
}

ZarrFolder Mounted::zarr_at(const Target& target) {
    const auto folder = folder_at(target.node);
    return {served_, folder ? *folder : served_.node(target.node), options_.zarr};
}

std::string Mounted::readme() {
    std::string text = fmt::format(
        "Shown by Tessera; nothing of this is stored here.\n\n"
        "NAME.npy   the elements of an array, for NumPy and all that maps files{}\n"
        "NAME.zarr  the array as Zarr {}, for zarr, xarray and others\n"
        "NAME.nc    the arrays of a group with their coordinates and attributes, as netCDF-3\n\n"
        "Values that cannot be read are errors here, never zeros; {} tells them.\n"
        "To end it: Ctrl-C where it was started, or fusermount3 -u FOLDER\n",
        options_.write ? "; they can be written" : "", options_.zarr, errors_name);
    const std::lock_guard lock(mutex_);
    if (!left_out_.empty()) text += "\nNot shown, or to be known, of what was looked at:\n";
    for (const auto& [what, why] : left_out_) text += fmt::format("  {}: {}\n", what, why);
    return text;
}

std::optional<Entry> Mounted::look(const std::string& path) {
    const MemoryScope scope(memory());
    const Target target = resolve(path);
    switch (target.kind) {
        case Kind::none:
            return std::nullopt;
        case Kind::folder:
            return Entry{.folder = true};
        case Kind::zarr:
            return zarr_at(target).look(target.parts);
        case Kind::readme:
            return Entry{.changing = true, .size = readme().size()};
        case Kind::errors: {
            const std::lock_guard lock(mutex_);
            return Entry{.changing = true, .size = errors_.size()};
        }
        default:
            break;
    }
    try {
        return Entry{.writable = target.kind == Kind::npy && can_write(target.node), .size = file_of(target)->size()};
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported) throw;
        leave_out(path, e.what());
        return Entry{.changing = true};
    }
}

std::vector<Listed> Mounted::list(const std::string& path) {
    const MemoryScope scope(memory());
    const Target target = resolve(path);
    if (target.kind == Kind::zarr) return zarr_at(target).list(target.parts);
    if (target.kind != Kind::folder) throw not_found("nothing is here");
    std::vector<Listed> listed = shown_in(target.node);
    if (!path.empty()) return listed;
    const auto add = [&](std::string name, bool folder) {
        if (std::ranges::find(listed, name, &Listed::name) == listed.end()) listed.push_back({std::move(name), folder});
    };
    if (!is_array_) add(base_ + std::string(zarr_end), true);
    if (!arrays_of("").empty()) add(base_ + std::string(netcdf_end), false);
    add(std::string(readme_name), false);
    add(std::string(errors_name), false);
    return listed;
}

std::unique_ptr<OpenFile> Mounted::open(const std::string& path, bool to_write) {
    const MemoryScope scope(memory());
    const Target target = resolve(path);
    switch (target.kind) {
        case Kind::zarr:
            return std::make_unique<TextFile>(zarr_at(target).read(target.parts));
        case Kind::readme:
            return std::make_unique<TextFile>(serve::HttpBody(readme()));
        case Kind::errors: {
            const std::lock_guard lock(mutex_);
            return std::make_unique<TextFile>(serve::HttpBody(errors_));
        }
        case Kind::npy:
            if (to_write) {
                auto array = written(target.node);
                return std::make_unique<ArrayBytes>(npy_of(target.node), std::move(array));
            }
            [[fallthrough]];
        case Kind::netcdf:
            // Not a file of a moment ago, which takes chunks for what they were.
            return std::make_unique<ArrayBytes>(made_of(target), nullptr);
        default:
            throw not_found("nothing is here");
    }
}

}  // namespace tessera::mount
