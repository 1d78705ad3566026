// StoreKind: what kind of store a path leads to, by its scheme: "toy:survey/depth".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/key_value_store.h>
#include <tessera/row_function.h>

namespace tessera {

/// A kind of store, as a row in a table. A path that begins with the scheme of a row and ':' leads
/// there; every other path is one of this machine, also if it contains ':'. "./toy:x" is always a path of this machine.
struct StoreKind {
    std::string_view scheme;  ///< "toy"; empty for the folders and files of this machine
    std::string_view about;   ///< for messages: "folders of this machine"
    /// The place that such a path names, which need not exist; changes nothing. Joined with the prefix by '/', the
    /// store's name() is the path, so that what messages name can be typed. The locks of all stores of the same name
    /// exclude each other within the process. Throws invalid_argument for a path that names no place, and io.
    RowFunction<Place(const std::filesystem::path& path, const StoreOptions& options)> place;
    bool url = false;  ///< such a path is a URL: names in it are percent-encoded, and a query may follow
};

/// All kinds; the folders and files of this machine are the first. The first call ends add_store_kind().
[[nodiscard]] std::span<const StoreKind> store_kinds();
/// Adds a kind of store of a program's own to the table, for the whole process. Call it at the start: once anything was
/// opened or created by path, the table stays as it is, and this throws invalid_argument. So does a scheme that is
/// taken, or that is not made of two or more of a-z, 0-9, '+', '-' and '.', the first a letter. Whatever the row points
/// to has to stay until the process ends. SimpleStore makes most of a store from five functions. Any thread.
void add_store_kind(const StoreKind& kind);
/// The parts of a path "SCHEME:NAME/PREFIX", which the first '/' separates: the store, "SCHEME:NAME", and the prefix in
/// it. For the place() of kinds with such paths. Throws invalid_argument without a NAME, and for a PREFIX that is no
/// prefix.
[[nodiscard]] std::pair<std::string, std::string> split_store_path(const std::filesystem::path& path);
/// The kind of the place that a path names. Looks at nothing but the text.
[[nodiscard]] const StoreKind& store_kind_of(const std::filesystem::path& path);
/// The path of what has the name "sub/array" below another path.
[[nodiscard]] std::string path_below(std::string_view path, std::string_view name);
/// Whether a path is one of this machine.
[[nodiscard]] bool is_local(const std::filesystem::path& path);
/// Throws unsupported, naming `what` ("`snapshot`", "a bag"), if a path is not one of this machine.
void require_local(const std::filesystem::path& path, std::string_view what);

/// A KeyValueStore for values that are read and written as a whole: base of stores of a program's own (see
/// add_store_kind). Everything else of a KeyValueStore is made of the five functions below: versions are told apart by
/// the values' bytes, and the locks exclude the threads of this process, through all stores of the same name. Other
/// processes are not excluded.
/// Thread rule: the five functions are called from several threads at once. Keys are checked before. They report
/// failures as Error (ErrorCode::io).
class SimpleStore : public KeyValueStore {
public:
    /// `name` as a user writes it: "mem:survey". Of the options, read_only and break_seal are heeded.
    SimpleStore(std::string name, const StoreOptions& options);

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const final;
    void put(std::string_view key, ByteSpan value) final;
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) final;
    bool erase(std::string_view key) final;
    void erase_below(std::string_view prefix) final;
    bool replace(std::string_view from, std::string_view to) final;
    void move(std::string_view from, std::string_view to) final;
    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const final;
    [[nodiscard]] bool contains(std::string_view key) const final;
    [[nodiscard]] Listing list(std::string_view prefix) const final;
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const final;
    using KeyValueStore::for_each;
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) final;
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) final;
    void require_unsealed(std::string_view prefix) final;
    [[nodiscard]] bool read_only() const final { return options_.read_only; }
    [[nodiscard]] const std::string& name() const final { return name_; }

protected:
    /// The value of a key; nullopt if there is none.
    [[nodiscard]] virtual std::optional<Buffer> load(std::string_view key) const = 0;
    /// Sets a value, all at once: load() returns the old bytes or the new ones.
    virtual void store(std::string_view key, ByteSpan value) = 0;
    /// Removes a value; false if there was none.
    virtual bool remove(std::string_view key) = 0;
    /// All keys that begin with `prefix` and '/' (empty: all keys), in any order.
    [[nodiscard]] virtual std::vector<std::string> keys(std::string_view prefix) const = 0;
    /// The size of a value; nullopt if there is none. Override it if that takes less than loading the value.
    [[nodiscard]] virtual std::optional<std::uint64_t> size(std::string_view key) const;

private:
    void require_writable(std::string_view key) const;
    [[nodiscard]] std::string full_name(std::string_view key) const;

    std::string name_;
    StoreOptions options_;
    class LockTables& locks_;
};

// References as a store: a JSON document with the file and byte range of each value (kerchunk's references, version 1),
// opened for reading like a directory of these values.

struct ReferenceOptions {
    /// Whether references may lead out of the folder that the document lies in, by absolute paths, "..", links,
    /// or URLs of kinds of stores that there are (store_kinds()).
    bool allow_outside = false;
};

/// The store in a document of references. It is read-only; the document is never changed in place.
///
/// Such a document may come from a stranger, who must not gain access to files that he could not read himself. A value
/// is text in the document ("base64:…" for bytes), [file], or [file, offset, size]. Paths are relative to the folder of
/// the document; an absolute one has to lie below it. Without `allow_outside`, a path with a part ".." or through a
/// symbolic link is refused, and so are URLs and hidden files. Templates and generated references are never read. Each
/// byte range is checked against the file before it is read.
///
/// Throws io; corrupt if the file is not such a document; unsupported if it holds anything that is refused; and budget
/// if it takes more memory than the thread's account has left. Opening the key of a dangling reference throws: a value
/// that the document names never counts as absent.
[[nodiscard]] std::shared_ptr<KeyValueStore> reference_store(const std::filesystem::path& path,
                                                             const ReferenceOptions& options = {});

}  // namespace tessera
