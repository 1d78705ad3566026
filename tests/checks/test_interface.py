"""tools/docs/interface.txt lists what the public headers declare, and interface.py finds each change of that."""
import os
import pathlib
import subprocess
import sys
import unittest

CHECKS = pathlib.Path(os.environ["TESSERA_SOURCE"], "tools", "checks")
sys.path.insert(0, str(CHECKS))
import interface  # noqa: E402

HEADER = """#pragma once
#define TESSERA_TWICE(type, ...) \\
    type type
namespace tessera {
namespace detail {
int hidden();
}
/// A comment; with (brackets { and "quotes.
enum class Colour : int {
    red,  ///< why
    blue,
};
struct Options {
    int count = 1'000;
    std::string text = "a;}";  // a default
    std::vector<int> list = {1, 2};
};
template <class T>
    requires(sizeof(T) > 1)
class Box final : public Base<T> {
public:
    explicit Box(T v, int n = f(1, {})) : v_(v), n_{n} {}
    [[nodiscard]] T get() const { return v_ == T{} ? T{1} : v_; }
    Box& operator+=(const Box& o) {
        return *this;
    }
    friend bool operator==(const Box&, const Box&) = default;

private:
    T v_;
    int n_ = 0;
};
[[nodiscard]] inline int sum(int a, int b = 2) {
    int c = a + b;
    return c;
}
template <class T>
concept Small = requires(T v) { v.size(); };
}  // namespace tessera
"""
LIST = """TESSERA_TWICE(type, ...)
enum class Colour : int { red, blue }
struct Options
  int count = 1'000
  std::string text = "a;}"
  std::vector<int> list = {1, 2}
template <class T> requires(sizeof(T) > 1) class Box final : public Base<T>
  explicit Box(T v, int n = f(1, {}))
  T get() const
  Box& operator+=(const Box& o)
  friend bool operator==(const Box&, const Box&) = default
int sum(int a, int b = 2)
template <class T> concept Small = requires(T v) { v.size(); }
"""


class Interface(unittest.TestCase):
    def test_list_is_that_of_the_headers(self):
        run = subprocess.run([sys.executable, "-B", CHECKS / "interface.py"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_declarations(self):
        self.assertEqual("".join(line + "\n" for line in interface.declarations(interface.bare(HEADER), 0)), LIST)

    def test_every_header_is_in_the_list(self):
        text = "".join(interface.listing())
        for header in ("array.h", "dtype.h", "npy.h", "snapshot.h", "zip.h"):
            self.assertEqual(f"\ntessera/{header}\n" in text, header != "zip.h", header)


if __name__ == "__main__":
    unittest.main()
