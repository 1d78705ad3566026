"""The examples in the headers and in the pages of tools/docs must compile.

    examples.py COMPILER ROOT

An example is a run of comment lines that are indented by four more spaces, or a block of C++ in a page that
is no excerpt of a file (those are in cli/test_pages.py). What comes before
the last TESSERA_STRUCTURE of an example stands outside of all functions, the rest within one.
"""
import pathlib
import re
import subprocess
import sys

compiler, root = sys.argv[1], pathlib.Path(sys.argv[2])
PRELUDE = """#include <tessera/tessera.h>
#include <tessera/tile.h>
#include <algorithm>
#include <array>
#include <iostream>
#include <vector>
using namespace tessera;
namespace {
struct Matrix {
    float* data();
    std::size_t size() const;
    std::int64_t rows() const, cols() const;
};
struct XArray {
    std::vector<float>& storage();
    const std::vector<std::size_t>& shape() const;
};
struct Mdspan {
    std::size_t rank() const, extent(std::size_t) const, stride(std::size_t) const;
    float* data_handle() const;
};
}
"""
NAMES = ("Array a, Array b, Array grid, Array result, Region region, std::vector<float> vector, Matrix m, XArray x, Mdspan mdspan, "
         "float* data, Array array, MutableArrayView out")


def header_examples(text):
    """(line, code) of each run of indented comment lines."""
    code, first = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = re.match(r"\s*//[/!]?     (.*)", line)
        begins = found and found[1][:1] not in (" ", "")
        if begins or (code and (found or re.fullmatch(r"\s*//[/!]?", line))):
            first = first or number
            code.append(found[1] if found else "")
        elif code:
            yield first, "\n".join(code)
            code, first = [], 0


def page_examples(text):
    for found in re.finditer(r"```cpp\n(.*?)```", text, re.DOTALL):
        yield text[:found.start()].count("\n") + 2, found[1]


def main():
    headers = sorted(path for module in ("core", "codecs", "store", "tools/pictures") for path in root.glob(f"{module}/**/tessera/*.h"))
    pages = sorted((root / "tools/docs").rglob("*.md"))
    examples = [(path, *example) for path in headers for example in header_examples(path.read_text())
                if ";" in example[1]] + [(page, *example) for page in pages for example in page_examples(page.read_text())]
    if len(examples) < 6:
        sys.exit(f"only {len(examples)} examples found")
    source = [PRELUDE]
    for n, (path, line, code) in enumerate(examples):
        cut = code.rfind("TESSERA_STRUCTURE")
        cut = code.index("\n", cut) + 1 if cut >= 0 else 0
        outside = re.sub(r"\b(Reading)\b", rf"\g<1>{n}", code[:cut])
        inside = re.sub(r"\b(Reading)\b", rf"\g<1>{n}", code[cut:])
        source += [f'#line {line} "{path.relative_to(root)}"', outside, f"static void example_{n}({NAMES}) {{ {{",
                   f'#line {line + code[:cut].count(chr(10))} "{path.relative_to(root)}"', inside, "}}"]
    folders = [f"-I{folder}" for module in ("core", "codecs", "store", "tools/pictures")
               for kind in ("include", "internal") for folder in sorted((root / module).glob(f"**/{kind}"))]
    run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-w", *folders, "-x", "c++", "-"], input="\n".join(source),
                         capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[:6000])
    print(f"{len(examples)} examples compile")


main()
