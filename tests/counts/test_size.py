"""size.py counts what it says, and sees what rose or fell."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import size  # noqa: E402

SOURCE = '''\
#include "a.h"  // { in a comment
namespace tessera {
/* { */
struct Row {
    int n = 0;
    std::string text{"}"};
    virtual ~Row() = default;
    [[nodiscard]] virtual bool small() const { return n < 2; }
    bool operator()(int other) const {
        return n < other;
    }
};
constexpr std::array rows{Row{1}, Row{2}};
const auto table = [] { return Row{}; };
template <class T = int>
Reader::Reader(const char* text, T begin = {})
    : text_(text), begin_{begin}, open_{'{'} {
    for (int i = 0; i < 3; ++i) {
        each([&](int n) {
            call(n, R"({ raw)");
        });
    }
}
void declared(int a = 1);
int last(std::vector<int> v = {1,
                               2}) {
    return v[1'000];
}
}  // namespace tessera
'''


class Size(unittest.TestCase):
    def test_functions(self):
        found = [(lines, first, head.split("(")[0].split()[-1]) for lines, first, head in size.functions(SOURCE)]
        self.assertEqual(found, [(1, 8, "small"), (3, 9, "operator"), (9, 15, "Reader::Reader"), (4, 25, "last")])

    def test_comments_and_strings_are_no_code(self):
        bare = size.bare(SOURCE)
        self.assertEqual(bare.count("\n"), SOURCE.count("\n"))
        self.assertEqual(bare.count("{"), bare.count("}"))
        self.assertNotIn("comment", bare)
        self.assertIn("1'000", bare)

    def test_circles(self):
        graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "g"}}
        self.assertEqual(size.circles(graph), [["a", "b", "c"], ["d", "e"]])

    def test_rooms(self):
        for name, room in (("core/include/tessera/value.h", "core"), ("core/files/mldf/mldf.cpp", "core/files"),
                           ("store/format/keys/internal/tessera/keys.h", "store/format/keys"), ("tools/python/src/open.cpp", "tools/python")):
            self.assertEqual(size.room_of(name), room)

    def test_this_checkout(self):
        figures = size.Measured(size.tracked()).figures
        self.assertGreater(figures["lines of core"], 1000)
        self.assertGreater(figures["virtual functions"], figures["virtual functions in key_value_store.h"])
        self.assertGreaterEqual(figures["functions above 30 lines"], figures["functions above 40 lines"])

    def test_what_rises_and_what_falls(self):
        accepted = size.load()
        self.assertEqual(size.differences(accepted, dict(accepted)), [])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            size.report(size.differences({"circles of units": 3, "lines of core": 9, "gone": 1},
                                         {"circles of units": 4, "lines of core": 7}))
        for text in ("circles of units: 4, accepted 3, 1 too many", "lines of core: 7, accepted 9, 2 fewer", "gone: 0",
                     "Make it smaller"):
            self.assertIn(text, said.getvalue())


if __name__ == "__main__":
    unittest.main()
