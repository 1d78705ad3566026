#include "csv_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include <tessera/error_text.h>
#include <tessera/parallel.h>

namespace tessera {

namespace {

constexpr std::uint64_t piece_size = std::uint64_t{256} << 10U;

}  // namespace

CsvRows::CsvRows(const ByteSource& file, CsvPlace begin)
    : file_(file),
      row_(begin),
      at_(begin),
      piece_(Buffer(std::min(piece_size, std::max<std::uint64_t>(1, file.size())))) {}

int CsvRows::peek() {
    if (begin_ == end_) {
        if (at_.offset >= file_.size()) return -1;
        require_not_stopped();
        end_ = static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), file_.size() - at_.offset));
        file_.read(at_.offset, piece_.span().subspan(0, end_));
        begin_ = 0;
    }
    return std::to_integer<int>(piece_.data()[begin_]);
}

int CsvRows::take() {
    const int c = peek();
    if (c < 0) return c;
    ++begin_;
    ++at_.offset;
    if (c == '\n') ++at_.line;
    return c;
}

Error CsvRows::error_at(std::size_t i, const Error& why) const {
    return why.reworded(ErrorCode::corrupt,
                        fmt::format("{}: line {}, column {}: {}", file_.name(), row_.line, i + 1, why.what()));
}

void CsvRows::quoted() {
    (void)take();
    for (;;) {
        const int c = take();
        if (c < 0) throw error_at(fields_.size(), corrupt("a quote is opened and never closed"));
        if (c == '"') {
            if (peek() != '"') break;
            (void)take();
        }
        fields_.text += static_cast<char>(c);
    }
    const int next = peek();
    if (next >= 0 && next != ',' && next != '\n' && next != '\r') {
        throw error_at(fields_.size(), corrupt("there is text behind the closing quote"));
    }
}

/// The rest of the piece, none of which is taken.
std::string_view CsvRows::unread() const {
    return {reinterpret_cast<const char*>(piece_.data()) + begin_, end_ - begin_};
}

/// Takes characters of the piece, none of which ends a line.
void CsvRows::skip(std::size_t count) {
    begin_ += count;
    at_.offset += count;
}

void CsvRows::plain() {
    while (peek() >= 0) {
        const std::string_view rest = unread();
        const auto* const end = std::ranges::find_if(rest, [](char c) { return c == ',' || c == '\n' || c == '\r'; });
        const auto length = static_cast<std::size_t>(end - rest.begin());
        fields_.text += rest.substr(0, length);
        skip(length);
        if (length < rest.size()) return;
    }
}

bool CsvRows::plain_row() {
    const std::string_view rest = unread();
    for (std::size_t i = 0; i < rest.size() && rest[i] != '"'; ++i) {
        while (i < rest.size() && rest[i] > ',')
            ++i;  // most characters, as the three that end a field are none of them
        if (i == rest.size()) break;
        const bool ends_row = rest[i] == '\n' || rest[i] == '\r';
        if (!ends_row && rest[i] != ',') continue;
        fields_.ends.push_back(i);
        if (!ends_row) continue;
        fields_.text = rest.substr(0, i);
        skip(i);
        return true;
    }
    fields_.ends.clear();
    return false;
}

bool CsvRows::next() {
    if (peek() < 0) return false;
    row_ = at_;
    fields_.text.clear();
    fields_.ends.clear();
    for (bool whole = plain_row();; whole = false) {
        if (!whole) {
            peek() == '"' ? quoted() : plain();
            fields_.ends.push_back(fields_.text.size());
        }
        const int c = take();
        if (c == ',') {
            fields_.text += ',';
            continue;
        }
        if (c == '\r' && peek() == '\n') (void)take();
        return true;
    }
}

}  // namespace tessera
