#include "pickle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <tessera/error_text.h>

#include <tessera/unicode.h>
#include "python_literal.h"

namespace tessera {

namespace {

/// The names that an object array of strings is pickled with. None of them is ever called.
enum class Name : std::uint8_t { reconstruct, ndarray, dtype, encode, bytes };

struct KnownName {
    std::string_view module, name;
    Name meaning;
};
constexpr std::array known_names{
    KnownName{"numpy.core.multiarray", "_reconstruct", Name::reconstruct},
    KnownName{"numpy._core.multiarray", "_reconstruct", Name::reconstruct},  // NumPy 2
    KnownName{"numpy", "ndarray", Name::ndarray},
    KnownName{"numpy", "dtype", Name::dtype},
    KnownName{"_codecs", "encode", Name::encode},    // bytes, in protocols 0 to 2
    KnownName{"__builtin__", "bytes", Name::bytes},  // bytes() is b'' there
    KnownName{"builtins", "bytes", Name::bytes},
};

/// One value on the stack, without content of its own: text and bytes lie in the arena, tuples in a list of items.
struct Item {
    enum class Kind : std::uint8_t { mark, none, boolean, integer, text, bytes, tuple, list, name, dtype, array };

    union {
        const char* data;     // text, bytes
        std::int64_t number;  // integer, boolean; of a tuple: where its items begin; of a name: which
    };
    std::uint32_t size = 0;  // of text and bytes in bytes, of a tuple in items
    Kind kind;

    Item(Kind k, std::int64_t n = 0, std::uint32_t s = 0) : number(n), size(s), kind(k) {}
    Item(Kind k, std::string_view content)
        : data(content.data()), size(static_cast<std::uint32_t>(content.size())), kind(k) {}
    [[nodiscard]] std::string_view content() const { return {data, size}; }
};
static_assert(sizeof(void*) > 8 || sizeof(Item) == 16);

std::string_view described(Item::Kind kind) {
    constexpr std::array<std::string_view, 11> words{
        "a mark",  "None",         "a bool", "a number", "text", "bytes", "a tuple", "a list", "a class or function",
        "a dtype", "a NumPy array"};
    return words[static_cast<std::size_t>(kind)];
}

/// Text from a file for a message, at most 80 bytes of it.
std::string quoted(std::string_view text) {
    return python_repr(latin1_to_utf8(text.substr(0, 80))) + (text.size() > 80 ? "…" : "");
}

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Python's raw-unicode-escape: Latin-1 and \uXXXX, \UXXXXXXXX.
std::string from_raw_unicode_escape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i++];
        if (c != '\\' || i == text.size()) {
            append_utf8(out, static_cast<unsigned char>(c));
            continue;
        }
        const char escape = text[i++];
        if (escape != 'u' && escape != 'U') {
            out += c;
            append_utf8(out, static_cast<unsigned char>(escape));
            continue;
        }
        const std::size_t digits = escape == 'u' ? 4 : 8;
        std::uint32_t code = 0;
        const std::string_view hex = text.substr(i, digits);
        const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (hex.size() != digits || error != std::errc() || end != hex.data() + hex.size() || code > 0x10FFFF ||
            (code >= 0xD800 && code < 0xE000)) {
            throw corrupt("the escape \\{}{} is no character", escape, quoted(hex));
        }
        append_utf8(out, code);
        i += digits;
    }
    return out;
}

class Reader {
public:
    Reader(std::string_view pickle, Arena& arena) : pickle_(pickle), arena_(arena) {}

    PickledStrings read() {
        while (step()) {
        }
        if (stack_.size() != 1 || stack_[0].kind != Item::Kind::array || !built_) {
            throw corrupt("the pickle does not hold a NumPy array");
        }
        return std::move(result_);
    }

private:
    using Kind = Item::Kind;

    // ---- the bytes

