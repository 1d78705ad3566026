#include <tessera/temporary_file.h>

#include <stdio.h>
#include <tessera/byte_io.h>
#include <tessera/system_calls.h>
#include <unistd.h>

#include <cerrno>

namespace tessera {

TemporaryFile::TemporaryFile(int folder, mode_t mode, std::string_view below) : folder_(folder) {
    do {
        temporary_ = temporary_name();
        if (!below.empty()) temporary_.insert(0, "/").insert(0, below);
        file_ = Descriptor(open_at(folder, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode));
        // EEXIST: left by a crashed process that had the same number.
    } while (!file_ && errno == EEXIST);
    if (!file_) temporary_.clear();
}

TemporaryFile::~TemporaryFile() {
    if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
}

bool TemporaryFile::sync() const {
    return ::fdatasync(file_.get()) == 0;
}

bool TemporaryFile::close() {
    errno = file_.close();
    return errno == 0;
}

bool TemporaryFile::rename(const char* name) {
    if (::renameat(folder_, temporary_.c_str(), folder_, name) != 0) return false;
    temporary_.clear();
    return true;
}

bool TemporaryFile::rename_new(const char* name) {
    // Unlike renameat2() with RENAME_NOREPLACE, every file system with hard links has this.
    if (::linkat(folder_, temporary_.c_str(), folder_, name, 0) == 0) return true;
    if (errno == EEXIST || !os::rename_new(folder_, temporary_.c_str(), folder_, name)) return false;
    temporary_.clear();
    return true;
}

}  // namespace tessera
