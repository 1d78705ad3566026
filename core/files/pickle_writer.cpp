#include <tessera/error_text.h>
#include <limits>
#include <span>
#include <utility>

#include <tessera/unicode.h>
#include "pickle.h"

namespace tessera {

namespace {

constexpr std::int64_t batch_size = 1000;  // CPython's
constexpr std::size_t put_at = 1 << 16;

void append_number(std::string& out, std::uint64_t n, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) out += static_cast<char>(n >> (8 * i) & 0xFF);
}

/// Appends a number from 0 on.
void append_integer(std::string& out, std::int64_t n) {
    if (n < 1 << 8) {
        out += 'K';
        append_number(out, static_cast<std::uint64_t>(n), 1);
    } else if (n < 1 << 16) {
        out += 'M';
        append_number(out, static_cast<std::uint64_t>(n), 2);
    } else if (n <= std::numeric_limits<std::int32_t>::max()) {
        out += 'J';
        append_number(out, static_cast<std::uint64_t>(n), 4);
    } else {
        std::size_t length = 4;  // with room for the sign
        while (length < 8 && n >> (8 * length - 1) != 0) ++length;
        out += '\x8a';
        append_number(out, length, 1);
        append_number(out, static_cast<std::uint64_t>(n), length);
    }
}

}  // namespace

PickleWriter::PickleWriter(Kind kind, const Shape& shape, bool fortran, Put put)
    : kind_(kind), put_(std::move(put)), left_(element_count(shape)), single_(left_ == 1), singles_(257, -1) {
    using namespace std::string_literals;
    out_ +=
        "\x80\x03"
        "cnumpy.core.multiarray\n_reconstruct\n"s;
    memoize();
    out_ += "cnumpy\nndarray\n";
    memoize();
    out_ += "K\0\x85"s;
    memoize();
    out_ +=
        "C\x01"
        "b";
    if (kind == Kind::variable_bytes) singles_[1 + 'b'] = next_memo_;
    memoize();
    out_ += '\x87';
    memoize();
    out_ += 'R';
    memoize();
    put_state(kind, shape, fortran);
}

/// The state of the array: its shape, its dtype "O" and its order. A list of the elements follows.
void PickleWriter::put_state(Kind kind, const Shape& shape, bool fortran) {
    using namespace std::string_literals;
    out_ += "(K\x01";
    if (shape.rank() > 3) out_ += '(';
    for (const std::int64_t n : shape) append_integer(out_, n);
    if (shape.rank() == 0) {
        out_ += ')';
    } else {
        out_ += shape.rank() > 3 ? 't' : static_cast<char>('\x84' + shape.rank());
        memoize();
    }
    out_ += "cnumpy\ndtype\n";
    memoize();
    out_ += "X\x02\0\0\0O8"s;
    memoize();
    out_ += "\x89\x88\x87";
    memoize();
    out_ += 'R';
    memoize();
    out_ += "(K\x03X\x01\0\0\0|"s;
    if (kind == Kind::variable_text) singles_[1 + '|'] = next_memo_;
    memoize();
    out_ += "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?t";
    memoize();
    out_ += 'b';
    out_ += fortran ? '\x88' : '\x89';
    out_ += ']';
    memoize();
}

void PickleWriter::memoize() {
    const bool is_short = next_memo_ < 256;
    out_ += is_short ? 'q' : 'r';
    append_number(out_, next_memo_++, is_short ? 1 : 4);
}

void PickleWriter::add(std::string_view element) {
    if (left_-- == 0) throw invalid_argument("more elements are written than the array's shape has");
    if (!single_ && batch_++ == 0) out_ += '(';
    if (!add_single(element)) add_content(element);
    if (single_) {
        out_ += 'a';
    } else if (batch_ == batch_size || left_ == 0) {
        out_ += 'e';
        batch_ = 0;
    }
    if (out_.size() >= put_at) put_out();
}

/// The empty object and those of one character exist once in CPython, so each is recalled from its second time on.
/// Returns false for any other element, and the first time.
bool PickleWriter::add_single(std::string_view element) {
    std::size_t which = 0;
    if (kind_ == Kind::variable_bytes && element.size() == 1) {
        which = 1 + static_cast<unsigned char>(element[0]);
    } else if (!element.empty()) {
        if (kind_ == Kind::variable_bytes || element.size() > 2) return false;
        const auto latin1 = utf8_to_latin1(element);
        if (!latin1 || latin1->size() != 1) return false;
        which = 1 + static_cast<unsigned char>((*latin1)[0]);
    }
    if (singles_[which] < 0) {
        singles_[which] = next_memo_;
        return false;
    }
    const bool is_short = singles_[which] < 256;
    out_ += is_short ? 'h' : 'j';
    append_number(out_, static_cast<std::uint64_t>(singles_[which]), is_short ? 1 : 4);
    return true;
}

void PickleWriter::add_content(std::string_view element) {
    if (element.size() > longest_pickled_string) {
        throw unsupported("a string of {} bytes; protocol 3 has at most 4 GiB", element.size());
    }
    if (kind_ == Kind::variable_text) {
        if (!count_utf8(element)) throw invalid_argument("an element of a text array is not UTF-8");
        out_ += 'X';
        append_number(out_, element.size(), 4);
    } else {
        const bool is_short = element.size() < 256;
        out_ += is_short ? 'C' : 'B';
        append_number(out_, element.size(), is_short ? 1 : 4);
    }
    out_ += element;
    memoize();
}

void PickleWriter::finish() {
    if (left_ != 0) throw invalid_argument("{} elements of the array were not written", left_);
    out_ += 't';
    memoize();
    out_ += "b.";
    put_out();
}

void PickleWriter::put_out() {
    put_(std::as_bytes(std::span(out_)));
    out_.clear();
}

}  // namespace tessera
