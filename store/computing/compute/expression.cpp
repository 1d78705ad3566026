#include "expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/number_text.h>

namespace tessera {

namespace {

struct Operator {
    std::string_view text;
    std::string_view function;
    int precedence;  ///< the larger binds tighter
};

constexpr int comparison = 1;
constexpr int unary = 7;

// Longer texts before their prefixes.
constexpr std::array<Operator, 17> binary{{{"<<", "left_shift", 5},
                                           {">>", "right_shift", 5},
                                           {"<=", "less_equal", comparison},
                                           {">=", "greater_equal", comparison},
                                           {"==", "equal", comparison},
                                           {"!=", "not_equal", comparison},
                                           {"<", "less", comparison},
                                           {">", "greater", comparison},
                                           {"|", "bitwise_or", 2},
                                           {"^", "bitwise_xor", 3},
                                           {"&", "bitwise_and", 4},
                                           {"+", "add", 6},
                                           {"-", "subtract", 6},
                                           {"//", "floor_divide", unary},
                                           {"*", "multiply", unary},
                                           {"/", "divide", unary},
                                           {"%", "remainder", unary}}};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

using ExpressionNode = std::unique_ptr<Expression>;

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {
        constexpr std::size_t most = 10'000;
        if (text.size() > most) throw invalid_argument("an expression has at most {} characters", most);
    }

    ExpressionNode parse() {
        ExpressionNode node = parse_binary(comparison);
        skip_spaces();
        for (const auto& [python, instead] : {std::pair("and ", "&"), std::pair("or ", "|")}) {
            if (!text_.substr(at_).starts_with(python)) continue;
            throw error(at_, fmt::format("'{}' has no meaning for arrays: write (a) {} (b)", python, instead));
        }
        if (at_ < text_.size()) throw error(at_, "an operator or the end was expected");
        return node;
    }

private:
    [[nodiscard]] Error error(std::size_t at, std::string_view what) const { return expression_error(text_, at, what); }

    void skip_spaces() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    }