    std::string_view take(std::uint64_t length) {
        if (length > pickle_.size() - at_) {
            throw corrupt("{} bytes are needed at offset {}, but the pickle has {}", length, at_, pickle_.size());
        }
        const std::string_view bytes = pickle_.substr(at_, length);
        at_ += length;
        return bytes;
    }
    std::uint64_t take_number(std::size_t length) {
        std::uint64_t n = 0;
        const std::string_view bytes = take(length);
        for (std::size_t i = length; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
        return n;
    }
    std::string_view take_sized(std::size_t length_of_size) {
        const std::uint64_t size = take_number(length_of_size);
        if (size > longest_pickled_string) throw unsupported("a string of {} bytes; at most 4 GiB are read", size);
        return take(size);
    }
    std::string_view take_line() {
        const std::size_t end = pickle_.find('\n', at_);
        if (end == std::string_view::npos) throw corrupt("the pickle ends inside a line");
        const std::string_view line = pickle_.substr(at_, end - at_);
        at_ = end + 1;
        return line;
    }

    // ---- the stack

    [[noreturn]] void refuse(std::string_view what) const {
        if (!list_at_) throw unsupported("{} where an array of strings has none", what);
        // Elements lie below the first name; the items above it are being made into one.
        const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(*list_at_) + 1;
        const auto end = std::find_if(begin, stack_.end(), [](const Item& i) { return i.kind == Kind::name; });
        const auto waiting = std::count_if(begin, end, [](const Item& i) { return i.kind != Kind::mark; });
        throw unsupported("{} at element {}; only arrays of str or of bytes are read", what,
                          result_.elements.size() + static_cast<std::size_t>(waiting));
    }

    void push(const Item& item) {
        // While the list of elements is open, other items than text, bytes and the parts of making bytes are elements
        // of another kind. They are refused here, where their place is still known.
        if (list_at_) {
            const bool numpy_name = item.kind == Kind::name && static_cast<Name>(item.number) <= Name::dtype;
            if (numpy_name) refuse("a NumPy object");
            const bool allowed = item.kind == Kind::mark || item.kind == Kind::text || item.kind == Kind::bytes ||
                                 item.kind == Kind::tuple || item.kind == Kind::name;
            if (!allowed) refuse(described(item.kind));
        }
        stack_.push_back(item);
    }

    Item pop() {
        if (stack_.empty() || stack_.back().kind == Kind::mark) throw corrupt("the pickle takes more than it gave");
        const Item item = stack_.back();
        stack_.pop_back();
        return item;
    }
    Item pop(Kind kind, std::string_view what) {
        const Item item = pop();
        if (item.kind != kind) throw corrupt("{} is {}, not {}", what, described(item.kind), described(kind));
        return item;
    }
    std::size_t last_mark() const {
        const auto mark =
            std::find_if(stack_.rbegin(), stack_.rend(), [](const Item& i) { return i.kind == Kind::mark; });
        if (mark == stack_.rend()) throw corrupt("the pickle has no mark where one is needed");
        return static_cast<std::size_t>(stack_.rend() - mark) - 1;
    }
    /// The uppermost items from `begin` on become one tuple.
    void make_tuple(std::size_t begin) {
        const auto size = static_cast<std::uint32_t>(stack_.size() - begin);
        const Item tuple(Kind::tuple, static_cast<std::int64_t>(tuple_items_.size()), size);
        tuple_items_.insert(tuple_items_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
        stack_.resize(begin, Item(Kind::none));
        if (list_at_ && *list_at_ >= begin) list_at_.reset();
        push(tuple);
    }
    void make_short_tuple(std::size_t size) {
        if (stack_.size() < size) throw corrupt("the pickle takes more than it gave");
        const std::size_t begin = stack_.size() - size;
        for (std::size_t i = begin; i < stack_.size(); ++i) {
            if (stack_[i].kind == Kind::mark) throw corrupt("the pickle takes more than it gave");
        }
        make_tuple(begin);
    }
    std::span<const Item> items(const Item& tuple) const {
        return std::span(tuple_items_).subspan(static_cast<std::size_t>(tuple.number), tuple.size);
    }

    // ---- values

    void push_text(std::string_view utf8) {
        if (!count_utf8(utf8)) refuse("text that is not UTF-8 (a lone surrogate, perhaps)");
        push({Kind::text, utf8});
    }
    /// A string of Python 2: text, if it says the same in every encoding.
    void push_old_string(std::string_view bytes) {
        if (!is_ascii(bytes)) refuse("a Python 2 string that is not ASCII");
        push({Kind::text, bytes});
    }
    /// Copies content that does not lie verbatim in the pickle.
    std::string_view keep(std::string_view content) {
        if (content.size() > longest_pickled_string) throw unsupported("a string of more than 4 GiB");
        return arena_.add(content).view();
    }

    void push_quoted(std::string_view line) {
        const PythonLiteral literal = parse_python_literal(line);
        if (literal.kind != PythonLiteral::Kind::scalar || !literal.scalar.is_string()) {
            throw corrupt("{} is no quoted string", quoted(line));
        }
        push_old_string(keep(literal.scalar.as_string()));
    }
    void push_integer_line(std::string_view line, bool may_be_bool) {
        if (may_be_bool && (line == "00" || line == "01")) return push({Kind::boolean, line == "01"});
        if (line.ends_with('L')) line.remove_suffix(1);
        std::int64_t n = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), n);
        if (error != std::errc() || end != line.data() + line.size()) {
            throw corrupt("{} is no integer of 64 bits", quoted(line));
        }
        push({Kind::integer, n});
    }
    void push_long() {
        const std::size_t length = take_number(1);
        if (length > 8) throw unsupported("an integer of {} bytes", length);
        std::uint64_t n = take_number(length);
        if (length > 0 && length < 8 && (n >> (8 * length - 1) & 1) != 0) n |= ~std::uint64_t{0} << (8 * length);
        push({Kind::integer, static_cast<std::int64_t>(n)});
    }
    void push_name(std::string_view module, std::string_view name) {
        const auto known = std::find_if(known_names.begin(), known_names.end(),
                                        [&](const KnownName& k) { return k.module == module && k.name == name; });
        if (known == known_names.end()) {
            throw unsupported(
                "the pickle asks for {}.{}; nothing that a pickle asks for is looked up or "
                "called, and only arrays of str or of bytes are read",
                quoted(module), quoted(name));
        }
        push({Kind::name, static_cast<std::int64_t>(known->meaning)});
    }

