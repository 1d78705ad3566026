#include "edit_script.h"

#include <fmt/format.h>

#include <tessera/array_plan.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <algorithm>
#include <array>
#include <istream>
#include <vector>

#include "edit.h"
#include "options.h"
#include "selected.h"

namespace tessera::cli {

namespace {

using Words = std::vector<std::string>;

/// The words of a line, split as by a shell: at blanks outside quotes; '#' begins a comment.
Words split_words(const std::string& line) {
    Words words;
    char quote = 0;
    bool in_word = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote == 0 && !in_word && c == '#') break;
        if (quote == 0 && (c == ' ' || c == '\t' || c == '\r')) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (quote == 0 && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == quote) {
            quote = 0;
        } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
            words.back() += line[++i];
        } else {
            words.back() += c;
        }
    }
    if (quote != 0) throw invalid_argument("a {} is not closed", quote);
    return words;
}

void run_set(Session& session, Array& array, const Words& words) {
    const bool raw = words.size() > 3;
    if (raw && words[3] != "raw") throw invalid_argument("expected raw, found {}", words[3]);
    set_elements(session, array, chosen_part(session, array.name(), words[1], array), words[2], raw);
}

void run_append(Session& session, Array& array, const Words& words) {
    const auto named = [&] {
        return in_context([] { return "AXIS"; }, [&] { return find_dimension(words[2], array); });
    };
    const int axis = words.size() > 2 ? named() : 0;
    append_file(session, array, words[1], axis);
}

void run_resize(Session& session, Array& array, const Words& words) {
    const Shape before = array.shape();
    array.resize(parse_shape_option("SHAPE", words[1]), session.io());
    if (const auto note = undefined_growth_note(array.metadata(), before)) session.note(array.name() + ": " + *note);
}

void run_attribute(Session& /*session*/, Array& array, const Words& words) {
    array.attributes().set(words[1], json_or_text(words[2]));
}

void run_remove_attribute(Session& /*session*/, Array& array, const Words& words) {
    if (!array.attributes().erase(words[1])) throw not_found("no attribute '{}'", words[1]);
}

/// A command of the script language.
struct Verb {
    std::string_view usage;   ///< its first word is the verb
    std::size_t least, most;  ///< words
    void (*run)(Session& session, Array& array, const Words& words);
};
constexpr std::array verbs{
    Verb{"set SELECTION VALUE|FILE [raw]", 3, 4, run_set},
    Verb{"append FILE [AXIS]", 2, 3, run_append},
    Verb{"resize SHAPE", 2, 2, run_resize},
    Verb{"attr KEY JSON", 3, 3, run_attribute},
    Verb{"unattr KEY", 2, 2, run_remove_attribute},
};

void run_line(Session& session, Array* array, const Words& words) {
    std::string known;
    for (const Verb& verb : verbs) {
        if (words[0] == verb.usage.substr(0, verb.usage.find(' '))) {
            if (words.size() < verb.least || words.size() > verb.most) {
                throw invalid_argument("expected {}, found {} words", verb.usage, words.size());
            }
            if (array == nullptr)
                throw invalid_argument("a group is edited: first name the array, by a line array PATH");
            return verb.run(session, *array, words);
        }
        known += fmt::format("{}{}", known.empty() ? "" : "; ", verb.usage);
    }
    throw invalid_argument("'{}' is none of: {}", words[0], known);
}

}  // namespace

std::int64_t run_script(Session& session, Edit& batch, std::set<std::string>* arrays, std::istream& script,
                        const std::string& name) {
    Array* array = arrays != nullptr ? nullptr : &batch.array();
    std::int64_t line_number = 0;
    std::int64_t edits = 0;
    for (std::string line; std::getline(script, line);) {
        ++line_number;
        in_context([&] { return fmt::format("{}:{}: nothing was changed", name, line_number); },
                   [&] {
                       const Words words = split_words(line);
                       if (words.empty()) return;
                       if (arrays != nullptr && words[0] == "array") {
                           if (words.size() != 2) {
                               throw invalid_argument("expected array PATH, found {} words", words.size());
                           }
                           array = &batch.array(words[1]);
                           arrays->insert(words[1]);
                           return;
                       }
                       run_line(session, array, words);
                       ++edits;
                   });
    }
    return edits;
}

}  // namespace tessera::cli
