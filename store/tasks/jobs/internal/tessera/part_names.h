// The arrays that people name to be joined: paths, patterns, files of several arrays.
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Whether a path is a pattern such as "frames/*.npy", and no file of that name.
[[nodiscard]] bool is_pattern(const std::string& word);

/// The paths that words name: those that match patterns, and the words themselves.
[[nodiscard]] std::vector<std::string> paths_named(const std::vector<std::string>& words, bool natural);

/// Whether paths are two or more groups, or files that hold several arrays of the same names: data sets that are joined
/// array by array.
[[nodiscard]] bool are_data_sets(const std::vector<std::string>& paths);

/// The arrays that one word names: those that match a pattern, the members of a file of several arrays, or the path
/// itself. `natural`: matches are sorted with digits as numbers, frame-2 before frame-10, else as text. Throws
/// not_found for a pattern that nothing matches.
[[nodiscard]] std::vector<std::string> arrays_named(const std::string& word, bool natural);

/// The same of several words. Words in an order in which a shell expands a pattern are sorted with digits as numbers
/// first, unless `as_given`. Two or more groups, or files that hold several arrays of the same names, stay what they
/// are: data sets to be joined array by array.
[[nodiscard]] std::vector<std::string> arrays_named(std::vector<std::string> words, bool as_given);

}  // namespace tessera
