// How a file appears at once: written whole under a temporary name, in the folder where it gets its own.
#pragma once

#include <sys/types.h>
#include <tessera/descriptor.h>

#include <string>
#include <string_view>
#include <utility>

namespace tessera {

/// A file being written under a temporary_name(). Destroyed without another name, it is removed.
/// Thread rule: file() may be written to from several threads at once; all else is for one.
/// Members that return bool return false, and set errno, if that fails.
class TemporaryFile {
public:
    TemporaryFile() = default;
    /// In the folder `below` the open one `folder`, which must stay open, or AT_FDCWD. Tests false, with errno, if it
    /// cannot be made.
    TemporaryFile(int folder, mode_t mode, std::string_view below = {});
    TemporaryFile(TemporaryFile&& o) noexcept
        : folder_(o.folder_), file_(std::move(o.file_)), temporary_(std::exchange(o.temporary_, {})) {}
    TemporaryFile& operator=(TemporaryFile&& o) noexcept {
        std::swap(folder_, o.folder_);
        std::swap(file_, o.file_);
        std::swap(temporary_, o.temporary_);
        return *this;
    }
    ~TemporaryFile();

    explicit operator bool() const { return static_cast<bool>(file_); }
    [[nodiscard]] int folder() const { return folder_; }
    /// The open descriptor.
    [[nodiscard]] int file() const { return file_.get(); }
    /// Its path from the open folder.
    [[nodiscard]] const std::string& name() const { return temporary_; }

    /// Waits until the bytes are on the disk. Comes before the name: a power failure must not cost the old file and the
    /// new one.
    [[nodiscard]] bool sync() const;
    /// Ends the writing, before the file gets its name: what the system could not write shows here.
    [[nodiscard]] bool close();
    /// Gives the file its name, a path from the open folder to the same one, and replaces what has it.
    [[nodiscard]] bool rename(const char* name);
    /// The same unless something has the name: then false, and EEXIST.
    [[nodiscard]] bool rename_new(const char* name);
    /// Leaves the file as it is to the caller. Returns its path.
    [[nodiscard]] std::string release() { return std::exchange(temporary_, {}); }

private:
    int folder_ = -1;
    Descriptor file_;
    std::string temporary_;
};

}  // namespace tessera
