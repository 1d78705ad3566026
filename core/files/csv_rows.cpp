#include "csv_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/error.h>

namespace tessera {

namespace {

constexpr std::uint64_t piece_size = std::uint64_t{256} << 10U;
constexpr std::uint64_t free_bytes = std::uint64_t{1} << 20U;  // of a row, before they count as memory

}  // namespace

CsvRows::CsvRows(const ByteSource& file, CsvPlace begin)
    : file_(file),
      row_(begin),
      at_(begin),
      piece_(Buffer(std::min(piece_size, std::max<std::uint64_t>(1, file.size())))) {}

int CsvRows::peek() {
    if (begin_ == end_) {
        if (at_.offset >= file_.size()) return -1;
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

void CsvRows::refuse(std::size_t i, std::string_view why) const {
    throw corrupt(fmt::format("{}: line {}, column {}: {}", file_.name(), row_.line, i + 1, why));
}

void CsvRows::quoted() {
    (void)take();
    for (;;) {
        const int c = take();
        if (c < 0) refuse(ends_.size(), "a quote is opened and never closed");
        if (c == '"') {
            if (peek() != '"') break;
            (void)take();
        }
        text_ += static_cast<char>(c);
    }
    const int next = peek();
    if (next >= 0 && next != ',' && next != '\n' && next != '\r') {
        refuse(ends_.size(), "there is text behind the closing quote");
    }
}

void CsvRows::plain() {
    for (int c = peek(); c >= 0 && c != ',' && c != '\n' && c != '\r'; c = peek()) {
        text_ += static_cast<char>(take());
    }
}

bool CsvRows::next() {
    if (peek() < 0) return false;
    row_ = at_;
    text_.clear();
    ends_.clear();
    for (;;) {
        peek() == '"' ? quoted() : plain();
        ends_.push_back(text_.size());
        const std::uint64_t bytes = text_.capacity() + ends_.capacity() * sizeof(std::size_t);
        if (bytes > std::max(free_bytes, held_bytes_)) {
            held_.add(bytes - held_bytes_);
            held_bytes_ = bytes;
        }
        const int c = take();
        if (c == ',') continue;
        if (c == '\r' && peek() == '\n') (void)take();
        return true;
    }
}

}  // namespace tessera
