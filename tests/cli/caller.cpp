// One call of the library on a path, as a stranger's program would make it: caller CALL PATH. What it throws as an
// Error is an answer (exit 2), anything else is not (it ends the program).
#include <tessera/tessera.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using namespace tessera;
namespace fs = std::filesystem;

namespace {

/// A region of one element.
Region first(const Array& array) {
    return {Index::filled(array.shape().rank(), 0), Shape::filled(array.shape().rank(), 1)};
}

void write_first(Array array) {
    const NDArray one = array.read(first(array));
    array.write(first(array), one);
}

void edit(const fs::path& path) {
    Edit batch(Array::open(path));
    write_first(batch.array());
    batch->attributes().set("edited", true);
    (void)batch.commit();
}

const std::map<std::string, void (*)(const fs::path&)> calls{
    {"open", [](const fs::path& path) { (void)Array::open(path).read(first(Array::open(path))); }},
    {"open_read_only", [](const fs::path& path) { (void)Array::open(path, {.read_only = true}); }},
    {"write", [](const fs::path& path) { write_first(Array::open(path)); }},
    {"cached",
     [](const fs::path& path) {
         const Array array = Array::open(path);
         CachedArray cached(array);
         cached.write(first(array), cached.read(first(array)));
         cached.flush();
     }},
    {"edit", edit},
    {"undo", [](const fs::path& path) { (void)undo(Array::open(path)); }},
    {"resize",
     [](const fs::path& path) {
         Array array = Array::open(path);
         array.resize(Shape::filled(array.shape().rank(), 1));
     }},
    {"remove_all",
     [](const fs::path& path) {
         Group group = Group::open(path);
         for (const Node& node : group.children()) group.remove(node.path, {.recursive = true});
     }},
    {"move_all",
     [](const fs::path& path) {
         Group group = Group::open(path);
         for (const Node& node : group.children()) group.move(node.path, "moved-" + node.path);
     }},
    {"write_all",
     [](const fs::path& path) {
         const Group group = Group::open(path);
         for (const Node& node : group.nodes()) {
             if (node.kind == NodeKind::array) write_first(group.open_array(node.path));
         }
     }},
    {"repair", [](const fs::path& path) { (void)repair(directory_store(path)); }},
    {"verify", [](const fs::path& path) { (void)verify(directory_store(path, {.read_only = true})); }},
    {"snapshot", [](const fs::path& path) { (void)create_snapshot(path, "by-call"); }},
    {"unsnapshot", [](const fs::path& path) { remove_snapshot(path, "s"); }},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc == 1) {
        for (const auto& [name, call] : calls) std::puts(name.c_str());
        return 0;
    }
    try {
        calls.at(argv[1])(argv[2]);
        return 0;
    } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
