// A folder for temporary files, which goes with all that is in it.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <tessera/error.h>

namespace tessera {

class TemporaryFolder {
public:
    /// A new one in `above`. Throws io.
    explicit TemporaryFolder(const std::filesystem::path& above) {
        std::string name = (above / "tessera-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw io_error("cannot make a temporary directory", name, errno);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace tessera