    // ---- memo: numbered in ascending order, as every pickler does

    void memoize(std::uint64_t number) {
        if (stack_.empty() || stack_.back().kind == Kind::mark) throw corrupt("the pickle notes what is not there");
        if (number > memo_.size()) {
            throw unsupported("memo number {} comes after {}; they must ascend", number, memo_.size());
        }
        if (number == memo_.size()) {
            memo_.push_back(stack_.back());
        } else {
            memo_[number] = stack_.back();
        }
    }
    void recall(std::uint64_t number) {
        if (number >= memo_.size()) {
            throw corrupt("memo number {} is asked for; there are {}", number, memo_.size());
        }
        push(memo_[number]);
    }
    std::uint64_t take_memo_line() {
        const std::string_view line = take_line();
        std::uint64_t n = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), n);
        if (error != std::errc() || end != line.data() + line.size()) {
            throw corrupt("{} is no memo number", quoted(line));
        }
        return n;
    }

    // ---- the array

    void open_list() {
        if (list_at_ || list_made_) refuse("a list");
        list_made_ = true;
        push(Item(Kind::list));
        list_at_ = stack_.size() - 1;
    }
    void append(std::size_t begin) {
        if (!list_at_ || begin != *list_at_ + 1)
            throw corrupt("the pickle appends to what is not the list of elements");
        for (std::size_t i = begin; i < stack_.size(); ++i) {
            const Item& item = stack_[i];
            const std::size_t n = result_.elements.size();
            if (item.kind != Kind::text && item.kind != Kind::bytes) {
                throw unsupported("{} at element {}; only arrays of str or of bytes are read", described(item.kind), n);
            }
            if (n == 0) element_kind_ = item.kind;
            if (item.kind != element_kind_) {
                throw unsupported("{} at element {}, after elements that are {}", described(item.kind), n,
                                  described(element_kind_));
            }
            result_.elements.push_back({item.data, item.size});
        }
        stack_.resize(begin, Item(Kind::none));
    }

    /// Pushes the bytes that _codecs.encode() makes of a text, as which pickles of protocol 2 keep them.
    template <class Items>
    void encode(const Items& args, std::string_view encoding) {
        if (args.size() != 2 || args[0].kind != Kind::text || (encoding != "latin1" && encoding != "latin-1")) {
            throw unsupported("text encoded as {}", quoted(encoding));
        }
        const auto bytes = utf8_to_latin1(args[0].content());
        if (!bytes) throw corrupt("bytes are given as text with characters above U+00FF");
        // A pickler encodes each text once. Recalling and encoding one text again and again would multiply it.
        encoded_ += bytes->size();
        if (encoded_ > pickle_.size()) {
            throw corrupt("more bytes are encoded from the pickle's text than its {} bytes can hold", pickle_.size());
        }
        push({Kind::bytes, keep(*bytes)});
    }

    void reduce() {
        const auto args = items(pop(Kind::tuple, "what a call is given"));
        const auto name = static_cast<Name>(pop(Kind::name, "what is called").number);
        const auto text_at = [&](std::size_t i) {
            const bool is_text = i < args.size() && (args[i].kind == Kind::text || args[i].kind == Kind::bytes);
            return is_text ? args[i].content() : std::string_view();
        };
        const auto is_name = [&](std::size_t i, Name n) {
            return i < args.size() && args[i].kind == Kind::name && static_cast<Name>(args[i].number) == n;
        };
        switch (name) {
            case Name::reconstruct:
                if (args.size() != 3 || !is_name(0, Name::ndarray)) throw corrupt("_reconstruct() makes no ndarray");
                return push(Item(Kind::array));
            case Name::dtype:
                if (const auto text = text_at(0); text != "O8" && text != "O4" && text != "O") {
                    throw unsupported("the array has elements of dtype {}, not objects", quoted(text));
                }
                return push(Item(Kind::dtype));
            case Name::encode:
                return encode(args, text_at(1));
            case Name::bytes:
                if (!args.empty()) throw unsupported("bytes() of something");
                return push({Kind::bytes, std::string_view()});
            case Name::ndarray:
                break;
        }
        throw unsupported("a direct call of numpy.ndarray");
    }

    void build() {
        const Item state = pop(Kind::tuple, "the state of an object");
        if (stack_.empty()) throw corrupt("the pickle gives a state to nothing");
        if (stack_.back().kind == Kind::dtype) return;  // 'O' has nothing to set
        if (stack_.back().kind != Kind::array) {
            throw unsupported("a state for {}", described(stack_.back().kind));
        }
        const auto parts = items(state);
        if (built_ || parts.size() != 5 || parts[1].kind != Kind::tuple || parts[4].kind != Kind::list) {
            throw corrupt("the state of the array is not (version, shape, dtype, order, list of elements)");
        }
        if (parts[2].kind != Kind::dtype) throw corrupt("the array's dtype is no dtype");
        for (const Item& length : items(parts[1])) {
            if (length.kind != Kind::integer || length.number < 0)
                throw corrupt("the array's shape is not made of lengths");
            result_.shape.push_back(length.number);
        }
        const std::int64_t count = element_count(result_.shape);
        if (static_cast<std::uint64_t>(count) != result_.elements.size()) {
            throw corrupt("shape {} has {} elements, but {} are in the list", result_.shape.to_string(), count,
                          result_.elements.size());
        }
        result_.dtype = element_kind_ == Kind::bytes ? DType::variable_bytes() : DType::variable_text();
        built_ = true;
    }

    // ---- the opcodes, by topic; each returns false for an opcode of another topic

    /// Text and bytes.
    bool take_string(char opcode) {
        switch (opcode) {
            case 'V':
                return push({Kind::text, keep(from_raw_unicode_escape(take_line()))}), true;
            case 'X':
                return push_text(take_sized(4)), true;
            case '\x8c':
                return push_text(take_sized(1)), true;
            case '\x8d':
                return push_text(take_sized(8)), true;
            case 'B':
                return push({Kind::bytes, take_sized(4)}), true;
            case 'C':
                return push({Kind::bytes, take_sized(1)}), true;
            case '\x8e':
                return push({Kind::bytes, take_sized(8)}), true;
            case '\x96':
                refuse("a bytearray");
            case 'S':
                return push_quoted(take_line()), true;
            case 'T':
                return push_old_string(take_sized(4)), true;
            case 'U':
                return push_old_string(take_sized(1)), true;
            default:
                return false;
        }
    }

    /// The memo.
    bool take_memo(char opcode) {
        switch (opcode) {
            case 'p':
                return memoize(take_memo_line()), true;
            case 'q':
                return memoize(take_number(1)), true;
            case 'r':
                return memoize(take_number(4)), true;
            case '\x94':
                return memoize(memo_.size()), true;
            case 'g':
                return recall(take_memo_line()), true;
            case 'h':
                return recall(take_number(1)), true;
            case 'j':
                return recall(take_number(4)), true;
            default:
                return false;
        }
    }

    /// Tuples and lists, and the marks where they begin.
    bool take_list(char opcode) {
        switch (opcode) {
            case '(':
                return push(Item(Kind::mark)), true;
            case ')':
                return push(Item(Kind::tuple)), true;
            case '\x85':
            case '\x86':
            case '\x87':
                return make_short_tuple(static_cast<std::size_t>(opcode - '\x85') + 1), true;
            case 't': {
                const std::size_t mark = last_mark();
                stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(mark));
                if (list_at_ && *list_at_ > mark) --*list_at_;
                return make_tuple(mark), true;
            }
            case ']':
                return open_list(), true;
            case 'l':
                if (last_mark() + 1 != stack_.size()) refuse("a list");
                stack_.pop_back();
                return open_list(), true;
            case 'a':
                return append(stack_.size() - 1), true;
            case 'e': {
                const std::size_t mark = last_mark();
                stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(mark));
                return append(mark), true;
            }
            case '}':
            case 'd':
                refuse("a dict");
            case '\x8f':
            case '\x91':
                refuse("a set");
            default:
                return false;
        }
    }

    /// Numbers and None.
    bool take_scalar(char opcode) {
        switch (opcode) {
            case 'N':
                return push(Item(Kind::none)), true;
            case '\x88':
            case '\x89':
                return push({Kind::boolean, opcode == '\x88'}), true;
            case 'I':
                return push_integer_line(take_line(), true), true;
            case 'L':
                return push_integer_line(take_line(), false), true;
            case 'K':
                return push({Kind::integer, static_cast<std::int64_t>(take_number(1))}), true;
            case 'M':
                return push({Kind::integer, static_cast<std::int64_t>(take_number(2))}), true;
            case 'J':
                return push({Kind::integer, static_cast<std::int32_t>(take_number(4))}), true;
            case '\x8a':
                return push_long(), true;
            case 'F':
            case 'G':
                refuse("a float");
            default:
                return false;
        }
    }

    /// Names, and the objects made by them.
    bool take_made(char opcode) {
        switch (opcode) {
            case 'c': {
                const std::string_view module = take_line();
                return push_name(module, take_line()), true;
            }
            case '\x93': {
                const Item name = pop(Kind::text, "a name"), module = pop(Kind::text, "a module");
                return push_name(module.content(), name.content()), true;
            }
            case 'R':
                return reduce(), true;
            case 'b':
                return build(), true;
            default:
                return false;
        }
    }

    /// The pickle itself.
    bool take_frame(char opcode) {
        switch (opcode) {
            case '\x80':  // PROTO
                if (const auto protocol = take_number(1); protocol > 5) {
                    throw unsupported("pickle protocol {}; 0 to 5 are known", protocol);
                }
                return true;
            case '\x95':  // FRAME: its opcodes follow as they would without it
                if (const auto length = take_number(8); length > pickle_.size() - at_) {
                    throw corrupt("a frame of {} bytes, but only {} follow", length, pickle_.size() - at_);
                }
                return true;
            default:
                return false;
        }
    }

    /// One opcode; false after the last.
    bool step() {
        const std::size_t where = at_;
        const char opcode = take(1)[0];
        if (opcode == '.') return false;
        if (!take_string(opcode) && !take_memo(opcode) && !take_list(opcode) && !take_scalar(opcode) &&
            !take_made(opcode) && !take_frame(opcode)) {
            throw unsupported("opcode {:#04x} at offset {}, which no array of strings needs",
                              static_cast<unsigned char>(opcode), where);
        }
        return true;
    }

    std::string_view pickle_;
    Arena& arena_;
    std::size_t at_ = 0;
    std::vector<Item> stack_, memo_, tuple_items_;
    std::optional<std::size_t> list_at_;  // place of the list of elements on the stack, while it is open
    std::uint64_t encoded_ = 0;           // bytes that _codecs.encode() made
    bool list_made_ = false;              // such a pickle has one list
    bool built_ = false;
    Kind element_kind_ = Kind::text;
    PickledStrings result_;
};

}  // namespace

PickledStrings read_pickled_strings(Buffer pickle) {
    auto arena = std::make_unique<Arena>();
    const ByteSpan bytes = arena->adopt(std::move(pickle));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
        PickledStrings strings = Reader(text, *arena).read();
        strings.arena = std::move(arena);
        return strings;
    } catch (const Error& e) {
        // An overflowing shape is a caller's mistake elsewhere, but damage in a file.
        throw e.code() == ErrorCode::invalid_argument ? corrupt(e.what()) : e;
    }
}

}  // namespace tessera
