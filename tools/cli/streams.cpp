#include "streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <tessera/array_file.h>
#include <tessera/copy.h>
#include <tessera/copy_array.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/npy.h>
#include <tessera/parallel.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "options.h"
#include "report.h"
#include "selected.h"

namespace tessera::cli {

namespace {

constexpr std::string_view stream_folder = "/dev/fd/";  // of <(…)

std::optional<int> descriptor_in(std::string_view path, std::string_view name, int standard) {
    if (path == "-" || path == name) return standard;
    if (!path.starts_with(stream_folder)) return {};
    path.remove_prefix(stream_folder.size());
    int number = 0;
    const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
    return error == std::errc() && end == path.data() + path.size() && number >= 0 ? std::optional(number)
                                                                                   : std::nullopt;
}

std::string stream_name(int descriptor) {
    if (descriptor == STDIN_FILENO) return "standard input";
    if (descriptor == STDOUT_FILENO) return "standard output";
    return fmt::format("{}{}", stream_folder, descriptor);
}

/// An open file that has no name any more.
class NamelessFile {
public:
    NamelessFile() {
        const char* chosen = std::getenv("TMPDIR");
        const std::filesystem::path parent = chosen != nullptr && *chosen != 0 ? chosen : "/var/tmp";
        std::string path = (parent / "tessera-XXXXXX").string();
        file_ = Descriptor(::mkostemp(path.data(), O_CLOEXEC));
        if (!file_) throw io_error("creating a temporary file in", parent.string(), errno);
        ::unlink(path.c_str());
    }
    void write(ByteSpan bytes) const {
        if (!write_all(file_.get(), bytes)) throw io_error("writing", "a temporary file", errno);
    }
    [[nodiscard]] std::unique_ptr<ByteSource> open() const {
        return open_file(fmt::format("/proc/self/fd/{}", file_.get()));
    }

private:
    Descriptor file_;
};

/// The next bytes; none at the end. Waits in steps, so that Ctrl-C ends it.
std::size_t read_some(int descriptor, MutableByteSpan out) {
    constexpr int step = 200;  // milliseconds
    for (;;) {
        require_not_stopped();
        pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
        const int ready = ::poll(&wait, 1, step);
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t n = ::read(descriptor, out.data(), out.size());
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) throw io_error("reading", stream_name(descriptor), errno);
        return static_cast<std::size_t>(n);
    }
}

const ArrayFileFormat& format_called(const std::string& name) {
    const auto formats = array_file_formats();
    const auto row = std::ranges::find(formats, name, &ArrayFileFormat::name);
    if (row == formats.end()) throw invalid_argument("--as: '{}' is no format of array files; npy and csv are", name);
    return *row;
}

class StreamSink final : public ByteSink {
public:
    explicit StreamSink(int descriptor) : descriptor_(descriptor), name_(stream_name(descriptor)) {}

    [[nodiscard]] bool random_access() const override { return false; }
    void append(ByteSpan bytes) override {
        if (descriptor_ == STDOUT_FILENO)
            return print_as_is({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        if (write_all(descriptor_, bytes)) return;
        if (errno == EPIPE) throw ClosedPipe();
        throw io_error("writing", name_, errno);
    }
    void write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {}  // never: see random_access()
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    int descriptor_;
    std::string name_;
};

}  // namespace

std::optional<int> input_stream(std::string_view path) {
    return descriptor_in(path, "/dev/stdin", STDIN_FILENO);
}

std::optional<int> output_stream(std::string_view path) {
    return descriptor_in(path, "/dev/stdout", STDOUT_FILENO);
}

std::shared_ptr<const ByteSource> read_stream(int descriptor) {
    const std::string name = stream_name(descriptor);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) throw io_error("reading", name, errno);
    std::unique_ptr<ByteSource> bytes;
    if (S_ISREG(status.st_mode) && ::lseek(descriptor, 0, SEEK_CUR) == 0) {
        bytes = open_file(fmt::format("/proc/self/fd/{}", descriptor));
    } else {
        if (::isatty(descriptor) != 0) {
            throw invalid_argument("{} is a terminal; an array file or a pipe is read from it: tessera … < x.npy",
                                   name);
        }
        const NamelessFile file;
        std::vector<std::byte> piece(std::size_t{256} << 10);
        while (const std::size_t n = read_some(descriptor, piece)) file.write(std::span(piece).first(n));
        bytes = file.open();
    }
    const std::uint64_t size = bytes->size();
    return slice_source(std::move(bytes), 0, size, name);
}

std::unique_ptr<ArraySource> open_stream(const std::shared_ptr<const ByteSource>& bytes,
                                         const std::optional<std::string>& as, const ArrayFileOptions& options) {
    const ArrayPath path{.path = bytes->name(), .member = std::nullopt, .opened = bytes};
    const ArrayFileFormat* const format = as ? &format_called(*as) : array_file_format_of(*bytes);
    if (format == nullptr) {
        throw unsupported("{}: its {} bytes do not begin as an array file does; --as csv reads them as text",
                          bytes->name(), bytes->size());
    }
    if (!format->ranged && format->recognise != nullptr) {
        throw unsupported("{}: a .{} cannot be read from a pipe; write it to a file first", bytes->name(),
                          format->name);
    }
    return as ? format->open(path, options) : open_array_file(path, options);
}

std::unique_ptr<ByteSink> stream_sink(int descriptor) {
    return std::make_unique<StreamSink>(descriptor);
}

int write_stream(Session& session, const TransferOptions& o, const ArraySource& source, int descriptor) {
    const std::string name = stream_name(descriptor);
    const std::string as = o.as.value_or("npy");
    if (as != "npy" && as != "csv") {
        (void)format_called(as);
        throw invalid_argument("--as: only npy and csv are written to {}, but found '{}'", name, as);
    }
    if (session.options().json && descriptor == STDOUT_FILENO) {
        throw invalid_argument("--json: the standard output is the array");
    }
    if (as == "npy" && ::isatty(descriptor) != 0) {
        throw invalid_argument("{} is a terminal, and a .npy is no text; --as csv, or `tessera get`, prints", name);
    }
    const ArrayFileOptions options{.object_strings = o.result.object_strings};
    IoOptions io = session.io();
    if (descriptor == STDOUT_FILENO) io.progress = nullptr;
    const auto convertible = as == "npy" ? convert_for_array_file({.path = "x.npy"}, source, options, io) : nullptr;
    const ArraySource& from = convertible ? *convertible : source;
    const ArrayInfo info = from.info();
    const auto& chosen = o.recipe.selection;
    const Selection selection = chosen ? chosen_part(session, o.source, *chosen, source) : Selection::all(info.shape);
    auto bytes = stream_sink(descriptor);
    const Order order = o.result.order.value_or(info.order);
    const auto sink = as == "csv" ? create_csv(std::move(bytes), info.dtype, selection.shape())
                                  : create_npy(std::move(bytes), info.dtype, selection.shape(), order);
    copy_array(from, *sink, {.io = io, .selection = selection, .repeatable = false});
    session.clear_progress();
    return exit_done;
}

}  // namespace tessera::cli
