#include "served.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/group.h>

#include <algorithm>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <utility>

#include "root.h"
#include "zarr_array.h"

namespace tessera::serve {

namespace {

/// Arrays that are kept open.
constexpr std::size_t most_open = 64;
/// Granted in addition to --max-memory, for small objects.
constexpr std::uint64_t beside = std::uint64_t{1} << 20U;

/// Whether a character may be part of a path, so that what stands next to it is only a piece of another path.
bool in_path(char c) {
    return std::string_view(" \t\n\"'`,;:()[]{}<>=").find(c) == std::string_view::npos;
}

/// Replaces a path where it stands alone or begins a longer one, there with the '/' after it.
void replace_path(std::string& text, const std::string& path, const std::string& alone, const std::string& before) {
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path, at)) {
        const std::size_t end = at + path.size();
        const bool begins = at == 0 || !in_path(text[at - 1]);
        const bool longer = end < text.size() && text[end] == '/';
        if (!begins || (!longer && end < text.size() && in_path(text[end]))) {
            at = end;
            continue;
        }
        const std::string& with = longer ? before : alone;
        text.replace(at, path.size() + (longer ? 1 : 0), with);
        at += with.size();
    }
}

}  // namespace

struct ServedState {
    struct Named {
        std::string name;
        std::unique_ptr<Root> root;
    };
    std::vector<Named> roots;
    std::mutex mutex;
    std::list<NodePointer> open;  ///< arrays, the last used one first

    /// The root that a path lies in, and the rest of the path below it; null for the group above several roots.
    [[nodiscard]] std::pair<const Root*, std::string_view> find(std::string_view path) const {
        if (roots.size() == 1) return {roots.front().root.get(), path};
        if (path.empty()) return {nullptr, path};
        const std::size_t slash = std::min(path.find('/'), path.size());
        const auto found = std::ranges::find(roots, path.substr(0, slash), &Named::name);
        if (found == roots.end()) throw not_found("nothing is here");
        return {found->root.get(), path.substr(std::min(slash + 1, path.size()))};
    }
};

std::string_view kind_name(ServedKind kind) {
    switch (kind) {
        case ServedKind::array:
            return "array";
        case ServedKind::file:
            return "array file";
        case ServedKind::member:
            return "member";
        default:
            return "group";
    }
}

const ArraySource& ServedNode::source() const {
    if (array) return *array;
    if (!file) throw invalid_argument("{}: no array", path);
    return *file;
}

bool ServedNode::stamps_chunks() const {
    return !array || array->metadata().edges.empty();
}

std::optional<ValueStamp> ServedNode::stamp_of(const Index& chunk) const {
    if (!values) {
        ValueStamp stamp;
        stamp.by_content = true;  // the source reads one version of the file, even if its name leads to another later
        return stamp;
    }
    Index outer = chunk;
    const Shape unit = array->chunks();
    for (int d = 0; d < outer.rank(); ++d) outer[d] = chunk[d] * unit[d] / values->grid().chunks()[d];
    return values->stamp(outer);
}

ArrayFileGroup ServedNode::group() const {
    ArrayFileGroup found{.name = ""};
    if (is_array()) return found;
    if (place && !format.empty()) found.attributes = Group::open(*place).attributes().all();
    if (kind != ServedKind::files || file_format->groups == nullptr) return found;
    for (ArrayFileGroup& one : file_format->groups(*file_path)) {
        if (one.name == inner) found = std::move(one);
    }
    found.name.clear();
    return found;
}

Served::Served(const std::vector<std::string>& paths, const ServedOptions& options)
    : options_(options),
      memory_(std::make_shared<MemoryAccount>(options.max_memory, beside)),
      state_(std::make_unique<ServedState>()) {
    // For what is not counted: text, lists and the pictures of tiles, of all requests together.
    constexpr std::uint64_t share = 8;
    const MemoryScope scope(memory_);
    small_objects_.add(options.max_memory / share);
    if (paths.empty()) throw invalid_argument("there is nothing to serve");
    for (const std::string& path : paths) {
        auto root = std::make_unique<Root>(path, options.follow_links);
        std::string name = root->base_name();
        const auto taken = [&] { return std::ranges::find(state_->roots, name, &ServedState::Named::name); };
        for (int n = 2; taken() != state_->roots.end(); ++n) name = fmt::format("{}-{}", root->base_name(), n);
        state_->roots.push_back({std::move(name), std::move(root)});
    }
}
Served::~Served() = default;

NodePointer Served::cached(const std::string& path) {
    const std::lock_guard lock(state_->mutex);
    const auto found = std::ranges::find(state_->open, path, [](const NodePointer& n) { return n->path; });
    if (found == state_->open.end()) return nullptr;
    state_->open.splice(state_->open.begin(), state_->open, found);
    return state_->open.front();
}

void Served::keep(const NodePointer& node) {
    const std::lock_guard lock(state_->mutex);
    state_->open.remove_if([&](const NodePointer& n) { return n->path == node->path; });
    state_->open.push_front(node);
    if (state_->open.size() > most_open) state_->open.pop_back();
}

NodePointer Served::node(std::string_view path) {
    const std::string at(path);
    const auto [root, below] = state_->find(at);
    if (root == nullptr) {
        auto group = std::make_shared<ServedNode>();
        group->name = "what is served";
        return group;
    }
    if (NodePointer known = cached(at); known && root->version_of(*known) == known->version) return known;
    auto node = root->open(below, at);
    // If the node was replaced just now, its version may not be that of its metadata. The next request notices.
    if (!node->is_array()) return node;
    node->zarr = std::make_shared<ZarrArrays>(content_tag(std::as_bytes(std::span(node->version))));
    keep(node);
    return node;
}

std::vector<ServedChild> Served::children(const ServedNode& node) {
    const auto [root, below] = state_->find(node.path);
    if (root != nullptr) return root->children(node);
    std::vector<ServedChild> children;
    for (const ServedState::Named& named : state_->roots) {
        const auto top = named.root->open("", "");
        children.push_back({named.name, top->kind, top->format});
    }
    std::ranges::sort(children, {}, &ServedChild::name);
    return children;
}

std::string Served::shown_text(std::string_view message) const {
    std::string text(message);
    std::vector<const ServedState::Named*> inner_first;
    for (const ServedState::Named& named : state_->roots) inner_first.push_back(&named);
    std::ranges::sort(inner_first, std::greater(),
                      [](const auto* named) { return named->root->path().native().size(); });
    for (const ServedState::Named* named : inner_first) {
        const std::string& path = named->root->path().native();
        if (path == "/") continue;
        const bool several = state_->roots.size() > 1;
        replace_path(text, path, named->name, several ? named->name + "/" : "");
    }
    return utf8_text(text);
}

IoOptions Served::io(const HttpRequest& request) const {
    IoOptions io = options_.io;
    io.stop = request.stop;
    io.max_memory = options_.max_memory;
    return io;
}

}  // namespace tessera::serve
