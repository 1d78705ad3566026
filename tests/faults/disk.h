// A disk that forgets: what a power failure may leave of what a program wrote.
//
// interpose.cpp traces what a program changes and what it makes durable. A Disk plays such a trace and keeps, beside
// what everybody sees, what is certain to survive: the bytes of a file as of its last sync, the names in a directory as
// of its last sync. Of everything else any part may be there after a power failure: each change of a name (a rename is
// one change) or not, a file's later bytes, a part of them, zeros in their place, or none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tessera::faults {

class Disk {
public:
    /// What lies in this directory now, all of it durable.
    explicit Disk(std::filesystem::path root);

    /// Plays one line of a trace. Returns whether it changed what may be found after a power failure.
    bool play(const std::string& line);
    [[nodiscard]] int acknowledged() const { return acknowledged_; }

    enum class Kept : std::uint8_t { nothing, everything, some };
    /// What lies below the directory: paths to bytes, or to nothing for a directory.
    using Tree = std::map<std::string, std::optional<std::string>>;
    /// What a power failure at this moment leaves: of what is not durable nothing, everything, or what `random` says.
    [[nodiscard]] Tree after_power_failure(Kept kept, std::mt19937& random) const;
    [[nodiscard]] static std::size_t hash(const Tree& tree);
    /// Makes `target` anew with this in it.
    static void write(const Tree& tree, const std::filesystem::path& target);

private:
    struct Node {
        bool directory = false;
        std::string bytes, durable_bytes;
        std::map<std::string, std::shared_ptr<Node>> names, durable_names;
    };
    using NodePtr = std::shared_ptr<Node>;
    /// A name that was set, or removed (no node).
    struct Name {
        NodePtr directory;
        std::string name;
        NodePtr node;
    };
    using Change = std::vector<Name>;

    [[nodiscard]] Name place(const std::string& path) const;
    [[nodiscard]] NodePtr there(const Name& name) const;
    [[nodiscard]] NodePtr load(const std::filesystem::path& path);
    void change(Change change);
    void sync(const NodePtr& node);
    using Names = std::map<std::string, NodePtr>;
    static void collect(const Node& node, const std::string& path, Kept kept, std::mt19937& random,
                        const std::map<const Node*, Names>& names, Tree& tree);

    std::filesystem::path root_path_;
    std::map<unsigned long, NodePtr> inodes_;  ///< numbers are used again: of the last file that had one
    NodePtr root_;                             ///< after inodes_, which loading it fills
    std::vector<Change> pending_;              ///< changes of names that are not durable, in order
    int acknowledged_ = 0;
};

}  // namespace tessera::faults
