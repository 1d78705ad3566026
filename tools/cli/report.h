// Printing: standard output, sizes, shapes, aligned facts, JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/error.h>
#include <tessera/node_facts.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera::cli {

/// Thrown if the reader of standard output has closed it; the program then ends quietly.
struct ClosedPipe {};

/// Has print() and notes leave out what may be secrets in the URLs among the words of a command.
void hide_secrets_of(const std::vector<std::string>& words);
[[nodiscard]] std::string without_typed_secrets(std::string_view text);
/// Writes to standard output. Throws ClosedPipe or Error(io).
void print(std::string_view text);
/// The same for bytes of data.
void print_as_is(std::string_view bytes);
/// Flushes buffered output, with the same errors.
void flush_output();
/// JSON for any parser: NaN and infinities as strings, valid UTF-8, and terminal control characters as \u.
[[nodiscard]] std::string json_text(const Value& value, JsonStyle style = {});
/// The text of a JSON document with terminal control characters as \u.
[[nodiscard]] std::string unsteering(std::string_view json);
void print_json(const Value& value);
/// While it lives, what print_json() prints are items of one list, if `json`. end() closes it.
class JsonList {
public:
    explicit JsonList(bool json);
    ~JsonList();
    JsonList(const JsonList&) = delete;
    JsonList& operator=(const JsonList&) = delete;
    void end();
};
/// An error for `--json`, on one line: {"level": "error", "code": …, "exit_code": …, "message": …}.
[[nodiscard]] std::string error_json(std::string_view code, int exit_code, std::string_view message);
/// A note for `--json`, on one line: {"level": "note", "message": …}.
[[nodiscard]] std::string note_json(std::string_view message);
/// Prints an error in one line on stderr, whatever the message holds. Returns the exit code.
int complain(bool json, std::string_view code, int exit_code, std::string message);
int complain(bool json, const Error& error);

/// "270.8 KiB"
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// "270.8 KiB (277,264 bytes)"
[[nodiscard]] std::string bytes_exactly(std::uint64_t bytes);
/// "277,264"
[[nodiscard]] std::string grouped(std::uint64_t number);
/// "344×403"; "0-d" for rank 0
[[nodiscard]] std::string shape_text(const Shape& shape);
/// "chunks 10×32 in shards of 20×32", with "[10,10,5],32" where lengths differ.
[[nodiscard]] std::string layout_text(const ChunkLayout& layout);
/// Cut after so many bytes, with an ellipsis.
[[nodiscard]] std::string abbreviated(std::string text, std::size_t most = 100);
/// "2.8"; "–" if nothing is stored
[[nodiscard]] std::string ratio_text(std::uint64_t logical, std::uint64_t stored);
/// "1 chunk", "12 chunks"
[[nodiscard]] std::string count_text(std::int64_t n, std::string_view singular);
/// The text with control characters and invalid UTF-8 as \xNN, and text direction characters as \uNNNN. So a hostile
/// name can neither control a terminal nor look like another name.
[[nodiscard]] std::string printable(std::string_view text);
/// A path for JSON, with bytes that are not UTF-8 as \xNN.
[[nodiscard]] Value path_value(std::string_view path);

/// Lines of "key  value", the values aligned.
class Facts {
public:
    void add(std::string_view key, std::string_view value);
    /// A further line below the last value.
    void more(std::string_view value) { add("", value); }
    void print() const;

private:
    std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace tessera::cli