    /// Consumes `wanted` if it comes next.
    bool take(std::string_view wanted) {
        skip_spaces();
        if (!text_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }

    [[nodiscard]] const Operator* next_operator() {
        skip_spaces();
        const std::string_view rest = text_.substr(at_);
        if (rest.starts_with("**")) return nullptr;  // parse_power() consumes it
        for (const Operator& one : binary) {
            if (rest.starts_with(one.text)) return &one;
        }
        return nullptr;
    }

    ExpressionNode call(std::string_view function, std::size_t at, std::vector<ExpressionNode> arguments) {
        auto node = std::make_unique<Expression>();
        node->type = Expression::Type::call;
        node->at = at;
        node->name = function;
        node->arguments = std::move(arguments);
        return node;
    }

    ExpressionNode call(std::string_view function, std::size_t at, ExpressionNode a, ExpressionNode b = nullptr) {
        std::vector<ExpressionNode> arguments;
        arguments.push_back(std::move(a));
        if (b) arguments.push_back(std::move(b));
        return call(function, at, std::move(arguments));
    }

    ExpressionNode parse_binary(int least) {
        constexpr int deepest = 200;
        if (++depth_ > deepest) throw error(at_, "the expression is nested too deeply");
        ExpressionNode left = parse_unary();
        bool compared = false;
        while (const Operator* found = next_operator()) {
            if (found->precedence < least) break;
            const std::size_t at = at_;
            if (found->precedence == comparison && std::exchange(compared, true)) {
                throw error(at, "a chain of comparisons has no meaning for arrays: write (a < b) & (b < c)");
            }
            at_ += found->text.size();
            left = call(found->function, at, std::move(left), parse_binary(found->precedence + 1));
        }
        --depth_;
        return left;
    }

    ExpressionNode parse_unary() {
        constexpr int deepest = 200;
        skip_spaces();
        const std::size_t at = at_;
        for (const auto& [sign, function] :
             {std::pair("-", "negative"), std::pair("+", "positive"), std::pair("~", "invert")}) {
            if (!take(sign)) continue;
            if (++depth_ > deepest) throw error(at_, "the expression is nested too deeply");
            ExpressionNode operand = parse_unary();
            --depth_;
            return call(function, at, std::move(operand));
        }
        return parse_power();
    }

    /// Binds tighter than a sign on its left, and looser than one on its right.
    ExpressionNode parse_power() {
        ExpressionNode base = parse_primary();
        skip_spaces();
        const std::size_t at = at_;
        if (!take("**")) return base;
        return call("power", at, std::move(base), parse_unary());
    }

    ExpressionNode parse_primary() {
        skip_spaces();
        if (at_ == text_.size()) throw error(at_, "a name, a number or '(' was expected");
        const char c = text_[at_];
        if (take("(")) {
            ExpressionNode inner = parse_binary(comparison);
            if (!take(")")) throw error(at_, "')' was expected");
            return inner;
        }
        if (is_digit(c) || c == '.') return parse_number();
        if (begins_name(c)) return parse_name();
        if (c == '\'' || c == '"') return parse_text();
        throw error(at_, "a name, a number or '(' was expected");
    }

    ExpressionNode literal(std::size_t at, Literal value) {
        auto node = std::make_unique<Expression>();
        node->at = at;
        node->literal = value;
        return node;
    }

    ExpressionNode parse_number() {
        const std::size_t begin = at_;
        const bool hexadecimal = text_.substr(at_).starts_with("0x");
        bool whole = true;
        if (hexadecimal) at_ += 2;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            const bool exponent = !hexadecimal && (c == 'e' || c == 'E');
            const bool sign =
                (c == '+' || c == '-') && !hexadecimal && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
            const bool digit = is_digit(c) || (hexadecimal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
            if (!digit && !exponent && !(sign && at_ > begin) && (c != '.' || hexadecimal)) break;
            whole = whole && digit;
        }
        const std::string_view digits =
            text_.substr(begin + (hexadecimal ? 2 : 0), at_ - begin - (hexadecimal ? 2 : 0));
        if (at_ < text_.size() && (begins_name(text_[at_]))) throw error(begin, "a number was expected");
        const char* end = digits.data() + digits.size();
        if (whole) {
            std::uint64_t v = 0;
            const auto [p, why] = std::from_chars(digits.data(), end, v, hexadecimal ? 16 : 10);
            if (why == std::errc::result_out_of_range) throw error(begin, "a whole number has at most 64 bits");
            if (why != std::errc{} || p != end) throw error(begin, "a number was expected");
            if (v <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
                return literal(begin, static_cast<std::int64_t>(v));
            }
            return literal(begin, v);
        }
        double v = 0;
        const auto [p, why] = number_from_text(digits.data(), end, v);
        if (why == std::errc::result_out_of_range || p != end || why != std::errc{}) {
            throw error(begin, "a number within float64 was expected");
        }
        return literal(begin, v);
    }

    /// Text between quotes, without escapes.
    ExpressionNode parse_text() {
        const std::size_t end = text_.find(text_[at_], at_ + 1);
        if (end == std::string_view::npos) throw error(at_, "the quote is not closed");
        ExpressionNode node = text_node(at_, text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return node;
    }

    static ExpressionNode text_node(std::size_t at, std::string_view text) {
        auto node = std::make_unique<Expression>();
        node->type = Expression::Type::text;
        node->at = at;
        node->name = text;
        return node;
    }

    /// Words between brackets, as a text without spaces: (0, 1).
    ExpressionNode parse_list(std::size_t begin) {
        const std::size_t end = text_.find_first_of("()", at_);
        if (end == std::string_view::npos || text_[end] == '(') throw error(at_, "')' was expected");
        ExpressionNode node = text_node(begin, "");
        for (; at_ < end; ++at_) {
            if (text_[at_] != ' ') node->name += text_[at_];
        }
        ++at_;
        if (node->name.ends_with(',')) node->name.pop_back();
        return node;
    }

    /// An expression, or KEYWORD=VALUE. Words of the value may have hyphens: by=month-of-year.
    ExpressionNode parse_argument() {
        skip_spaces();
        std::size_t end = at_;
        while (end < text_.size() && (begins_name(text_[end]) || (end > at_ && is_digit(text_[end])))) ++end;
        const std::string_view word = text_.substr(at_, end - at_);
        while (end < text_.size() && text_[end] == ' ') ++end;
        const std::string_view rest = text_.substr(end);
        if (word.empty() || !rest.starts_with("=") || rest.starts_with("==")) return parse_binary(comparison);
        at_ = end + 1;
        skip_spaces();
        const std::size_t begin = at_;
        while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '-')) ++at_;
        ExpressionNode node;
        if (at_ > begin) {
            node = text_node(begin, text_.substr(begin, at_ - begin));
        } else if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
            node = parse_text();
        } else if (take("(")) {
            node = parse_list(begin);
        } else {
            throw error(at_, "a word was expected");
        }
        node->keyword = word;
        return node;
    }

    std::string_view word_here() {
        const std::size_t first = at_;
        while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
        return text_.substr(first, at_ - first);
    }

    /// Without "np." before it, and with the fraction of a percentile.
    std::string_view name_here() {
        std::string_view name = word_here();
        if ((name == "np" || name == "numpy") && at_ < text_.size() && text_[at_] == '.') {
            ++at_;
            name = word_here();
        }
        const bool percentile = name.size() > 1 && name[0] == 'p' && std::ranges::all_of(name.substr(1), is_digit);
        if (percentile && at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {  // p2.5
            const std::size_t first = at_ - name.size();
            ++at_;
            (void)word_here();
            name = text_.substr(first, at_ - first);
        }
        return name;
    }

    ExpressionNode parse_name() {
        const std::size_t begin = at_;
        std::string_view name = name_here();
        if (name == "not") throw error(begin, "'not' has no meaning for arrays: write ~");
        std::vector<ExpressionNode> arguments;
        const bool is_method = at_ < text_.size() && text_[at_] == '.';  // a.mean(axis=0)
        if (is_method || !take("(")) {
            auto node = std::make_unique<Expression>();
            node->type = Expression::Type::name;
            node->at = begin;
            node->name = name;
            if (!is_method) return node;
            ++at_;
            name = word_here();
            if (name.empty() || !take("(")) throw error(at_, "a method such as mean() was expected");
            arguments.push_back(std::move(node));
        }
        if (!take(")")) {
            do {
                arguments.push_back(parse_argument());
            } while (take(","));
            if (!take(")")) throw error(at_, "',' or ')' was expected");
        }
        return call(name, begin, std::move(arguments));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

Error expression_error(std::string_view text, std::size_t at, std::string_view what) {
    if (text.empty()) return invalid_argument("the expression is empty");
    if (at >= text.size()) return invalid_argument("'{}': at the end: {}", text, what);
    return invalid_argument("'{}': at '{}' (character {}): {}", text, text.substr(at, 20), at + 1, what);
}

bool names_operand(const Expression& tree, std::string_view name) {
    return (tree.type == Expression::Type::name && tree.name == name) ||
           std::ranges::any_of(tree.arguments, [&](const auto& argument) { return names_operand(*argument, name); });
}

std::unique_ptr<Expression> parse_expression(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace tessera
